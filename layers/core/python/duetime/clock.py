"""Time is an argument. Whoever needs the present asks the clock it was given; nothing calls `now()` by itself."""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

from duetime.instants import to_milliseconds


class Clock(Protocol):
    def now(self) -> datetime: ...

    def wait_until(self, instant: datetime) -> None:
        """Return at `instant` or as soon after it as can be, never before; at once if it has passed."""


class SystemClock:
    def now(self) -> datetime:
        return to_milliseconds(datetime.now(UTC))

    def wait_until(self, instant: datetime) -> None:
        # A loop, because a sleep may end early by the clock that `now` reads (it slews, sleep does not).
        while (remaining := (instant - datetime.now(UTC)).total_seconds()) > 0:
            time.sleep(remaining)


class ManualClock:
    """For tests, ours and those of Duetime's users: it moves when told, and waiting moves it."""

    def __init__(self, start: datetime) -> None:
        self._now = to_milliseconds(start)

    def now(self) -> datetime:
        return self._now

    def wait_until(self, instant: datetime) -> None:
        self._now = max(self._now, to_milliseconds(instant))

    def advance(self, by: timedelta) -> None:
        self._now += by
