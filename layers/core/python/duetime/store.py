"""What every store promises. `DynamoStore` and `MemoryStore` keep these promises; one contract suite proves both.

Whoever wants to change something reads it, works out what it shall become, and asks the store to write that if what
was judged still holds. If it does not, that is a lost race, and a lost race is a result: nothing is written and the
store says what is there instead. Every other failure rises.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple, Protocol

from duetime.audit import Event, EventPage
from duetime.job import Job
from duetime.pair import JobRun
from duetime.run import Run, RunKey
from duetime.status import JobStatus, RunStatus

MOST_HELD_READ: Final = 100_000
"""So many of the runs that are under way are looked at for those of one job."""

TALLIES: Final = frozenset({"running", "waiters", "succeeded", "failed"})
"""Fields of a job that are written as sums and not as values: runs of one job may start and end at the same moment."""


CHANGED_BY_OTHERS: Final = frozenset({"version", "status", "next_run_at", "final_run_id", "final_ended"})
"""What a person's change rests on, beyond what only persons change."""


def judged_by_change(after: Job) -> frozenset[str]:
    return CHANGED_BY_OTHERS | ({"running", "waiters"} if after.status is JobStatus.COMPLETED else set())


def judged_by_move(after: Job) -> frozenset[str]:
    judged = {"generation", "next_run_at"}
    return frozenset(judged | {"final_ended", "running", "waiters"} if after.next_run_at is None else judged)


def guarded_fields(by_holder: bool) -> tuple[str, ...]:
    """What must be as it was for a run to be changed."""
    if by_holder:
        return ("status", "fence")
    return ("status", "attempt", "fence", "deadline_at", "cancel_requested")


def guarded_with_its_job(by_holder: bool) -> tuple[str, ...]:
    """The same where a run begins or ends: there, a cancellation that was asked for decides, and must be known."""
    return ("status", "fence", "cancel_requested") if by_holder else guarded_fields(by_holder)


GUARDED_BY_RENEWAL: Final = ("status", "fence", "heartbeat_seconds")
"""A worker's lease ends when it has written down that the work goes on elsewhere: a renewal that comes late, of a
worker that was slow, must not shorten the lease of that work's system."""


MOST_RUNS_READ: Final = 5_000
"""So many runs of a job are looked at for one page of those that somebody asked for."""


@dataclass(frozen=True, slots=True)
class WhichRuns:
    """What an id does not tell: it goes by the time before jitter."""

    status: RunStatus | None = None
    due_from: datetime | None = None
    due_before: datetime | None = None

    def fits(self, run: Run) -> bool:
        return (
            self.status in (None, run.status)
            and (self.due_from is None or run.due_at >= self.due_from)
            and (self.due_before is None or run.due_at < self.due_before)
        )


ALL_RUNS: Final = WhichRuns()


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
    """A run's place on the watch index: by its deadline while it is open, by its end if it is a dead letter."""

    at: datetime
    key: RunKey
    # From when on it could have started, if it is QUEUED and was not put off until its turn comes.
    waits_since: datetime | None = None


class LateRuns(NamedTuple):
    """Runs that wait though their time has come: how many, and which of them have not been marked."""

    number: int
    unmarked: Sequence[RunKey]


class NewJob(NamedTuple):
    job: Job
    runs: Sequence[Run]


class Once(NamedTuple):
    """A caller's Idempotency-Key, within what it is for."""

    scope: str
    key: str


@dataclass(frozen=True, slots=True)
class Move:
    """A job that was planned: from what was read to what it becomes."""

    seen: Job
    after: Job


