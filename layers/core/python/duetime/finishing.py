"""How an attempt or a run ends: what the run becomes, and what that does to its job."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from duetime.claiming import was_due_in_its_generation
from duetime.cutting import cut
from duetime.errors import PermanentFailure, TaskError, TransientFailure
from duetime.job import Job, completed_if_done
from duetime.pair import JobRun
from duetime.retry import Fraction, bounded
from duetime.run import PATIENCE, Attempt, AttemptOutcome, Run
from duetime.status import JobStatus, RunStatus

ERROR_BYTES: Final = 4 * 1024
ATTEMPT_ERROR_BYTES: Final = 1024
ATTEMPTS_KEPT: Final = 20
"""The latest so many attempts are on record. With what a checkpoint, a small result and a handle may have, a run stays
far below the 400 KB of an item, whatever its tasks say and however often it is redriven; and each write of it is paid
for by the kilobyte."""

_ENDED: Final = frozenset(
    {RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.SKIPPED},
)
_CANCELLABLE_END: Final = frozenset({RunStatus.RETRYING, RunStatus.FAILED, RunStatus.RUNNING})


def judged_at_the_end(seen: JobRun) -> frozenset[str]:
    """What of the job decides how the end of a run changes it. While a job goes on, runs that end at the same moment
    need not agree on how many there are; when its last run is known, the last to end completes it."""
    judged = {"status", "generation", "next_run_at", "final_run_id", "final_ended", "waiters"}
    is_ending = seen.job.final_run_id or seen.job.final_ended or seen.run.last
    # The next time moves with every sweep; it matters only for a job that could be completed.
    return frozenset(judged | {"running"} if is_ending else judged - {"next_run_at"})


def succeeded(run: Run, result: Any, started_at: datetime, now: datetime) -> Run:
    record = _record(run, started_at, now, AttemptOutcome.SUCCEEDED, None)
    return _ended(run, RunStatus.SUCCEEDED, record).evolve(result=result, error_message=None)


def failed(
    job: Job,
    run: Run,
    error: TaskError,
    started_at: datetime,
    now: datetime,
    fraction: Fraction,
    outcome: AttemptOutcome = AttemptOutcome.FAILED,
) -> Run:
    record = _record(run, started_at, now, outcome, str(error))
    error_message = cut(str(error), ERROR_BYTES)
    if isinstance(error, PermanentFailure) or run.attempt >= run.max_attempt:
        return _ended(run, RunStatus.FAILED, record).evolve(
            error_message=error_message, deadline_at=now + PATIENCE
        )
    return _ended(run, RunStatus.RETRYING, record).evolve(
        error_message=error_message,
        not_before=(not_before := now + _delay(job, run, error, fraction)),
        deadline_at=not_before + PATIENCE,
    )


def cancelled(run: Run, started_at: datetime, now: datetime, reason: str) -> Run:
    record = _record(run, started_at, now, AttemptOutcome.CANCELLED, reason)
    return _ended(run, RunStatus.CANCELLED, record).evolve(error_message=cut(reason, ERROR_BYTES))


def heeding(cancel_requested: str | None, run: Run, now: datetime) -> Run:
    """What the end of an attempt makes of a run whose cancellation was asked for. What was done is done; what failed,
    or was lost, is not tried again; what goes on elsewhere is the watcher's to stop, at once."""
    if cancel_requested is None or run.status not in _CANCELLABLE_END:
        return run
    if run.status is RunStatus.RUNNING:
        return replace(run, cancel_requested=cancel_requested, deadline_at=now)
    reason = f"it was cancelled by {cancel_requested}"
    told = f"{reason}; {run.error_message}" if run.error_message else reason
    attempts = run.attempts
    if attempts and attempts[-1].end_time == run.end_time:
        # The attempt that ended just now, and not one before it.
        error = cut(told, ATTEMPT_ERROR_BYTES)
        attempts = (*attempts[:-1], replace(attempts[-1], outcome=AttemptOutcome.CANCELLED, error=error))
    return replace(
        run,
        status=RunStatus.CANCELLED,
        error_message=cut(told, ERROR_BYTES),
        attempts=attempts,
        deadline_at=None,
    )


def lost(job: Job, run: Run, now: datetime, reason: str) -> Run:
    """Nobody heard of the attempt any more. The next one, if there is one, follows at once: it is late already."""
    error = TransientFailure(reason, retry_after=timedelta())
    started_at = run.start_time or now
    return failed(job, run, error, started_at, now, lambda: 0.0, AttemptOutcome.LOST)


def accepted(
    run: Run, heartbeat: timedelta, handle: Mapping[str, Any] | None, times_out_at: datetime, now: datetime
) -> Run:
    """The work goes on elsewhere: the lease is as long as its system may be silent."""
    return run.evolve(
        heartbeat_seconds=int(heartbeat.total_seconds()),
        handle=handle,
        times_out_at=times_out_at,
        deadline_at=min(now + heartbeat, times_out_at),
        modified_time=now,
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
        final_ended=job.final_ended or _is_final(job, run),
    )
    return JobRun(completed_if_done(job_after), run_after)


def voided(seen: JobRun, reason: str, now: datetime) -> JobRun:
    """A run that its job no longer wants ends CANCELLED. If it was due before its job was paused, its time is slept
    through like those that came later: the job remembers it, and its `catch_up` decides when it is resumed."""
    job, run = after_the_end(seen, dropped(seen.run, RunStatus.CANCELLED, reason, now))
    if job.status is JobStatus.PAUSED and not run.manual and was_due_in_its_generation(job, run):
        job = job.evolve(next_run_at=min(job.next_run_at or run.due_at, run.due_at))
    return JobRun(job, run)


def _is_final(job: Job, run: Run) -> bool:
    return run.run_id == job.final_run_id or (run.last and run.generation == job.generation)


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
        error=None if error is None else cut(error, ATTEMPT_ERROR_BYTES),
    )


def _ended(run: Run, status: RunStatus, record: Attempt) -> Run:
    return run.evolve(
        status=status,
        attempts=(*run.attempts, record)[-ATTEMPTS_KEPT:],
        start_time=record.start_time,
        end_time=record.end_time,
        modified_time=record.end_time,
        deadline_at=None,
        # What belonged to the attempt and not to the run.
        cancel_requested=None,
        times_out_at=None,
        heartbeat_seconds=None,
        handle=None,
        callback_digest=None,
    )
