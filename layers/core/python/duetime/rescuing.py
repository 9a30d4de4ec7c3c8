"""What becomes of a RUNNING run whose lease has ended.

A worker that died left it behind: it is tried again, or has failed. Work that goes on elsewhere is looked at,
stopped if its time is up or its owner wants it stopped, and given more time if it is found alive. What was started
is stopped before that is written down: otherwise whoever dies in between leaves a container running beside its
successor.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from duetime.clock import Clock
from duetime.errors import InvalidField, PermanentFailure, TransientFailure
from duetime.finishing import cancelled, failed, lost, succeeded
from duetime.pair import JobRun
from duetime.results import with_result
from duetime.run import AttemptOutcome, Run
from duetime.settling import settle
from duetime.shelf import Shelf
from duetime.store import Store
from duetime.tasks.interface import Failed, Finding, StillRunning, Succeeded
from duetime.tasks.registry import find_kind


@dataclass(frozen=True, slots=True)
class Rescuer:
    store: Store
    shelf: Shelf
    clock: Clock

    def rescue(self, seen: JobRun) -> Run | None:
        """The run as it became, or None if it goes on, or others were faster. Raises TransientFailure if AWS does not
        answer: the next patrol tries again."""
        job, run = seen
        now = self.clock.now()
        if not run.is_elsewhere:
            reason = f"its worker {run.executor_id} was not heard of after its lease had ended"
            return self._settle(seen, lost(job, run, now, reason))
        if run.cancel_requested:
            reason = f"it was cancelled by {run.cancel_requested}"
            reason += self._end(run, reason) or ""
            return self._settle(seen, cancelled(run, run.start_time or now, now, reason))
        if run.times_out_at and now >= run.times_out_at:
            reason = f"it did not end within its {job.spec.timeout_seconds} s and was stopped"
            return self._stop(seen, reason, AttemptOutcome.TIMED_OUT, now)
        return self._look(seen, now)

    def conclude(self, seen: JobRun, finding: Finding) -> Run | None:
        """What was started has ended, as somebody has seen."""
        job, run = seen
        now = self.clock.now()
        started_at = run.start_time or now
        match finding:
            case Succeeded(result):
                done = succeeded(run, None, started_at, now)
                return self._settle(seen, with_result(done, result, self.shelf.blobs))
            case Failed(error, is_permanent):
                problem = PermanentFailure(error) if is_permanent else TransientFailure(error)
                return self._settle(seen, failed(job, run, problem, started_at, now, self.shelf.fraction))
        return None

    def _look(self, seen: JobRun, now: datetime) -> Run | None:
        job, run = seen
        kind = _kind_of(run)
        silence = f"nothing was heard of it for {run.heartbeat_seconds} s"
        if kind is None:
            return self._settle(seen, lost(job, run, now, silence))
        finding = kind.look(run.handle)
        if not isinstance(finding, StillRunning):
            return self.conclude(seen, finding)
        if run.callback_digest:
            # It lives, but was to report, and does not.
            return self._stop(seen, silence, AttemptOutcome.LOST, now)
        self.store.advance(run, run.evolve(deadline_at=next_deadline(run, now)))
        return None

    def _stop(self, seen: JobRun, reason: str, outcome: AttemptOutcome, now: datetime) -> Run | None:
        """What cannot be stopped is not tried again beside itself: then the run has failed for good."""
        job, run = seen
        unstoppable = self._end(run, reason)
        error = PermanentFailure(reason + unstoppable) if unstoppable else TransientFailure(reason)
        started_at = run.start_time or now
        return self._settle(seen, failed(job, run, error, started_at, now, self.shelf.fraction, outcome))

    def _end(self, run: Run, reason: str) -> str | None:
        """Why it could not be stopped; None if it was, or had ended already."""
        kind = _kind_of(run)
        if kind is None:
            return None
        try:
            kind.end(run.handle, reason)
        except PermanentFailure as error:
            return f"; and it could not be stopped: {error}"
        return None

    def _settle(self, seen: JobRun, after: Run) -> Run | None:
        return settle(seen, after, self.store, self.clock.now())


def next_deadline(run: Run, now: datetime) -> datetime:
    """A sign of life extends the lease, but not beyond the attempt's time."""
    assert run.heartbeat_seconds is not None
    deadline_at = now + timedelta(seconds=run.heartbeat_seconds)
    return min(deadline_at, run.times_out_at) if run.times_out_at else deadline_at


def _kind_of(run: Run) -> Any:
    """The kind of task that can look after what was started; None where nothing was."""
    if run.handle is None:
        return None
    try:
        kind = find_kind(run.handle.get("type"))
    except InvalidField:
        return None
    return kind if getattr(kind, "CAN_LOOK_AFTER", False) else None
