"""Wake-ups: one one-time schedule for each minute in which something is due, so that nothing runs while nothing is.

EventBridge Scheduler promises only the minute, and by default 1,000 invocations a second. So a job has no schedule of
its own: the minute has one, however many jobs it holds, and it comes early enough for the sweep to plan them all.

    wake-up: M − 2 min, up to 59 s late        the sweep plans until now + 4 min            due: M
    ───────┬──────────────────────┬────────────────────────────────────────────────────────┬──▶
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Final, Protocol

MINUTE: Final = timedelta(minutes=1)
LEAD: Final = timedelta(minutes=2)
_SOONEST: Final = timedelta(seconds=10)
_AT_ONCE: Final = 8
_MOST_REMEMBERED: Final = 10_000


class WakeUps(Protocol):
    def ensure(self, minutes: Iterable[datetime]) -> None:
        """A wake-up exists for each of these minutes when this returns. Raises Unavailable if that cannot be."""


def wakeup_for(next_run_at: datetime, now: datetime) -> datetime:
    """The minute at which a wake-up must come for a job that waits until then."""
    return max(_minute_of(next_run_at) - LEAD, soonest_wakeup(now))


def soonest_wakeup(now: datetime) -> datetime:
    """The next whole minute that EventBridge can still be asked for."""
    return _minute_of(now + _SOONEST) + MINUTE


def _minute_of(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)


class RememberedWakeUps:
    """Asks for each minute once in a function's life. A minute is always in the future when it is asked for, so what is
    remembered cannot have fired yet."""

    def __init__(self, create: Callable[[datetime], None]) -> None:
        self._create = create
        self._known: set[datetime] = set()

    def ensure(self, minutes: Iterable[datetime]) -> None:
        missing = sorted(set(minutes) - self._known)
        if len(missing) > 1:
            # A batch may be due in a hundred different minutes.
            with ThreadPoolExecutor(max_workers=_AT_ONCE) as threads:
                list(threads.map(self._create, missing))
        else:
            for minute in missing:
                self._create(minute)
        for minute in missing:
            self._remember(minute)

    def _remember(self, minute: datetime) -> None:
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
        self._known.add(minute)
