"""A worker for tests: its task does as the test says, and its heart beats when told to."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from duetime.attempting import Attempter
from duetime.blobs import MemoryBlobs
from duetime.claimant import Claimant
from duetime.clock import Clock
from duetime.heart import Heart
from duetime.logbook import LogShelf, MemoryLogs
from duetime.store import Store
from duetime.targets import AllowedTargets
from duetime.tasks import AttemptContext
from duetime.worker import Worker


def a_worker(
    store: Store,
    clock: Clock,
    execute: Callable[[AttemptContext], Any] = lambda _: None,
    *,
    executor_id: str = "worker-1",
    heart: Heart | None = None,
    shelf: LogShelf | None = None,
    lives_for: timedelta = timedelta(minutes=15),
) -> Worker:
    attempter = Attempter(
        store,
        clock,
        heart or Heart(store, clock, by_itself=False),
        shelf or LogShelf(MemoryLogs(), MemoryBlobs()),
        AllowedTargets(),
        clock.now() + lives_for,
        execute=lambda context, _: execute(context),
        fraction=lambda: 0.5,
    )
    return Worker(store, clock, Claimant(store, clock, executor_id), attempter)
