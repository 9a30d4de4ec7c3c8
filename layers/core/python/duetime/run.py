"""A run: one time that a job is due, from planned to ended, with every attempt at it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, NamedTuple

from duetime.errors import IllegalTransition
from duetime.instants import format_instant
from duetime.job import Job, Priority
from duetime.notify import NoticeEvent
from duetime.status import RUN_TRANSITIONS, RunStatus

PATIENCE: Final = timedelta(seconds=20)
"""How long after it could have started a run may stay unclaimed before its hint is taken for lost."""

_NO_JITTER: Final = timedelta()


class RunKey(NamedTuple):
    job_id: str
    run_id: str


class AttemptOutcome(StrEnum):
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    CANCELLED = "CANCELLED"
    LOST = "LOST"  # nobody heard of it any more


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The record of an attempt that ended. The one under way is on the run itself."""

    attempt: int
    executor_id: str
    claimed_at: datetime
    start_time: datetime
    end_time: datetime
    outcome: AttemptOutcome
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    job_id: str
    run_id: str
    owner: str
    priority: Priority
    generation: int
    due_at: datetime
    # The earliest start of the next attempt: `due_at` (or when its job was resumed, for what it slept through), and
    # after a failure the end of its backoff.
    not_before: datetime
    max_attempt: int
    modified_time: datetime
    status: RunStatus = RunStatus.QUEUED
    # Of its job's task, for what is counted by it.
    task_type: str | None = None
    # What the schedule says, where jitter makes `due_at` another time.
    nominal_at: datetime | None = None
    # The first of the missed times that this run stands for.
    missed_from: datetime | None = None
    # Its job has no time after this one, in its generation.
    last: bool = False
    # Somebody asked for it by hand: what the schedule says does not matter to it.
    manual: bool = False
    # What its job's notify block lists: whoever reads the stream need not read the job to know.
    notify: tuple[NoticeEvent, ...] = ()
    # From when on its first attempt was expected, where that is not `due_at`: after a pause, or when its turn came.
    expected_at: datetime | None = None
    # Of the request that directly caused it, if one did.
    trace_id: str | None = None
    # It waits for a place, whatever its job's overlap policy says about ordinary runs.
    patient: bool = False
    # How often its hint was taken for lost and sent again, since a worker last looked at it.
    hints: int = 0
    # When it first found no free place. From then on it waits for its turn, and is not late by Duetime's fault.
    put_off_at: datetime | None = None
    # When a place became free for a run that waits for its turn. The stream tells the queue of it.
    called_at: datetime | None = None
    # When it was seen to wait though its time had come. The stream makes a count of it.
    late_at: datetime | None = None
    attempt: int = 0
    attempts: tuple[Attempt, ...] = ()
    fence: int | None = None
    executor_id: str | None = None
    claimed_at: datetime | None = None
    start_time: datetime | None = None
    end_time: datetime | None = None
    # By when somebody must have moved an open run; what is older is found on the watch index.
    deadline_at: datetime | None = None
    # Who asked for the end of a run that is under way. Its holder sees it with the next heartbeat.
    cancel_requested: str | None = None
    # The work goes on elsewhere, until then at the longest; each sign of life extends the lease by as much.
    times_out_at: datetime | None = None
    heartbeat_seconds: int | None = None
    # What was started, for kinds of task that can look after it and stop it.
    handle: Mapping[str, Any] | None = None
    # Of the secret with which the attempt's system may report. The secret itself is nowhere.
    callback_digest: str | None = None
    # What an attempt saved for the one after it.
    checkpoint: Any = None
    error_message: str | None = None
    result: Any = None
    # Where a larger result is, and a longer log.
    result_key: str | None = None
    log_key: str | None = None

    @property
    def key(self) -> RunKey:
        return RunKey(self.job_id, self.run_id)

    @property
    def is_of_the_schedule(self) -> bool:
        """Whether its time is one of the schedule's. One that was redriven is `manual`, and still is."""
        return "-m" not in self.run_id

    @property
    def is_elsewhere(self) -> bool:
        """Whether its work goes on outside of any worker."""
        return self.status is RunStatus.RUNNING and self.heartbeat_seconds is not None

    @property
    def holds_place(self) -> bool:
        """Whether it counts in its job's `running`. A run between attempts keeps its place."""
        return self.status in (RunStatus.RUNNING, RunStatus.RETRYING)

    def evolve(self, **changes: Any) -> "Run":
        status = changes.get("status", self.status)
        if status is not self.status and status not in RUN_TRANSITIONS[self.status]:
            raise IllegalTransition(f"run {self.run_id} cannot go from {self.status} to {status}")
        return replace(self, **changes)


def run_id_for(job_id: str, generation: int, nominal_at: datetime) -> str:
    """Sorts by time, and follows from what it names, so that planning twice plans once. The job's part makes it
    unique across jobs too: it is the idempotency key that targets receive."""
    return f"{moment_part(nominal_at)}-{generation}-{_job_part(job_id)}"


def moment_part(moment: datetime) -> str:
    """How the ids of all runs that are due at that moment begin."""
    return format_instant(moment).replace("-", "").replace(":", "").replace(".", "")


def _job_part(job_id: str) -> str:
    return job_id.replace("-", "")[:16]


def planned_run(job: Job, nominal_at: datetime, now: datetime, *, jitter: timedelta = _NO_JITTER) -> Run:
    due_at = nominal_at + jitter
    # A time that its job slept through is made good from when it was woken: nobody wanted it to start before.
    not_before = max(due_at, job.generation_ends[-1]) if job.generation_ends else due_at
    return Run(
        job_id=job.job_id,
        run_id=run_id_for(job.job_id, job.generation, nominal_at),
        owner=job.owner,
        priority=job.spec.priority,
        notify=job.spec.notify.events if job.spec.notify else (),
        generation=job.generation,
        due_at=due_at,
        not_before=not_before,
        nominal_at=nominal_at if jitter else None,
        max_attempt=1 + job.spec.max_retries,
        modified_time=now,
        task_type=job.spec.task.get("type"),
        # A time that was missed is due now, not in the past.
        deadline_at=max(due_at, now) + PATIENCE,
    )


def manual_run(job: Job, now: datetime, token: str) -> Run:
    """A run that somebody asked for by hand. The token keeps two requests of the same millisecond apart."""
    run = planned_run(job, now, now)
    return replace(
        run, run_id=f"{moment_part(now)}-m{token}-{_job_part(job.job_id)}", manual=True, patient=True
    )


def expected_from(run: Run) -> datetime:
    """From when on a run that has not been attempted is expected to start. One that waits for its turn is expected when
    it is called; if the call was lost nobody knows when that was, and the whole wait counts."""
    return max(run.not_before, run.called_at or run.put_off_at or run.not_before)
