"""The heart of a worker: it keeps the leases of the runs that the worker holds, and stops what must stop.

One thread for all of a worker's runs. It beats every five seconds for each: the lease is renewed, what was logged is
written, and the answer tells whether cancellation was asked for. Between beats it watches the attempts' deadlines.
"""

import threading
from collections.abc import Callable
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


@dataclass
class Engagement:
    """A run that this worker holds, while its attempt is under way."""

    run: Run
    stop: StopSignal
    # When the attempt's time is up, and whose time it was.
    deadline_at: datetime
    deadline_reason: StopReason
    flush_log: Callable[[], None]
    next_beat_at: datetime
    lock: threading.Lock = field(default_factory=threading.Lock)


class Heart:
    def __init__(self, store: Store, clock: Clock, *, by_itself: bool = True) -> None:
        """By itself, or when told to: for tests."""
        self._store = store
        self._clock = clock
        self._by_itself = by_itself
        self._engagements: list[Engagement] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def engage(self, engagement: Engagement) -> None:
        with self._changed:
            self._engagements.append(engagement)
            if self._by_itself and self._thread is None:
                self._thread = threading.Thread(target=self._live, name="heart", daemon=True)
                self._thread.start()
            self._changed.notify()

    def release(self, engagement: Engagement) -> Run:
        """The run as it was last written. No beat for it is under way when this returns."""
        with self._changed:
            self._engagements.remove(engagement)
        with engagement.lock:
            return engagement.run

    def beat(self) -> None:
        """One round: whatever is due by now."""
        with self._changed:
            held = list(self._engagements)
        for engagement in held:
            now = self._clock.now()
            if now >= engagement.deadline_at:
                engagement.stop.give(engagement.deadline_reason)
            if now >= engagement.next_beat_at:
                with engagement.lock:
                    self._renew(engagement, now)

    def _renew(self, engagement: Engagement, now: datetime) -> None:
        engagement.flush_log()
        try:
            there = self._renewed(engagement.run, now)
        except Exception:
            # DynamoDB does not answer. There is time for some more tries; then the task must end before the lease does.
            engagement.next_beat_at = now + _TRY_AGAIN
            if engagement.run.deadline_at and now >= engagement.run.deadline_at - SAFETY:
                engagement.stop.give(StopReason.LEASE_LOST)
            return
        if there is None:
            engagement.stop.give(StopReason.LEASE_LOST)
            engagement.next_beat_at = now + HEARTBEAT
            return
        engagement.run, engagement.next_beat_at = there, now + HEARTBEAT
        if there.cancel_requested:
            engagement.stop.give(StopReason.CANCELLED)

    def _renewed(self, run: Run, now: datetime) -> Run | None:
        """The run as it is now, or None if it is no longer this worker's."""
        deadline_at = lease_end(now)
        if run.deadline_at is None or deadline_at > run.deadline_at:
            return self._store.renew(run, deadline_at)
        # The lease is long enough already; a read says whether cancellation was asked for.
        there = self._store.get_run(run.key)
        is_ours = there and (there.status, there.fence) == (RunStatus.RUNNING, run.fence)
        return there if is_ours else None

    def _live(self) -> None:
        while True:
            with self._changed:
                while not self._engagements:
                    self._changed.wait()
                self._changed.wait(self._seconds_to_next())
            self.beat()

    def _seconds_to_next(self) -> float:
        """Called with the lock held. A deadline that has passed was dealt with."""
        now = self._clock.now()
        moments = [e.next_beat_at for e in self._engagements]
        moments += [e.deadline_at for e in self._engagements if e.stop.reason is None]
        return max(0.0, (min(moments) - now).total_seconds())
