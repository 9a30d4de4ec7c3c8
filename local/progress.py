"""What the commands say while they work."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TextIO


@dataclass(frozen=True)
class Progress:
    stream: TextIO = field(default_factory=lambda: sys.stdout)

    def say(self, text: str) -> None:
        self._write(text + "\n")

    @contextmanager
    def step(self, doing: str) -> Iterator[None]:
        """`Synthesising the stack … 8.1 s`, the first half of it before the wait."""
        self._write(f"{doing} … ")
        started = time.monotonic()
        try:
            yield
        except BaseException:
            self._write("failed\n")
            raise
        self._write(f"{time.monotonic() - started:.1f} s\n")

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()
