"""What an attempt logs: line by line, bounded, without secrets, readable while it runs.

Lines are written in pieces, with every heartbeat and at the end. A run keeps its latest pieces in the table; an attempt
that logged more than they hold has its whole log (up to a bound) in a blob, behind `log_url`.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple, Protocol

from duetime.blobs import Blobs
from duetime.clock import Clock
from duetime.cutting import CUT
from duetime.run import RunKey

PIECE_BYTES: Final = 16 * 1024
PIECES_KEPT: Final = 16
"""So the latest 256 KB of each attempt are in the table."""

INLINE_BYTES: Final = 32 * 1024
"""A log that is longer has a blob too."""

WHOLE_BYTES: Final = 4 * 1024 * 1024
LINE_LENGTH: Final = 4096
_LINE_OVERHEAD: Final = 36
"""Its time and its separators, in a piece and in a blob: blank lines take room too."""


class LogLine(NamedTuple):
    at: datetime
    text: str


class LogPiece(NamedTuple):
    attempt: int
    number: int
    lines: Sequence[LogLine]


class LogStore(Protocol):
    def put_piece(self, key: RunKey, piece: LogPiece) -> None:
        """The latest PIECES_KEPT of an attempt are kept; a further one takes the place of the oldest."""

    def pieces(self, key: RunKey) -> Sequence[LogPiece]:
        """All that is kept of a run's log, in order."""


@dataclass(frozen=True, slots=True)
class LogShelf:
    """Where logs go."""

    store: LogStore
    blobs: Blobs


class LogBook:
    """Safe to write to from any thread. What cannot be stored is lost and counted: a log never fails its run."""

    def __init__(
        self, shelf: LogShelf, key: RunKey, attempt: int, clock: Clock, clean: Callable[[str], str]
    ) -> None:
        self._shelf, self._key, self._attempt, self._clock, self._clean = shelf, key, attempt, clock, clean
        self._lock = threading.Lock()
        self._pending: list[LogLine] = []
        self._pending_bytes = 0
        self._whole: list[LogLine] = []
        self._bytes = 0
        self._next_piece = 0
        self.problems: list[Exception] = []

    def write(self, text: str) -> None:
        for line in text.splitlines():
            self._write_line(self._clean(line))

    def _write_line(self, text: str) -> None:
        if len(text) > LINE_LENGTH:
            text = text[:LINE_LENGTH] + CUT
        size = len(text.encode()) + _LINE_OVERHEAD
        line = LogLine(self._clock.now(), text)
        with self._lock:
            self._pending.append(line)
            self._pending_bytes += size
            if self._bytes + size <= WHOLE_BYTES:
                self._whole.append(line)
            self._bytes += size
            is_full = self._pending_bytes >= PIECE_BYTES
        if is_full:
            self.flush()

    def flush(self) -> None:
        with self._lock:
            lines, self._pending, self._pending_bytes = self._pending, [], 0
            number = self._next_piece
            self._next_piece += 1 if lines else 0
        if lines:
            self._try(lambda: self._shelf.store.put_piece(self._key, LogPiece(self._attempt, number, lines)))

    def close(self) -> str | None:
        """The key of the blob that has all of it, if there is one."""
        self.flush()
        if self._bytes <= INLINE_BYTES:
            return None
        key = f"logs/{self._key.job_id}/{self._key.run_id}/{self._attempt}.log"
        content = "\n".join(f"{line.at.isoformat()} {line.text}" for line in self._whole)
        if self._bytes > WHOLE_BYTES:
            content += f"\n… the log went on; its first {WHOLE_BYTES} bytes are kept"
        stored = self._try(lambda: self._shelf.blobs.put(key, content.encode(), "text/plain; charset=utf-8"))
        return key if stored else None

    def _try(self, store: Callable[[], None]) -> bool:
        try:
            store()
        except Exception as error:
            self.problems.append(error)
            return False
        return True


class MemoryLogs:
    """For tests."""

    def __init__(self) -> None:
        self._pieces: dict[tuple[RunKey, int, int], LogPiece] = {}

    def put_piece(self, key: RunKey, piece: LogPiece) -> None:
        self._pieces[key, piece.attempt, piece.number % PIECES_KEPT] = piece

    def pieces(self, key: RunKey) -> Sequence[LogPiece]:
        return sorted(piece for (of, _, _), piece in self._pieces.items() if of == key)
