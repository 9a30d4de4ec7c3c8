"""One `up` or `down` at a time in a checkout."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local.progress import Progress


@contextmanager
def exclusive(lock: Path, progress: Progress) -> Iterator[None]:
    """The kernel drops this lock when its holder dies, however it dies; the file stays and means nothing."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.say("Waiting for another `make up` or `make down` in this folder.")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
