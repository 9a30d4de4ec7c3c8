"""Where a job stands on the index by owner, and what can be asked of it there.

The key is the owner, how the job stands, and one of some buckets. What has ended grows for ever, what lives does not:
kept apart, a question about jobs that live never reads those that ended, and one about failures reads failures.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from duetime.job import Job, Priority
from duetime.run import RunKey
from duetime.status import JobStatus, RunStatus
from duetime.store import WatchedRun
from duetime.timing import ScheduleType
from duetime.watch import spread

BUCKETS: Final = 32
"""One owner may submit 10,000 jobs a second, and each job is written to the index, taken off it, and written again:
at most 1,000 writes a second fall on one key value."""

ENDED_JOBS: Final = frozenset({JobStatus.CANCELLED, JobStatus.COMPLETED})


class Standing(StrEnum):
    LIVE = "live"  # SCHEDULED or PAUSED
    DONE = "done"  # ended, and its last run did not fail
    FAILED = "failed"  # ended, and its last run failed


def standing_of(job: Job) -> Standing:
    if job.status not in ENDED_JOBS:
        return Standing.LIVE
    return Standing.FAILED if job.last_outcome is RunStatus.FAILED else Standing.DONE


def bucket_of(job_id: str) -> int:
    return spread(job_id, BUCKETS)


class Listed(NamedTuple):
    """A job's place in its owner's list."""

    created_at: datetime
    job_id: str


class Part(NamedTuple):
    """One key value of the index."""

    owner: str
    standing: Standing
    bucket: int

    @property
    def key(self) -> str:
        return f"{self.owner}#{self.standing}#{self.bucket}"


def part_of(job: Job) -> Part:
    return Part(job.owner, standing_of(job), bucket_of(job.job_id))


@dataclass(frozen=True, slots=True)
class Criteria:
    """What the index itself can tell about a job."""

    status: JobStatus | None = None
    last_outcome: RunStatus | None = None
    schedule_type: ScheduleType | None = None
    priority: Priority | None = None
    tag: str | None = None
    name_prefix: str | None = None

    def fits(self, job: Job) -> bool:
        spec = job.spec
        return (
            self.status in (None, job.status)
            and self.last_outcome in (None, job.last_outcome)
            and self.schedule_type in (None, spec.timing.schedule_type)
            and self.priority in (None, spec.priority)
            and (self.tag is None or self.tag in spec.tags)
            and (self.name_prefix is None or spec.name.startswith(self.name_prefix))
        )


@dataclass(frozen=True, slots=True)
class ListedPage:
    jobs: Sequence[Listed]
    # How many entries were read for it.
    examined: int
    # Up to where; None if nothing is left behind it.
    until: Listed | None


class UnderWay(NamedTuple):
    """A run that holds a place in its job, and until when somebody must have moved it."""

    key: RunKey
    owner: str
    executor_id: str | None
    until: datetime


@dataclass(frozen=True, slots=True)
class UnderWayPage:
    runs: Sequence[UnderWay]
    # How many entries were read for it.
    examined: int
    # Up to where; None if nothing is left behind it.
    until: WatchedRun | None


class Lists(Protocol):
    """What can be found without knowing an id. `DynamoLists` and `MemoryStore` keep these promises; all of it may be a
    moment behind what was last written."""

    def listed(
        self,
        part: Part,
        criteria: Criteria,
        *,
        limit: int,
        newest: datetime | None = None,
        behind: Listed | None = None,
    ) -> ListedPage:
        """Of one part of an owner's list, newest first, from `newest` on or behind where a page before ended: `limit`
        entries are read, and those that fit returned. Jobs of the same millisecond are in any order."""

    def count_listed(self, part: Part, *, limit: int) -> int:
        """How many jobs a part has, counted up to that limit."""

    def under_way(
        self, slot: int, *, limit: int, owner: str | None = None, after: WatchedRun | None = None
    ) -> UnderWayPage:
        """Of one of the HELD_SLOTS of the watch index, the earliest deadline first, behind `after`: `limit` entries are
        read, and those of that owner, or of all, returned."""

    def know_owner(self, owner: str) -> None:
        """Remember that this owner has jobs."""

    def owners(self) -> Sequence[str]:
        """All that were ever remembered, in order."""
