"""Around the changes of every zone since 1900, the engine finds what a look at every single minute finds."""

from __future__ import annotations

from datetime import timedelta
from itertools import takewhile
from typing import get_args

from duetime.schedules import Cron, DstGap, DstOverlap, InvalidSchedule, zone_names
from duetime.schedules.zones import Change
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.unit.schedules.oracle import (
    fires_minute_by_minute,
    has_whole_minutes,
    instant_of,
    read_changes,
    utc,
)

SINCE_1900 = int(utc(1900, 1, 1).timestamp())
CHANGES = [
    (name, change)
    for name in sorted(zone_names())
    for change in read_changes(name)
    if change.at > SINCE_1900 and has_whole_minutes(change)
]
NASTY_ZONES = {
    *(
        "Australia/Lord_Howe",
        "America/Sao_Paulo",
        "Asia/Beirut",
        "America/Asuncion",
        "America/Havana",
        "Pacific/Apia",
    ),
    *(
        "America/St_Johns",
        "Africa/Casablanca",
        "Antarctica/Troll",
        "Asia/Gaza",
        "Asia/Pyongyang",
        "Europe/Dublin",
    ),
    *(
        "Pacific/Kwajalein",
        "America/Caracas",
        "Asia/Kathmandu",
        "Antarctica/Casey",
        "Africa/Cairo",
        "Asia/Amman",
    ),
}
NASTY_CHANGES = [pair for pair in CHANGES if pair[0] in NASTY_ZONES]

minutes = st.sampled_from(["0", "30", "59", "0,1,15,59", "*", "*/15", "*/30", "20-40/7"])
hours = st.sampled_from(
    ["*", "0", "1", "2", "3", "23", "0-3", "22,23,0,1,2", "*/2", "*/3", "1-3/2", "0-23", "12"]
)
days = st.sampled_from(["*", "*", "*", "L", "*/2", "1-7", "L,15", "31"])
months = st.sampled_from(["*", "*", "*", "*/2", "MAR-OCT", "1,4,9,12"])
weekdays = st.sampled_from(["*", "*", "*", "SUN", "MON-FRI", "5#2", "5L", "*/3", "1,5#1", "7"])
expressions = st.tuples(minutes, hours, days, months, weekdays).map(" ".join)
crons = st.tuples(expressions, st.sampled_from(get_args(DstGap)), st.sampled_from(get_args(DstOverlap)))


def check(cron: Cron, change: Change, minutes_before: int, minutes_after: int) -> None:
    start = instant_of(change.at) - timedelta(minutes=minutes_before)
    end = instant_of(change.at) + timedelta(minutes=minutes_after)
    fires = cron.fires_after(start - timedelta(microseconds=1))
    found = [fire.nominal_at for fire in takewhile(lambda fire: fire.nominal_at < end, fires)]
    assert found == fires_minute_by_minute(cron, start, end)


def cron_of(parts: tuple[str, DstGap, DstOverlap], zone: str) -> Cron:
    expression, gap, overlap = parts
    try:
        return Cron(expression, zone, gap, overlap)
    except InvalidSchedule as refusal:
        assume("never happens" not in refusal.message)
        raise


@settings(derandomize=True, database=None, deadline=None, max_examples=400)
@given(crons, st.sampled_from(CHANGES), st.integers(0, 1500), st.integers(1, 1500))
def test_every_change_of_every_zone(
    parts: tuple[str, DstGap, DstOverlap], where: tuple[str, Change], before: int, after: int
) -> None:
    zone, change = where
    check(cron_of(parts, zone), change, before, after)


@settings(derandomize=True, database=None, deadline=None, max_examples=400)
@given(crons, st.sampled_from(NASTY_CHANGES), st.integers(0, 1500), st.integers(1, 1500))
def test_the_zones_with_the_oddest_changes(
    parts: tuple[str, DstGap, DstOverlap], where: tuple[str, Change], before: int, after: int
) -> None:
    zone, change = where
    check(cron_of(parts, zone), change, before, after)
