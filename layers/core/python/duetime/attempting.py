"""One attempt at a run: the task is executed under supervision, what came of it decides what the run becomes, and that
is written down."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from duetime import tasks
from duetime.claimant import Claim
from duetime.clock import Clock
from duetime.depth import DEEPEST, is_too_deep
from duetime.errors import InvalidField, PermanentFailure, TaskError, TransientFailure
from duetime.finishing import accepted, cancelled, failed, succeeded
from duetime.heart import Engagement, Heart
from duetime.leases import HEARTBEAT
from duetime.logbook import LogBook, LogShelf
from duetime.pair import JobRun
from duetime.recording import record
from duetime.results import with_result
from duetime.retry import Fraction
from duetime.run import AttemptOutcome, Run
from duetime.secrecy import Redactor
from duetime.settling import settle
from duetime.stopping import Stopped, StopReason, StopSignal
from duetime.store import Store
from duetime.supervision import supervised
from duetime.targets import AllowedTargets, Reach
from duetime.tasks import Accepted, AttemptContext
from duetime.tasks.interface import CHECKPOINT_LIMIT_BYTES, HANDLE_LIMIT_BYTES

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
        """The run as it became, or None if it is no longer ours to say. The lease is kept until that is written down: a
        large result, a long log and a slow store take their time too."""
        started_at = self.clock.now()
        redactor, stop = Redactor(), StopSignal()
        run = claim.held.run
        book = LogBook(self.shelf, run.key, run.attempt, self.clock, redactor.clean)
        engagement = self._engage(claim.held, started_at, stop, book)
        try:
            result, problem = self._perform(claim, started_at, stop, book, redactor)
            log_key = book.close()
            # As it is known now, and no later: what differs from it is written, and a renewal may bring a checkpoint.
            seen = JobRun(claim.held.job, engagement.run)
            held = JobRun(seen.job, replace(seen.run, start_time=started_at))
            after = self._outcome(held, result, problem, started_at, redactor)
            return after and self._record(seen, replace(after, log_key=log_key), engagement)
        finally:
            self.heart.release(engagement)

    def _perform(
        self, claim: Claim, started_at: datetime, stop: StopSignal, book: LogBook, redactor: Redactor
    ) -> tuple[Any, TaskError | Stopped | None]:
        try:
            context = self._context(claim, started_at, stop, book, redactor)
            reach = self.allowed.reach_of(claim.held.run.owner)
            return supervised(lambda: self.execute(context, reach), stop), None
        except (TaskError, Stopped) as error:
            return None, error

    def _record(self, seen: JobRun, after: Run, engagement: Engagement) -> Run | None:
        return record(
            lambda: settle(seen, after, self.store, self.clock.now(), by_holder=True),
            lambda: min(engagement.run.deadline_at or self.ends_at, self.ends_at),
            self.clock,
        )

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
            return self._accepted(held, result, started_at, now)
        done = succeeded(run, None, started_at, now)
        return with_result(done, redactor.clean_json(result), self.shelf.blobs)

    def _accepted(self, held: JobRun, result: Accepted, started_at: datetime, now: datetime) -> Run:
        job, run = held
        size = len(json.dumps(result.handle).encode())
        if size > HANDLE_LIMIT_BYTES:
            error = PermanentFailure(f"the task's handle is {size} bytes, more than {HANDLE_LIMIT_BYTES}")
            return failed(job, run, error, started_at, now, self.fraction)
        times_out_at = started_at + timedelta(seconds=job.spec.timeout_seconds)
        return accepted(run, result.heartbeat, result.handle, times_out_at, now)

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
            settings = tasks.settings_for(job, run)
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
        if is_too_deep(value):
            raise PermanentFailure(f"the checkpoint is nested more than {DEEPEST} levels deep")
        # Compared with nothing: the checkpoint that was there may be anything, and only the holder writes one.
        self.store.advance(replace(run, checkpoint=None), replace(run, checkpoint=value), by_holder=True)


def _cleaned(error: TaskError, redactor: Redactor) -> TaskError:
    text = redactor.clean(str(error))
    if isinstance(error, TransientFailure):
        return TransientFailure(text, retry_after=error.retry_after)
    return PermanentFailure(text)
