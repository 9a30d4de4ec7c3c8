"""How an attempt ends: what the run becomes, and what that does to its job."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from duetime.errors import PermanentFailure, TaskError, TransientFailure
from duetime.job import Job
from duetime.retry import Fraction, bounded
from duetime.run import PATIENCE, Attempt, AttemptOutcome, Run
from duetime.status import RunStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEffect:
    """What the end of an attempt adds to its job. Sums, not values: other runs of the job may end at that moment."""

    frees_place: bool
    outcome: RunStatus | None

    @property
    def succeeded(self) -> int:
        return int(self.outcome is RunStatus.SUCCEEDED)

    @property
    def failed(self) -> int:
        return int(self.outcome is RunStatus.FAILED)


def succeeded(run: Run, result: Any, started_at: datetime, now: datetime) -> Run:
    record = _record(run, started_at, now, AttemptOutcome.SUCCEEDED, None)
    return _ended(run, RunStatus.SUCCEEDED, record).evolve(result=result, error_message=None)


def failed(
    job: Job, run: Run, error: TaskError, started_at: datetime, now: datetime, fraction: Fraction
) -> Run:
    record = _record(run, started_at, now, AttemptOutcome.FAILED, str(error))
    if isinstance(error, PermanentFailure) or run.attempt >= run.max_attempt:
        return _ended(run, RunStatus.FAILED, record).evolve(
            error_message=str(error), deadline_at=now + PATIENCE
        )
    return _ended(run, RunStatus.RETRYING, record).evolve(
        error_message=str(error),
        not_before=(not_before := now + _delay(job, run, error, fraction)),
        deadline_at=not_before + PATIENCE,
    )


def dead_lettered(run: Run, now: datetime) -> Run:
    return run.evolve(status=RunStatus.DEAD_LETTERED, modified_time=now, deadline_at=None)


def effect_on_job(run_after: Run) -> JobEffect:
    frees_place = not run_after.holds_place
    return JobEffect(frees_place=frees_place, outcome=run_after.status if frees_place else None)


def _delay(job: Job, run: Run, error: TaskError, fraction: Fraction) -> timedelta:
    if isinstance(error, TransientFailure) and error.retry_after is not None:
        return bounded(error.retry_after)
    return bounded(job.spec.retry.delay_after(run.attempt, fraction))


def _record(
    run: Run, started_at: datetime, now: datetime, outcome: AttemptOutcome, error: str | None
) -> Attempt:
    assert run.executor_id is not None
    assert run.claimed_at is not None
    return Attempt(
        attempt=run.attempt,
        executor_id=run.executor_id,
        claimed_at=run.claimed_at,
        start_time=started_at,
        end_time=now,
        outcome=outcome,
        error=error,
    )


def _ended(run: Run, status: RunStatus, record: Attempt) -> Run:
    return run.evolve(
        status=status,
        attempts=(*run.attempts, record),
        start_time=record.start_time,
        end_time=record.end_time,
        modified_time=record.end_time,
        deadline_at=None,
    )
