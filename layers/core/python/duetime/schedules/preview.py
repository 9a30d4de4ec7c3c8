"""The next times of a schedule, and what daylight saving did to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Literal

from duetime.schedules.cron import parse_cron
from duetime.schedules.fire import EPOCH, Fire, Schedule, whole_seconds
from duetime.schedules.recurrence import Cron
from duetime.schedules.wall import WallPattern, wall_datetime
from duetime.schedules.zones import QUIET, Change, Zone

Flag = Literal["gap", "overlap", "dropped"] | None


@dataclass(frozen=True, slots=True)
class Upcoming:
    """One line of a preview.

    `flag` is the fire's `moved`, or "dropped" for what does not fire: a fixed time in a gap with `dst_gap` "skip", or a
    real-time schedule's time in a gap that its rhythm does not make good (`0 */2 * * *` loses 02:00; `*/15 * * * *`
    loses nothing, since 01:45 is followed by 03:00 a quarter of an hour later). A gap has one such line.
    `wall_at` (naive) is the first wall time in the gap that was asked for and does not exist; None outside gaps.
    For what was dropped, `nominal_at` and `local_at` are the instant at which the gap closes.
    """

    nominal_at: datetime
    local_at: datetime
    flag: Flag = None
    wall_at: datetime | None = None


def preview(schedule: Schedule, after: datetime, count: int) -> list[Upcoming]:
    """The next `count` fires, with what was dropped on the way to the last of them."""
    fires = list(islice(schedule.fires_after(after), count))
    if not isinstance(schedule, Cron):
        return [Upcoming(fire.nominal_at, fire.nominal_at, fire.moved) for fire in fires]
    zone, pattern = schedule.zone, parse_cron(schedule.expression)
    lines = [_describe(fire, zone, pattern) for fire in fires]
    lines += _find_dropped(schedule, after, _last_instant(schedule, fires, count))
    return sorted(lines, key=lambda line: (line.nominal_at, line.flag != "dropped"))


def _describe(fire: Fire, zone: Zone, pattern: WallPattern) -> Upcoming:
    local_at = fire.nominal_at.astimezone(zone.info)
    if fire.moved != "gap":
        return Upcoming(fire.nominal_at, local_at, fire.moved)
    instant = whole_seconds(fire.nominal_at)
    wall = pattern.find_at_or_after(instant + zone.offset_at(instant - 1))
    return Upcoming(fire.nominal_at, local_at, "gap", wall_datetime(wall) if wall is not None else None)


def _last_instant(schedule: Cron, fires: list[Fire], count: int) -> datetime | None:
    if len(fires) < count and schedule.end_at is not None:
        return schedule.end_at
    return fires[-1].nominal_at if fires else None


def _find_dropped(schedule: Cron, after: datetime, last: datetime | None) -> Iterator[Upcoming]:
    pattern, zone = parse_cron(schedule.expression), schedule.zone
    if last is None or (pattern.is_fixed and schedule.dst_gap == "next"):
        return
    start = max(after, schedule.start_at or after)
    for change in _walk_changes(zone, whole_seconds(start), whole_seconds(last)):
        wall = _find_lost_wall(pattern, change)
        if wall is not None:
            closes_at = EPOCH + timedelta(seconds=change.at)
            yield Upcoming(closes_at, closes_at.astimezone(zone.info), "dropped", wall_datetime(wall))


def _walk_changes(zone: Zone, start: int, last: int) -> Iterator[Change]:
    offset = zone.offset_at(start)
    while start < last:
        end = min(start + QUIET, last)
        if change := zone.find_change(start, end, offset):
            yield change
            offset = change.after
        start = end


def _find_lost_wall(pattern: WallPattern, change: Change) -> int | None:
    """The first wall time in a gap that was asked for and that nothing stands in for."""
    wall, shift = pattern.find_at_or_after(change.at + change.before), change.after - change.before
    while wall is not None and wall < change.at + change.after:
        if pattern.is_fixed or pattern.find_at_or_after(wall + shift) != wall + shift:
            return wall
        wall = pattern.find_at_or_after(wall + 1)
    return None
