"""An emulator with nothing deployed, for tests that bring their own tables."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local.emulator import launch, stop, wait_until_healthy
from local.layout import Layout
from local.ports import free_port
from local.tools import require_emulator


@contextmanager
def bare_emulator(directory: Path, *, auth: bool = False, layout: Layout | None = None) -> Iterator[str]:
    """Its endpoint URL. All its files are in that directory; `local.emulator.reset` empties it."""
    python = require_emulator(layout or Layout())
    data, log = directory / "data", directory / "emulator.log"
    emulator = launch(python, data, log, free_port(), auth=auth)
    try:
        wait_until_healthy(emulator, log)
        yield emulator.endpoint_url
    finally:
        stop(emulator, data)
