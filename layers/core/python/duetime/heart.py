"""The heart of a worker: it keeps the leases of the runs that the worker holds, and stops what must stop.

Three threads for all of a worker's runs, so that none of its duties waits for another:

    watch    looks at deadlines and at the ends of leases, and stops what must stop; it asks nobody
    renew    every five seconds for each run: extends its lease; the answer tells whether cancellation was asked for
    flush    as often: what was logged is written

So whatever becomes of DynamoDB, a task is told to stop before its lease ends.
"""

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from duetime.clock import Clock
from duetime.leases import HEARTBEAT, SAFETY, lease_end
from duetime.run import Run
from duetime.status import RunStatus
from duetime.stopping import StopReason, StopSignal
from duetime.store import Store

_TRY_AGAIN: Final = timedelta(seconds=1)
_Moments = Callable[[Iterable["Engagement"]], list[datetime]]


@dataclass
class Engagement:
    """A run that this worker holds, until the outcome of its attempt is written down."""

    run: Run
    stop: StopSignal
    # When the attempt's time is up, and whose time it was.
    deadline_at: datetime
    deadline_reason: StopReason
    flush_log: Callable[[], None]
    next_beat_at: datetime
    next_flush_at: datetime = field(init=False)

    def __post_init__(self) -> None:
        self.next_flush_at = self.next_beat_at

    @property
    def lease_is_safe_until(self) -> datetime:
        """A task that is stopped by then has ended when its run is given to another."""
        assert self.run.deadline_at is not None
        return self.run.deadline_at - SAFETY

    def why_stop(self, now: datetime) -> StopReason | None:
        if now >= self.deadline_at:
            return self.deadline_reason
        return StopReason.LEASE_LOST if now >= self.lease_is_safe_until else None


class Heart:
    def __init__(self, store: Store, clock: Clock, *, by_itself: bool = True) -> None:
        """By itself, or when told to: for tests. The store should answer within a second or fail: a renewal that hangs
        delays those of the other runs."""
        self._store = store
        self._clock = clock
        self._by_itself = by_itself
        self._engagements: list[Engagement] = []
        self._changed = threading.Condition()
        self._duties: dict[str, tuple[Callable[[], None], _Moments]] = {
            "watch": (self._watch, _moments_to_watch),
            "renew": (self._renew_all, lambda held: [each.next_beat_at for each in held]),
            "flush": (self._flush_all, lambda held: [each.next_flush_at for each in held]),
        }
        self._threads: dict[str, threading.Thread] = {}

    def engage(self, engagement: Engagement) -> None:
        with self._changed:
            self._start_threads()
            self._engagements.append(engagement)
            self._changed.notify_all()

    def release(self, engagement: Engagement) -> None:
        """A renewal that is under way may yet be written: it finds that the run has ended, and does nothing."""
        with self._changed:
            self._engagements.remove(engagement)

    def beat(self) -> None:
        """One round: whatever is due by now."""
        for do, _ in self._duties.values():
            do()

    def _watch(self) -> None:
        now = self._clock.now()
        for engagement in self._held():
            if reason := engagement.why_stop(now):
                self._stop(engagement.stop, reason)

    def _stop(self, stop: StopSignal, reason: StopReason) -> None:
        if not stop.mark(reason):
            return
        if self._by_itself:
            # What a task does when it is interrupted is its own, and may take its time. Others must not wait for it.
            with suppress(RuntimeError):
                threading.Thread(target=stop.interrupt, name="interrupt", daemon=True).start()
                return
        stop.interrupt()

    def _renew_all(self) -> None:
        for engagement in self._held():
            # Asked for each one: those before it may have taken a second.
            if (now := self._clock.now()) >= engagement.next_beat_at:
                self._renew(engagement, now)

    def _renew(self, engagement: Engagement, now: datetime) -> None:
        try:
            there = self._renewed(engagement.run, now)
        except Exception:
            # DynamoDB does not answer. There is time for some more tries; then the watch ends the task.
            engagement.next_beat_at = now + _TRY_AGAIN
            return
        engagement.next_beat_at = now + HEARTBEAT
        if there is None:
            self._stop(engagement.stop, StopReason.LEASE_LOST)
            return
        engagement.run = there
        if there.cancel_requested:
            self._stop(engagement.stop, StopReason.CANCELLED)

    def _renewed(self, run: Run, now: datetime) -> Run | None:
        """The run as it is now, or None if it is no longer this worker's."""
        deadline_at = lease_end(now)
        if run.deadline_at is None or deadline_at > run.deadline_at:
            return self._store.renew(run, deadline_at)
        # The lease is long enough already; a read says whether cancellation was asked for.
        there = self._store.get_run(run.key)
        is_ours = there and (there.status, there.fence) == (RunStatus.RUNNING, run.fence)
        return there if is_ours else None

    def _flush_all(self) -> None:
        now = self._clock.now()
        for engagement in self._held():
            if now >= engagement.next_flush_at:
                engagement.next_flush_at = now + HEARTBEAT
                with suppress(Exception):
                    engagement.flush_log()

    def _held(self) -> list[Engagement]:
        with self._changed:
            return list(self._engagements)

    def _start_threads(self) -> None:
        """Called with the lock held. One that has died, of whatever, is started anew."""
        for name in self._duties if self._by_itself else ():
            if name not in self._threads or not self._threads[name].is_alive():
                thread = threading.Thread(target=self._live, args=(name,), name=f"heart-{name}", daemon=True)
                thread.start()
                self._threads[name] = thread

    def _live(self, name: str) -> None:
        do, moments = self._duties[name]
        while True:
            with self._changed:
                while not self._engagements:
                    self._changed.wait()
                self._changed.wait(self._seconds_to(moments(self._engagements)))
            # Nothing that goes wrong in one round is a reason not to come back for the next.
            with suppress(Exception):
                do()
            with suppress(RuntimeError), self._changed:
                self._start_threads()

    def _seconds_to(self, moments: Iterable[datetime]) -> float | None:
        """Until the first of them; without any, until something changes."""
        first = min(moments, default=None)
        return None if first is None else max(0.0, (first - self._clock.now()).total_seconds())


def _moments_to_watch(held: Iterable[Engagement]) -> list[datetime]:
    """Of those that were not told to stop yet. A lease that was renewed is looked at when it would have ended."""
    waiting = [each for each in held if each.stop.reason is None]
    return [min(each.deadline_at, each.lease_is_safe_until) for each in waiting]
