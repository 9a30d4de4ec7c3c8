"""How an attempt or a run ends: what the run becomes, and what that does to its job."""

from datetime import datetime, timedelta
from typing import Any, Final

from duetime.errors import PermanentFailure, TaskError, TransientFailure
from duetime.job import Job, completed_if_done
from duetime.pair import JobRun
from duetime.retry import Fraction, bounded
from duetime.run import PATIENCE, Attempt, AttemptOutcome, Run
from duetime.status import RunStatus

_ENDED: Final = frozenset(
    {RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.SKIPPED},
)


def judged_at_the_end(job: Job) -> frozenset[str]:
    """What of the job decides how the end of a run changes it. While a job goes on, runs that end at the same moment
    need not agree on how many there are; when its last run is known, the last to end completes it."""
    judged = {"status", "final_run_id", "final_ended", "waiters"}
    return frozenset(judged | {"running"} if job.final_run_id or job.final_ended else judged)


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


def dropped(run: Run, status: RunStatus, reason: str, now: datetime) -> Run:
    """A run that will not be attempted (again): CANCELLED, SKIPPED, or FAILED for want of a worker."""
    return run.evolve(
        status=status,
        error_message=reason,
        end_time=now,
        modified_time=now,
        # What failed has yet to reach the dead-letter queue.
        deadline_at=now + PATIENCE if status is RunStatus.FAILED else None,
    )


def dead_lettered(run: Run, now: datetime) -> Run:
    return run.evolve(status=RunStatus.DEAD_LETTERED, modified_time=now, deadline_at=None)


def after_the_end(seen: JobRun, run_after: Run) -> JobRun:
    """The pair as it becomes when `seen.run` turns into `run_after`: its place is freed, the counters grow."""
    job, run = seen
    if run_after.status not in _ENDED:
        return JobRun(job, run_after)
    outcome = run_after.status
    counted = outcome in (RunStatus.SUCCEEDED, RunStatus.FAILED)
    job_after = job.evolve(
        running=job.running - int(run.holds_place),
        succeeded=job.succeeded + int(outcome is RunStatus.SUCCEEDED),
        failed=job.failed + int(outcome is RunStatus.FAILED),
        last_outcome=outcome if counted else job.last_outcome,
        final_ended=job.final_ended or run.run_id == job.final_run_id,
    )
    return JobRun(completed_if_done(job_after), run_after)


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
