"""What every store promises. `DynamoStore` and `MemoryStore` keep these promises; one contract suite proves both.

Each verb that changes something carries its own guard. A guard that does not hold is a lost race, and a lost
race is a result: the verb says what is there instead. Every other failure rises.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from duetime.finishing import JobEffect
from duetime.job import Job
from duetime.run import Run, RunKey


class JobRun(NamedTuple):
    """A run and its job, as they were read or as they shall become."""

    job: Job
    run: Run


@dataclass(frozen=True, slots=True)
class RunPage:
    runs: Sequence[Run]
    # Where the next page starts, or None if this was the last one.
    next_before: str | None


class Store(Protocol):
    def create(self, job: Job, runs: Sequence[Run]) -> Job | None:
        """Write the job and its first runs, all or nothing. If a job has that id already, write nothing and
        return the job that is there."""

    def get_job(self, job_id: str) -> Job | None: ...

    def list_runs(self, job_id: str, *, limit: int, before: str | None = None) -> RunPage:
        """The runs of a job, the latest due first, those with an id below `before`."""

    def load(self, keys: Iterable[RunKey]) -> Mapping[RunKey, JobRun]:
        """Runs with their jobs, as last written (no stale read). What does not exist is left out."""

    def claim(self, seen: JobRun, after: JobRun) -> JobRun | None:
        """Write `after` if the run's status and attempt, the job's version and fence are as `seen`, and the job
        still has the place that the run needs. Otherwise write nothing and return what is there."""

    def finish(self, after: Run, effect: JobEffect, *, completes_job: bool) -> bool:
        """Record the end of an attempt, if the run is still RUNNING under the fence of `after`; add the effect to
        its job. `completes_job` also makes the job COMPLETED if it is SCHEDULED in the run's generation and
        nothing more is planned. False: the lease was lost, nothing was written."""

    def drop(self, seen: Run, after: Run) -> bool:
        """End a run that will not be attempted (again), CANCELLED or SKIPPED, if it is as `seen`; if it held a place,
        free it. False: it has moved on, nothing was written."""

    def mark_dead_lettered(self, after: Run) -> bool:
        """FAILED → DEAD_LETTERED. False: it was not FAILED any more."""
