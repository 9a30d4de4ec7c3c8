"""A job: what its owner asked for (`JobSpec`), and what Duetime keeps about it (`Job`)."""

import hashlib
import hmac
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from duetime.errors import IllegalTransition
from duetime.notify import Notify
from duetime.retry import RetryPolicy
from duetime.status import JOB_TRANSITIONS, JobStatus, RunStatus
from duetime.timing import RECURRING, Timing

GENERATIONS_REMEMBERED: Final = 20
_MILLISECOND: Final = timedelta(milliseconds=1)


class Priority(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Overlap(StrEnum):
    """What becomes of a run whose job already runs as many at once as its owner allowed."""

    SKIP = "skip"
    QUEUE = "queue"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """Its defaults are part of the storage format: a value equal to its default is not written (dynamo_items.py)."""

    name: str
    timing: Timing
    task: Mapping[str, Any]
    payload: Any = None
    priority: Priority = Priority.MEDIUM
    max_retries: int = 3
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    timeout_seconds: int = 60
    max_concurrency: int = 1
    overlap: Overlap = Overlap.SKIP
    tags: tuple[str, ...] = ()
    notify: Notify | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    job_id: str
    owner: str
    spec: JobSpec
    created_at: datetime
    updated_at: datetime
    updated_by: str
    # When its schedule was given: an IMMEDIATE job is due then, an INTERVAL without `start_at` counts from then.
    anchor_at: datetime
    status: JobStatus = JobStatus.SCHEDULED
    # The first time that is not planned yet; None when there is none. A PAUSED job keeps it, to know what it slept
    # through, but is not on the index of waiting jobs.
    next_run_at: datetime | None = None
    # Counts the changes that could alter what runs or when; part of every planned run's id.
    generation: int = 1
    # When the generations before this one ended, the latest last. A run that was due before its own did still happens.
    generation_ends: tuple[datetime, ...] = ()
    # Of a recurring job: its times up to here were matched to runs, or were not this generation's to plan.
    audited_until: datetime | None = None
    # Counts every change by a person. A claim is refused if it moved since the claim's rules were checked.
    version: int = 1
    # The last run of this generation, once that is known, and whether it has ended. The job is then COMPLETED as
    # soon as nothing of it is under way.
    final_run_id: str | None = None
    final_ended: bool = False
    running: int = 0
    # Counts the runs put to wait for their turn since somebody last looked for them; whoever frees a place and finds
    # it above zero looks.
    waiters: int = 0
    # No run with a lower id waits for its turn; where to begin looking.
    turn_from: str | None = None
    # Grows with every claim and never shrinks: a target that remembers the highest one it saw can refuse the
    # late call of a lost worker.
    fence: int = 0
    succeeded: int = 0
    failed: int = 0
    last_outcome: RunStatus | None = None
    # The address that it was submitted from.
    created_from: str | None = None
    # Tells a repeated request from a different one under the same Idempotency-Key.
    request_digest: str | None = None

    @property
    def waits(self) -> bool:
        """Whether a sweep has to find it."""
        return self.status is JobStatus.SCHEDULED and self.next_run_at is not None

    def end_of(self, generation: int) -> datetime | None:
        """When a generation ended; None if it has not. Of those too long ago to be remembered, when the oldest that is
        remembered did."""
        if generation >= self.generation or not self.generation_ends:
            return None
        return self.generation_ends[max(generation - self.generation, -len(self.generation_ends))]

    def evolve(self, **changes: Any) -> "Job":
        status = changes.get("status", self.status)
        if status is not self.status and status not in JOB_TRANSITIONS[self.status]:
            raise IllegalTransition(f"job {self.job_id} cannot go from {self.status} to {status}")
        return replace(self, **changes)


def expecting_from(job: Job, moment: datetime) -> Job:
    """From that moment on, each of its times is to have a run: the auditor looks (auditing.py)."""
    is_recurring = job.spec.timing.schedule_type in RECURRING
    return replace(job, audited_until=moment - _MILLISECOND if is_recurring else None)


def completed_if_done(job: Job) -> Job:
    """COMPLETED, if every run that it will ever have has ended."""
    done = job.next_run_at is None and job.final_ended and job.running == 0 and job.waiters == 0
    return job.evolve(status=JobStatus.COMPLETED) if done and job.status is JobStatus.SCHEDULED else job


def new_job_id() -> str:
    return str(uuid.uuid4())


def job_id_for(owner: str, idempotency_key: str, secret: bytes) -> str:
    """The id follows from owner and key, so that a repeated request meets its first job in the one conditional
    write that creates it, and no second item has to remember the key. Nobody can work it out beforehand: not to find
    another owner's job, nor to choose where on an index its own will stand."""
    digest = hmac.digest(secret, f"{owner}\n{idempotency_key}".encode(), "sha256")
    return str(uuid.UUID(bytes=digest[:16], version=5))


def digest_request(request: Mapping[str, Any]) -> str:
    canonical = json.dumps(request, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(canonical.encode()).hexdigest()
