"""The three kinds of schedule. `start_at` and `end_at` are both inclusive, as UNTIL is in RFC 5545: a job may fire
at `end_at` itself, never after it; both go by the nominal time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import get_args

from duetime.schedules.cron import parse_cron
from duetime.schedules.daylight import DaylightWalk, DstGap, DstOverlap
from duetime.schedules.fire import (
    EPOCH,
    Fire,
    require_moment,
    require_window,
    whole_seconds,
    whole_seconds_up,
)
from duetime.schedules.invalid import InvalidSchedule, quote
from duetime.schedules.zones import DAY, Zone, find_zone

SHORTEST_INTERVAL_SECONDS = 10
LONGEST_INTERVAL_SECONDS = 10 * 366 * DAY

# `datetime` ends with the year 9999 and begins with 1; offsets and looks ahead need some days on either side.
_BEGINNING_OF_TIME = whole_seconds(datetime(1, 1, 8, tzinfo=UTC))
_END_OF_TIME = datetime(9998, 12, 31, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Once:
    at: datetime

    def __post_init__(self) -> None:
        require_moment("schedule_time", self.at)

    @property
    def shortest_gap_seconds(self) -> None:
        return None

    def fires_after(self, after: datetime) -> Iterator[Fire]:
        if self.at > after:
            yield Fire(self.at.astimezone(UTC))


@dataclass(frozen=True, slots=True)
class Interval:
    """Every so many seconds of real time, counted from `anchor_at` (the job's start_at, or else its creation):
    fire k is at anchor + k intervals, k = 0, 1, 2 …, however late any of them ran."""

    every_seconds: int
    anchor_at: datetime
    start_at: datetime | None = None
    end_at: datetime | None = None

    def __post_init__(self) -> None:
        if not SHORTEST_INTERVAL_SECONDS <= self.every_seconds <= LONGEST_INTERVAL_SECONDS:
            span = f"from {SHORTEST_INTERVAL_SECONDS} to {LONGEST_INTERVAL_SECONDS}"
            raise InvalidSchedule("interval_seconds", f"must be {span}, and is {self.every_seconds}")
        require_moment("start_at", self.anchor_at)
        require_window(self.start_at, self.end_at)

    @property
    def shortest_gap_seconds(self) -> int:
        return self.every_seconds

    def fires_after(self, after: datetime) -> Iterator[Fire]:
        anchor, every = self.anchor_at.astimezone(UTC), timedelta(seconds=self.every_seconds)
        count = max(0, (after - anchor) // every + 1)
        if self.start_at is not None:
            count = max(count, -((anchor - self.start_at) // every))
        last = min(self.end_at or _END_OF_TIME, _END_OF_TIME)
        while count <= (last - anchor) // every:
            yield Fire(anchor + count * every)
            count += 1


@dataclass(frozen=True, slots=True)
class Cron:
    """Wall-clock times in a zone. daylight.py says what `dst_gap` and `dst_overlap` do, cron.py what is accepted."""

    expression: str
    timezone: str = "UTC"
    dst_gap: DstGap = "next"
    dst_overlap: DstOverlap = "first"
    start_at: datetime | None = None
    end_at: datetime | None = None

    def __post_init__(self) -> None:
        parse_cron(self.expression)
        find_zone(self.timezone)
        _require_choice("dst_gap", self.dst_gap, get_args(DstGap))
        _require_choice("dst_overlap", self.dst_overlap, get_args(DstOverlap))
        require_window(self.start_at, self.end_at)

    @property
    def zone(self) -> Zone:
        return find_zone(self.timezone)

    @property
    def shortest_gap_seconds(self) -> int:
        return parse_cron(self.expression).shortest_gap_seconds

    def fires_after(self, after: datetime) -> Iterator[Fire]:
        begin = max(whole_seconds(after) + 1, self._first_second())
        if begin > whole_seconds(_END_OF_TIME):
            return
        last = whole_seconds(min(self.end_at or _END_OF_TIME, _END_OF_TIME))
        pattern = parse_cron(self.expression)
        for instant, moved in DaylightWalk(pattern, self.zone, self.dst_gap, self.dst_overlap, begin):
            if instant > last:
                return
            yield Fire(EPOCH + timedelta(seconds=instant), moved)

    def _first_second(self) -> int:
        if self.start_at is None:
            return _BEGINNING_OF_TIME
        return max(_BEGINNING_OF_TIME, whole_seconds_up(self.start_at))


def _require_choice(field: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InvalidSchedule(field, f"{quote(value)} is not one of {', '.join(choices)}")
