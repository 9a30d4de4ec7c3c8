"""What becomes of a RUNNING run whose lease has ended.

A worker that died left it behind: it is tried again, or has failed. Work that goes on elsewhere is looked at,
stopped if its time is up or its owner wants it stopped, and given more time if it is found alive. What was started
is stopped, and has ended, before that is written down: otherwise a container would run beside its successor. That goes
for what a worker had just started when it died, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from duetime.clock import Clock
from duetime.ending import LONGEST, LOOK_AGAIN, Ending
from duetime.errors import InvalidField, PermanentFailure, TransientFailure
from duetime.finishing import cancelled, failed, lost, succeeded
from duetime.pair import JobRun
from duetime.results import with_result
from duetime.run import AttemptOutcome, Run
from duetime.settling import settle
from duetime.shelf import Shelf
from duetime.store import Store
from duetime.tasks import settings_for
from duetime.tasks.interface import Failed, Finding, StillRunning, Succeeded
from duetime.tasks.registry import find_kind


@dataclass(frozen=True, slots=True)
class Rescuer:
    store: Store
    shelf: Shelf
    clock: Clock

    def rescue(self, seen: JobRun) -> Run | None:
        """The run as it became, or None if it goes on, or others were faster. Raises TransientFailure if AWS does not
        answer: a later patrol tries again."""
        job, run = seen
        now = self.clock.now()
        if not run.is_elsewhere:
            return self._take_from_a_dead_worker(seen, now)
        if ending := Ending.of(run):
            return self._stop(seen, run.handle, ending, now)
        if run.cancel_requested:
            reason = f"it was cancelled by {run.cancel_requested}"
            return self._stop(seen, run.handle, Ending(now, reason, AttemptOutcome.CANCELLED), now)
        if run.times_out_at and now >= run.times_out_at:
            reason = f"it did not end within its {job.spec.timeout_seconds} s and was stopped"
            return self._stop(seen, run.handle, Ending(now, reason, AttemptOutcome.TIMED_OUT), now)
        return self._look(seen, now)

    def conclude(self, seen: JobRun, finding: Finding) -> Run | None:
        """What was started has ended, as somebody has seen."""
        job, run = seen
        now = self.clock.now()
        started_at = run.start_time or now
        if (ending := Ending.of(run)) and not isinstance(finding, StillRunning):
            return self._ended(seen, ending, now)
        match finding:
            case Succeeded(result):
                done = succeeded(run, None, started_at, now)
                return self._settle(seen, with_result(done, result, self.shelf.blobs))
            case Failed(error, is_permanent):
                problem = PermanentFailure(error) if is_permanent else TransientFailure(error)
                return self._settle(seen, failed(job, run, problem, started_at, now, self.shelf.fraction))
        return None

    def _take_from_a_dead_worker(self, seen: JobRun, now: datetime) -> Run | None:
        job, run = seen
        reason = f"its worker {run.executor_id} was not heard of after its lease had ended"
        try:
            handle = _find(seen)
        except PermanentFailure as error:
            # What may be going on is not tried again beside itself.
            unknown = f"; and whether it had started anything cannot be found out: {error}"
            return self._ended(seen, Ending(now, reason, AttemptOutcome.LOST), now, unknown)
        if handle is None:
            return self._settle(seen, lost(job, run, now, reason))
        return self._stop(seen, handle, Ending(now, reason, AttemptOutcome.LOST), now)

    def _look(self, seen: JobRun, now: datetime) -> Run | None:
        job, run = seen
        kind = _kind_of(run.handle)
        silence = f"nothing was heard of it for {run.heartbeat_seconds} s"
        if kind is None:
            return self._settle(seen, lost(job, run, now, silence))
        finding = kind.look(run.handle)
        if not isinstance(finding, StillRunning):
            return self.conclude(seen, finding)
        if run.callback_digest:
            # It lives, but was to report, and does not.
            return self._stop(seen, run.handle, Ending(now, silence, AttemptOutcome.LOST), now)
        self.store.advance(run, run.evolve(deadline_at=next_deadline(run, now)))
        return None

    def _stop(
        self, seen: JobRun, handle: Mapping[str, Any] | None, ending: Ending, now: datetime
    ) -> Run | None:
        kind = _kind_of(handle)
        if kind is None or handle is None:
            return self._ended(seen, ending, now)
        try:
            finding = kind.look(handle)
            if not isinstance(finding, StillRunning):
                return self.conclude(seen, finding)
            # Written first: a container that shuts down in good order says 0, which from here on is no success.
            if (marked := self._mark(seen, handle, ending, now)) is None:
                return None
            seen = marked
            kind.end(handle, ending.reason)
            is_over = not isinstance(kind.look(handle), StillRunning)
        except PermanentFailure as error:
            return self._ended(seen, ending, now, f"; and it could not be stopped: {error}")
        if is_over:
            return self._ended(seen, ending, now)
        if now - ending.since >= LONGEST:
            return self._ended(seen, ending, now, "; and it has not ended since")
        return None

    def _mark(self, seen: JobRun, handle: Mapping[str, Any], ending: Ending, now: datetime) -> JobRun | None:
        """Its end is looked for again soon, whoever dies from here on. None: others were faster."""
        run = seen.run
        seconds = run.heartbeat_seconds or int(LOOK_AGAIN.total_seconds())
        after = run.evolve(
            handle=ending.kept_with(handle), heartbeat_seconds=seconds, deadline_at=now + LOOK_AGAIN
        )
        return JobRun(seen.job, after) if self.store.advance(run, after) else None

    def _ended(self, seen: JobRun, ending: Ending, now: datetime, unstoppable: str = "") -> Run | None:
        """What cannot be stopped is not tried again beside itself: then the run has failed for good."""
        job, run = seen
        reason, started_at = ending.reason + unstoppable, run.start_time or now
        if ending.outcome is AttemptOutcome.CANCELLED:
            return self._settle(seen, cancelled(run, started_at, now, reason))
        # What was lost is late already, and is tried again at once.
        retry_after = timedelta() if ending.outcome is AttemptOutcome.LOST else None
        error = PermanentFailure(reason) if unstoppable else TransientFailure(reason, retry_after=retry_after)
        after = failed(job, run, error, started_at, now, self.shelf.fraction, ending.outcome)
        return self._settle(seen, after)

    def _settle(self, seen: JobRun, after: Run) -> Run | None:
        return settle(seen, after, self.store, self.clock.now())


def next_deadline(run: Run, now: datetime) -> datetime:
    """A sign of life extends the lease, but not beyond the attempt's time."""
    assert run.heartbeat_seconds is not None
    deadline_at = now + timedelta(seconds=run.heartbeat_seconds)
    return min(deadline_at, run.times_out_at) if run.times_out_at else deadline_at


def _find(seen: JobRun) -> Mapping[str, Any] | None:
    """What the attempt had started elsewhere when its worker died, for kinds of task that can find it by its name."""
    job, run = seen
    try:
        find = getattr(find_kind(job.spec.task.get("type")), "find", None)
        settings = settings_for(job, run) if find else {}
        found: Mapping[str, Any] | None = find(settings, run.key, run.attempt) if find else None
    except InvalidField:
        # The job was changed since to what cannot be found that way.
        return None
    return found


def _kind_of(handle: Mapping[str, Any] | None) -> Any:
    """The kind of task that can look after what was started; None where nothing was."""
    if handle is None:
        return None
    try:
        kind = find_kind(handle.get("type"))
    except InvalidField:
        return None
    return kind if getattr(kind, "CAN_LOOK_AFTER", False) else None
