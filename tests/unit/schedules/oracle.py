"""What the engine is checked against: the zone files themselves, and every minute of a window, one by one."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib.resources import files
from itertools import pairwise

from cronsim import CronSim
from duetime.schedules import Cron
from duetime.schedules.fire import EPOCH
from duetime.schedules.zones import Change, find_zone

MINUTE = timedelta(minutes=1)
_HEADER = ">4s16x6l"


@cache
def read_changes(zone: str) -> list[Change]:
    """Every change of offset that the zone's file lists (RFC 8536), without asking `zoneinfo`."""
    data = files("tzdata").joinpath("zoneinfo", *zone.split("/")).read_bytes()
    _, utc, std, leaps, times, types, chars = struct.unpack_from(_HEADER, data)
    at = 44 + times * 5 + types * 6 + chars + leaps * 8 + std + utc
    _, utc, std, leaps, times, types, chars = struct.unpack_from(_HEADER, data, at)
    at += 44
    instants = struct.unpack_from(f">{times}q", data, at)
    indexes = data[at + 8 * times : at + 9 * times]
    offsets = [struct.unpack_from(">l", data, at + 9 * times + 6 * n)[0] for n in range(types)]
    steps = pairwise([offsets[0], *(offsets[index] for index in indexes)])
    return [
        Change(instant, before, after)
        for instant, (before, after) in zip(instants, steps, strict=True)
        if before != after
    ]


def has_whole_minutes(change: Change) -> bool:
    return not (change.at % 60 or change.before % 60 or change.after % 60)


def fires_minute_by_minute(cron: Cron, start: datetime, end: datetime) -> list[datetime]:
    """The fires in [start, end), from the definitions alone. Five fields, whole minutes."""
    zone, matches = find_zone(cron.timezone).info, _matcher(cron.expression)
    margin = timedelta(days=2)
    instants = list(_minutes(start - margin, end + margin))
    walls = [instant.astimezone(zone).replace(tzinfo=None, fold=0) for instant in instants]
    if any(field.startswith("*") for field in cron.expression.split()[:2]):
        found = {instant for instant, wall in zip(instants, walls, strict=True) if matches(wall)}
    else:
        found = _fixed_fires(cron, instants, walls)
    return sorted(instant for instant in found if start <= instant < end)


def _fixed_fires(cron: Cron, instants: list[datetime], walls: list[datetime]) -> set[datetime]:
    matches, occurrences = _matcher(cron.expression), defaultdict(list)
    for instant, wall in zip(instants, walls, strict=True):
        occurrences[wall].append(instant)
    chosen = {"first": slice(1), "second": slice(-1, None), "both": slice(None)}[cron.dst_overlap]
    found = {at for wall, twice in occurrences.items() if matches(wall) for at in twice[chosen]}
    for instant, (before, after) in zip(instants[1:], pairwise(walls), strict=True):
        if cron.dst_gap == "next" and any(matches(lost) for lost in _minutes(before + MINUTE, after)):
            found.add(instant)
    return found


@cache
def _matcher(expression: str) -> _Matcher:
    return _Matcher(expression)


class _Matcher:
    def __init__(self, expression: str) -> None:
        self._cron = CronSim(expression, datetime(2000, 1, 1))  # noqa: DTZ001
        self._days: dict[date, bool] = {}

    def __call__(self, wall: datetime) -> bool:
        if wall.minute not in self._cron.minutes or wall.hour not in self._cron.hours:
            return False
        day = wall.date()
        if day not in self._days:
            self._days[day] = day.month in self._cron.months and self._cron.match_day(day)
        return self._days[day]


def _minutes(start: datetime, end: datetime) -> Iterable[datetime]:
    while start < end:
        yield start
        start += MINUTE


def instant_of(seconds: int) -> datetime:
    return EPOCH + timedelta(seconds=seconds)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]
