"""A pattern of wall-clock times, with no zone: what the expression says, before any clock is changed.

A wall time is a count of seconds since 1970-01-01 00:00 on the wall, so that an instant is a wall time less the
zone's offset, and all of it is arithmetic on integers.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property
from itertools import pairwise

from duetime.schedules.days import Days

DAY = 86_400
_ORDINAL_OF_1970 = date(1970, 1, 1).toordinal()
_START_OF_1970 = datetime(1970, 1, 1)  # noqa: DTZ001 - a wall time has no zone


@dataclass(frozen=True)
class WallPattern:
    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: Days
    # Neither the hour nor the minute begins with a star: a time of day rather than a rhythm (see daylight.py).
    is_fixed: bool

    def find_at_or_after(self, wall: int) -> int | None:
        day, second = divmod(wall, DAY)
        time = self._find_time_at_or_after(second)
        if time is None:
            day, time = day + 1, self._first_time
        found = self.days.find_at_or_after(day + _ORDINAL_OF_1970)
        if found is None:
            return None
        found -= _ORDINAL_OF_1970
        return found * DAY + (time if found == day else self._first_time)

    @cached_property
    def shortest_gap_seconds(self) -> int:
        """From one second to the next, from the last of a minute to the first of the next, and so on to days."""
        gaps, first, last = [], 0, 0
        for values, unit in ((self.seconds, 1), (self.minutes, 60), (self.hours, 3600)):
            gaps += [(later - earlier) * unit - last + first for earlier, later in pairwise(values)]
            first, last = values[0] * unit + first, values[-1] * unit + last
        overnight = DAY - last + first
        if gaps and min(gaps) <= overnight:
            return min(gaps)
        # Only now does it matter, and cost something to find out, whether one such day ever follows another.
        return min([*gaps, overnight + (self.days.shortest_gap() - 1) * DAY])

    @cached_property
    def _first_time(self) -> int:
        return self.hours[0] * 3600 + self.minutes[0] * 60 + self.seconds[0]

    def _find_time_at_or_after(self, second_of_day: int) -> int | None:
        minute_of_day, second = divmod(second_of_day, 60)
        hour, minute = divmod(minute_of_day, 60)
        at = bisect_left(self.seconds, second)
        second, minute = (
            (self.seconds[at], minute) if at < len(self.seconds) else (self.seconds[0], minute + 1)
        )
        at = bisect_left(self.minutes, minute)
        if at == len(self.minutes):
            hour, minute, second = hour + 1, self.minutes[0], self.seconds[0]
        elif self.minutes[at] != minute:
            minute, second = self.minutes[at], self.seconds[0]
        at = bisect_left(self.hours, hour)
        if at == len(self.hours):
            return None
        if self.hours[at] != hour:
            return self.hours[at] * 3600 + self.minutes[0] * 60 + self.seconds[0]
        return hour * 3600 + minute * 60 + second


def wall_datetime(wall: int) -> datetime:
    return _START_OF_1970 + timedelta(seconds=wall)
