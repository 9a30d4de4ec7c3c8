"""What every store promises. `DynamoStore` and `MemoryStore` keep these promises; one contract suite proves both.

Whoever wants to change something reads it, works out what it shall become, and asks the store to write that if what
was judged still holds. If it does not, that is a lost race, and a lost race is a result: nothing is written and the
store says what is there instead. Every other failure rises.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple, Protocol

from duetime.job import Job
from duetime.pair import JobRun
from duetime.run import Run, RunKey

TALLIES: Final = frozenset({"running", "waiters", "succeeded", "failed"})
"""Fields of a job that are written as sums and not as values: runs of one job may start and end at the same moment."""


@dataclass(frozen=True, slots=True)
class RunPage:
    runs: Sequence[Run]
    # Where the next page starts, or None if this was the last one.
    next_before: str | None


class WaitingJob(NamedTuple):
    """A job's place on the index of those that wait."""

    next_run_at: datetime
    job_id: str


class WatchedRun(NamedTuple):
    """A run's place on the index of those that somebody must move."""

    deadline_at: datetime
    key: RunKey


@dataclass(frozen=True, slots=True)
class Move:
    """A job that was planned: from what was read to what it becomes."""

    seen: Job
    after: Job


class Store(Protocol):
    def create(self, job: Job, runs: Sequence[Run]) -> Job | None:
        """Write the job and its first runs, all or nothing. If a job has that id already, write nothing and
        return the job that is there."""

    def get_job(self, job_id: str) -> Job | None: ...

    def get_run(self, key: RunKey) -> Run | None: ...

    def list_runs(self, job_id: str, *, limit: int, before: str | None = None) -> RunPage:
        """The runs of a job, the latest due first, those with an id below `before`."""

    def load(self, keys: Iterable[RunKey]) -> Mapping[RunKey, JobRun]:
        """Runs with their jobs, as last written (no stale read). What does not exist is left out."""

    def load_jobs(self, job_ids: Iterable[str]) -> Sequence[Job]:
        """As last written, in no particular order. What does not exist is left out."""

    def change(self, seen: Job, after: Job, runs: Sequence[Run] = ()) -> Job | None:
        """A person's change: write what differs, and the runs that follow from it, all or nothing, if the job's
        version and status are as `seen`. Otherwise write nothing and return the job that is there."""

    def exchange(self, seen: JobRun, after: JobRun, judged: Collection[str]) -> JobRun | None:
        """Write what differs, all or nothing, if the run's status, attempt, fence and deadline are as `seen`, and so
        are the judged fields of the job (they are compared only if the job changes). The tallies of the job are
        added to. Otherwise write nothing and return what is there."""

    def advance(self, seen: Run, after: Run) -> bool:
        """The same for a run alone. False: it has moved on, nothing was written."""

    def adjust(self, seen: Job, after: Job, judged: Collection[str]) -> bool:
        """The same for a job alone."""

    def waiting(
        self, shard: int, *, until: datetime, limit: int, after: WaitingJob | None = None
    ) -> Sequence[WaitingJob]:
        """The jobs of a shard that wait for a time before `until`, the earliest first, those behind `after`. It may
        show a job that has just moved on. Fewer than `limit` means that these are all."""

    def add_run(self, run: Run) -> bool:
        """Write a new run. False: it was planned already, and is left as it is."""

    def move_on(self, moves: Sequence[Move]) -> Collection[str]:
        """Let planned jobs wait for their next time, each if its generation and `next_run_at` are as seen (and, where
        it becomes COMPLETED, nothing of it runs). Returns the ids of those that were not."""

    def open_runs(self, slot: int, *, limit: int, after: WatchedRun | None = None) -> Sequence[WatchedRun]:
        """The open runs in a slot of the watch index, the earliest deadline first, those behind `after`."""
