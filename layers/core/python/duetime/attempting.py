"""One attempt at a run: the task is executed under supervision, and what came of it decides what the run becomes."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from duetime import tasks
from duetime.claimant import Claim
from duetime.clock import Clock
from duetime.errors import InvalidField, PermanentFailure, TaskError, TransientFailure
from duetime.finishing import accepted, cancelled, failed, succeeded
from duetime.heart import Engagement, Heart
from duetime.leases import HEARTBEAT
from duetime.logbook import LogBook, LogShelf
from duetime.pair import JobRun
from duetime.results import with_result
from duetime.retry import Fraction
from duetime.run import AttemptOutcome, Run
from duetime.secrecy import Redactor
from duetime.stopping import Stopped, StopReason, StopSignal
from duetime.store import Store
from duetime.supervision import supervised
from duetime.targets import AllowedTargets, Reach
from duetime.tasks import Accepted, AttemptContext
from duetime.tasks.interface import CHECKPOINT_LIMIT_BYTES

ENOUGH_TO_FINISH: Final = timedelta(seconds=10)
"""So long before its own end a worker stops what it runs, to record what became of it."""

Execute = Callable[[AttemptContext, Reach], Any]


@dataclass(frozen=True, slots=True)
class Attempter:
    store: Store
    clock: Clock
    heart: Heart
    shelf: LogShelf
    allowed: AllowedTargets
    # When the worker itself must have ended.
    ends_at: datetime
    execute: Execute = tasks.execute
    fraction: Fraction = field(default=random.random)

    def attempt(self, claim: Claim) -> Run | None:
        """The run as it shall become, or None if it is no longer ours to say."""
        job, run = claim.held
        started_at = self.clock.now()
        redactor, stop = Redactor(), StopSignal()
        book = LogBook(self.shelf, run.key, run.attempt, self.clock, redactor.clean)
        engagement = self._engage(claim.held, started_at, stop, book)
        result: Any = None
        problem: TaskError | Stopped | None = None
        try:
            context = self._context(claim, started_at, stop, book, redactor)
            result = supervised(lambda: self.execute(context, self.allowed.reach_of(run.owner)), stop)
        except (TaskError, Stopped) as error:
            problem = error
        finally:
            held = JobRun(job, replace(self.heart.release(engagement), start_time=started_at))
            log_key = book.close()
        after = self._outcome(held, result, problem, started_at, redactor)
        return after and replace(after, log_key=log_key)

    def _outcome(
        self, held: JobRun, result: Any, problem: Exception | None, started_at: datetime, redactor: Redactor
    ) -> Run | None:
        job, run = held
        now = self.clock.now()
        if isinstance(problem, Stopped):
            return self._stopped(held, problem.reason, started_at, now)
        if isinstance(problem, TaskError):
            return failed(job, run, _cleaned(problem, redactor), started_at, now, self.fraction)
        if isinstance(result, Accepted):
            times_out_at = started_at + timedelta(seconds=job.spec.timeout_seconds)
            return accepted(run, result.heartbeat, result.handle, times_out_at, now)
        done = succeeded(run, None, started_at, now)
        return with_result(done, redactor.clean_json(result), self.shelf.blobs)

    def _stopped(self, held: JobRun, reason: StopReason, started_at: datetime, now: datetime) -> Run | None:
        job, run = held
        if reason is StopReason.LEASE_LOST:
            return None
        if reason is StopReason.CANCELLED:
            return cancelled(run, started_at, now, f"it was cancelled by {run.cancel_requested}")
        lasted = (now - started_at).total_seconds()
        error = TransientFailure(f"{reason.value} after {lasted:.1f} s")
        return failed(job, run, error, started_at, now, self.fraction, AttemptOutcome.TIMED_OUT)

    def _engage(self, held: JobRun, started_at: datetime, stop: StopSignal, book: LogBook) -> Engagement:
        own = started_at + timedelta(seconds=held.job.spec.timeout_seconds)
        workers = self.ends_at - ENOUGH_TO_FINISH
        engagement = Engagement(
            run=held.run,
            stop=stop,
            deadline_at=min(own, workers),
            deadline_reason=StopReason.TIMED_OUT if own <= workers else StopReason.OUT_OF_TIME,
            flush_log=book.flush,
            next_beat_at=started_at + HEARTBEAT,
        )
        self.heart.engage(engagement)
        return engagement

    def _context(
        self, claim: Claim, started_at: datetime, stop: StopSignal, book: LogBook, redactor: Redactor
    ) -> AttemptContext:
        job, run = claim.held
        due_at, fence = run.nominal_at or run.due_at, run.fence
        assert fence is not None
        try:
            settings = tasks.filled(
                job.spec.task,
                job_id=run.job_id,
                run_id=run.run_id,
                attempt=run.attempt,
                due_at=due_at,
                fence=fence,
                payload=job.spec.payload,
            )
        except InvalidField as error:
            raise PermanentFailure(error.message) from error
        return AttemptContext(
            job_id=run.job_id,
            run_id=run.run_id,
            owner=run.owner,
            settings=settings,
            payload=job.spec.payload,
            attempt=run.attempt,
            due_at=due_at,
            fence=fence,
            deadline_at=started_at + timedelta(seconds=job.spec.timeout_seconds),
            checkpoint=run.checkpoint,
            callback_token=claim.token,
            trace_id=run.trace_id,
            clock=self.clock,
            stop=stop,
            redactor=redactor,
            log=book.write,
            save_checkpoint=lambda value: self._save_checkpoint(run, value),
        )

    def _save_checkpoint(self, run: Run, value: Any) -> None:
        if value is None:
            return
        size = len(json.dumps(value, allow_nan=False).encode())
        if size > CHECKPOINT_LIMIT_BYTES:
            raise PermanentFailure(f"the checkpoint is {size} bytes, more than {CHECKPOINT_LIMIT_BYTES}")
        # Compared with nothing: the checkpoint that was there may be anything, and only the holder writes one.
        self.store.advance(replace(run, checkpoint=None), replace(run, checkpoint=value), by_holder=True)


def _cleaned(error: TaskError, redactor: Redactor) -> TaskError:
    text = redactor.clean(str(error))
    if isinstance(error, TransientFailure):
        return TransientFailure(text, retry_after=error.retry_after)
    return PermanentFailure(text)
