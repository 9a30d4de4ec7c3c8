"""How far behind Duetime is: the age of the oldest undone work at each stage of a job's path."""

from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from duetime.clock import Clock
from duetime.run import Run
from duetime.status import RunStatus
from duetime.store import Store
from duetime.watch import SLOTS, SPREAD

BEHIND: Final = timedelta(seconds=60)
"""Work that is older than this means that something is wrong: patrols come every ten seconds."""

_LOOKED_AT: Final = 10


class Stage(StrEnum):
    WAITING = "waiting"  # due, and not planned yet: the watcher's
    QUEUED = "queued"  # could have started, and no worker has claimed it: the enqueuer's, the queues', the workers'
    RUNNING = "running"  # its lease has ended, and nobody has rescued it: the watcher's
    FAILED = "failed"  # failed for good, and not a dead letter yet: the enqueuer's


_STAGE_OF: Final = {
    RunStatus.QUEUED: Stage.QUEUED,
    RunStatus.RETRYING: Stage.QUEUED,
    RunStatus.RUNNING: Stage.RUNNING,
    RunStatus.FAILED: Stage.FAILED,
}


@dataclass(frozen=True, slots=True)
class Health:
    checked_at: datetime
    oldest: dict[Stage, timedelta]

    @property
    def is_behind(self) -> bool:
        return any(age > BEHIND for age in self.oldest.values())


@dataclass(frozen=True, slots=True)
class Examiner:
    store: Store
    clock: Clock
    threads: Executor

    def examine(self) -> Health:
        """A bounded number of reads, however much there is: the indexes are in order of time."""
        now = self.clock.now()
        oldest = dict.fromkeys(Stage, timedelta())
        for due_at in self.threads.map(lambda shard: self._first_waiting(shard, now), range(SPREAD)):
            oldest[Stage.WAITING] = max(oldest[Stage.WAITING], now - (due_at or now))
        for runs in self.threads.map(lambda slot: self._overdue(slot, now), SLOTS):
            for run in runs:
                stage = _STAGE_OF.get(run.status)
                if stage:
                    oldest[stage] = max(oldest[stage], now - _undone_since(run, now))
        return Health(now, oldest)

    def _first_waiting(self, shard: int, now: datetime) -> datetime | None:
        found = self.store.waiting(shard, until=now, limit=1)
        return found[0].next_run_at if found else None

    def _overdue(self, slot: int, now: datetime) -> list[Run]:
        places = [place for place in self.store.open_runs(slot, limit=_LOOKED_AT) if place.at <= now]
        return (
            [seen.run for seen in self.store.load(place.key for place in places).values()] if places else []
        )


def _undone_since(run: Run, now: datetime) -> datetime:
    if run.status in (RunStatus.QUEUED, RunStatus.RETRYING):
        return run.not_before
    return (run.end_time if run.status is RunStatus.FAILED else run.deadline_at) or now