class Store(Protocol):
    def create(self, job: Job, runs: Sequence[Run]) -> Job | None:
        """Write the job and its first runs, all or nothing. If a job has that id already, write nothing and
        return the job that is there."""

    def create_many(self, new: Sequence[NewJob]) -> Sequence[Job | None]:
        """The same for many, in few requests. Each is written with its runs or not at all."""

    def get_job(self, job_id: str) -> Job | None: ...

    def get_run(self, key: RunKey) -> Run | None: ...

    def list_runs(
        self,
        job_id: str,
        *,
        limit: int,
        before: str | None = None,
        since: str | None = None,
        which: WhichRuns = ALL_RUNS,
    ) -> RunPage:
        """The runs of a job, the latest due first, those with an id below `before`, not below `since`, and of the kind
        asked for. After MOST_RUNS_READ runs that are not, the page ends early."""

    def runs_from(self, job_id: str, *, since: str, until: str, limit: int) -> Sequence[Run]:
        """The runs of a job with ids from `since` to `until`, the oldest first."""

    def queued_runs(self, job_id: str, *, since: str, until: str, limit: int) -> Sequence[Run]:
        """The QUEUED runs of a job with ids from `since` to `until`, the oldest first."""

    def load(self, keys: Iterable[RunKey]) -> Mapping[RunKey, JobRun]:
        """Runs with their jobs, as last written (no stale read). What does not exist is left out."""

    def load_jobs(self, job_ids: Iterable[str]) -> Sequence[Job]:
        """As last written, in no particular order. What does not exist is left out."""

    def change(
        self, seen: Job, after: Job, runs: Sequence[Run] = (), *, event: Event | None = None
    ) -> Job | None:
        """A person's change: write what differs, and the runs that follow from it, all or nothing, if neither a person
        nor a sweep nor the end of its last run has moved the job on since it was `seen`. Otherwise write nothing and
        return the job that is there. A run that exists is left as it is."""

    def exchange(
        self,
        seen: JobRun,
        after: JobRun,
        judged: Collection[str],
        *,
        by_holder: bool = False,
        event: Event | None = None,
    ) -> JobRun | None:
        """Write what differs, all or nothing, if the run's status, attempt, fence, deadline and `cancel_requested` are
        as `seen`, and so are the judged fields of the job (they are compared only if the job changes). The tallies of
        the job are added to. Otherwise write nothing and return what is there. Whoever holds the lease is known by
        the fence, and need not know the deadline."""

    def advance(self, seen: Run, after: Run, *, by_holder: bool = False, event: Event | None = None) -> bool:
        """The same for a run alone, whose holder need not know of a cancellation. False: it has moved on, nothing was
        written."""

    def renew(self, held: Run, deadline_at: datetime) -> Run | None:
        """Extend the lease of a RUNNING run, by the worker that holds it. Returns the run as it is now; None: it is not
        the worker's any more, or its work goes on elsewhere, and nothing was written. Tried once and not again: a
        lease is kept against the clock, and whoever keeps it knows when the next try is due."""

    def adjust(self, seen: Job, after: Job, judged: Collection[str]) -> bool:
        """The same for a job alone."""

    def waiting(
        self, shard: int, *, until: datetime, limit: int, after: WaitingJob | None = None
    ) -> Sequence[WaitingJob]:
        """The jobs of a shard that wait for a time before `until`, the earliest first, those behind `after`. It may
        show a job that has just moved on. Fewer than `limit` means that these are all."""

    def add_run(self, run: Run, *, event: Event | None = None) -> bool:
        """Write a new run. False: it was planned already, and is left as it is."""

    def add_run_once(self, run: Run, once: Once, *, event: Event) -> str | None:
        """Write a new run, unless one was written under that key before. Then write nothing, and return the id of the
        one that is there. The key is forgotten some days later."""

    def move_on(self, moves: Sequence[Move]) -> Collection[str]:
        """Let planned jobs wait for their next time, each if its generation and `next_run_at` are as seen (and, where
        there is none, what decides whether it is COMPLETED). Returns the ids of those that were not."""

    def dead_letters(
        self, owner: str, *, limit: int, before: WatchedRun | None = None
    ) -> Sequence[WatchedRun]:
        """An owner's dead letters, the latest first, those behind `before`."""

    def events(self, job_id: str, *, limit: int, before: str | None = None) -> EventPage:
        """What was done to a job, the latest first, entries below `before`."""

    def note(self, event: Event) -> bool:
        """Write an entry by itself. False: it is there already."""

    def open_runs(self, slot: int, *, limit: int, after: WatchedRun | None = None) -> Sequence[WatchedRun]:
        """The open runs in one of the SLOTS of the watch index, the earliest deadline first, those behind `after`."""

    def holders(self, job: Job) -> Sequence[RunKey]:
        """The runs that hold a place in a job. It may be a moment behind, and looks at MOST_HELD_READ runs of all jobs
        at the most: whether these are all is told by the job's `running`."""

    def waiting_late(self, slot: int, *, due_before: datetime, limit: int) -> LateRuns:
        """Among the first so many open runs of a slot, those that are QUEUED, could have started before that moment,
        and were not put off until their turn comes. It may be a moment behind."""
