"""cronsim follows Debian's cron, written by others. We agree with it everywhere except where a test here says why."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

import pytest
from cronsim import CronSim, CronSimError
from duetime.schedules import Cron, InvalidSchedule, zone_names
from duetime.schedules.cron import parse_cron
from duetime.schedules.zones import find_zone
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.unit.schedules.oracle import has_whole_minutes, read_changes, utc

NASTY_ZONES = [
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
        "Europe/Dublin",
        "Asia/Amman",
    ),
]
# Whole hours, and never at midnight: here cronsim has rhythms right too.
MILD_ZONES = [
    "America/New_York",
    "Europe/London",
    "Europe/Berlin",
    "Australia/Sydney",
    "Pacific/Auckland",
    "Asia/Tokyo",
]
ODD_SECONDS = {
    name for name in zone_names() if any(c.at > 0 and not has_whole_minutes(c) for c in read_changes(name))
}


def cronsim_fires(expression: str, zone: str, after: datetime, count: int) -> list[datetime]:
    fires = CronSim(expression, after.astimezone(find_zone(zone).info))
    return [at.astimezone(after.tzinfo) for at in islice(fires, count)]


def fires(expression: str, zone: str, after: datetime, count: int) -> list[datetime]:
    return [fire.nominal_at for fire in islice(Cron(expression, zone).fires_after(after), count)]


def field(low: int, high: int, names: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    """Everything that both sides take, but for stars."""
    values = st.integers(low, high).map(str)
    bounds = st.lists(st.integers(low, high), min_size=2, max_size=2, unique=True).map(sorted)
    ranges = bounds.map(lambda pair: f"{pair[0]}-{pair[1]}")
    steps = st.tuples(ranges, st.integers(1, high - low)).map(lambda pair: f"{pair[0]}/{pair[1]}")
    terms = values | ranges | steps
    if names:
        terms |= st.sampled_from(names)
    return st.lists(terms, min_size=1, max_size=3).map(",".join)


def starred(low: int, high: int) -> st.SearchStrategy[str]:
    return st.just("*") | st.integers(1, high - low + 1).map(lambda step: f"*/{step}")


MONTH_NAMES = ("JAN", "feb", "Mar", "DEC")
DAY_NAMES = ("SUN", "mon", "Fri", "SAT")
day_fields = st.just("*") | starred(1, 31) | field(1, 31) | st.sampled_from(["L", "L,1", "15,L"])
month_fields = st.just("*") | starred(1, 12) | field(1, 12, MONTH_NAMES)
special_weekdays = st.sampled_from(["5#2", "FRI#5", "0#1", "7#3", "5L", "0L", "7L", "1,5#2", "MON#1,3L"])
weekday_fields = st.just("*") | starred(0, 6) | field(0, 7, DAY_NAMES) | special_weekdays

calendars = st.tuples(day_fields, month_fields, weekday_fields).map(" ".join)
fixed = st.tuples(field(0, 59), field(0, 23), calendars).map(" ".join)
rhythms = st.one_of(
    st.tuples(starred(0, 59), field(0, 23), calendars),
    st.tuples(field(0, 59), starred(0, 23), calendars),
    st.tuples(starred(0, 59), starred(0, 23), calendars),
).map(" ".join)
moments = st.datetimes(datetime(1972, 2, 1), datetime(2090, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


def check(expression: str, zone: str, after: datetime, count: int) -> None:
    try:
        expected = cronsim_fires(expression, zone, after, count)
    except CronSimError:
        with pytest.raises(InvalidSchedule, match="cron_expression"):
            Cron(expression, zone)
        return
    if not expected:
        with pytest.raises(InvalidSchedule, match="never happens"):
            Cron(expression, zone)
        return
    assert fires(expression, zone, after, count) == expected


@settings(derandomize=True, database=None, deadline=None, max_examples=600)
@given(fixed, st.sampled_from(sorted(zone_names() - ODD_SECONDS)), moments, st.sampled_from([1, 3, 40]))
def test_fixed_times_in_every_zone(expression: str, zone: str, after: datetime, count: int) -> None:
    assume(not after.astimezone(find_zone(zone).info).fold)
    check(expression, zone, after, count)


@settings(derandomize=True, database=None, deadline=None, max_examples=300)
@given(fixed, st.sampled_from(NASTY_ZONES), moments, st.sampled_from([3, 40]))
def test_fixed_times_in_the_oddest_zones(expression: str, zone: str, after: datetime, count: int) -> None:
    assume(not after.astimezone(find_zone(zone).info).fold)
    check(expression, zone, after, count)


@settings(derandomize=True, database=None, deadline=None, max_examples=400)
@given(rhythms, st.sampled_from(MILD_ZONES), moments, st.sampled_from([1, 3, 40]))
def test_rhythms_in_zones_with_plain_changes(expression: str, zone: str, after: datetime, count: int) -> None:
    check(expression, zone, after, count)


@settings(derandomize=True, database=None, deadline=None, max_examples=200)
@given(fixed | rhythms, field(0, 59), moments)
def test_six_fields_in_utc(five: str, seconds: str, after: datetime) -> None:
    expression = f"{seconds} {five}"
    try:
        Cron(expression)
    except InvalidSchedule as refusal:
        assume("s apart" not in refusal.message)
    check(expression, "UTC", after, 20)


@pytest.mark.parametrize("zone", ["America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo"])
@pytest.mark.parametrize(
    "expression", ["30 1 * * *", "30 2 * * *", "0 0 * * *", "15,45 0-3 * * *", "0 0 29 2 *"]
)
def test_many_years_of_fixed_times(zone: str, expression: str) -> None:
    after = utc(1988, 3, 1)
    count = 12 if "29" in expression else 6_000
    assert fires(expression, zone, after, count) == cronsim_fires(expression, zone, after, count)


class TestDeliberateDifferences:
    def test_cronsim_goes_back_in_time_when_asked_in_the_second_half_of_an_overlap(self) -> None:
        after = utc(2026, 11, 1, 6, 15)  # 01:15 for the second time that day
        assert cronsim_fires("30 1 * * *", "America/New_York", after, 1) == [utc(2026, 11, 1, 5, 30)]
        assert fires("30 1 * * *", "America/New_York", after, 1) == [utc(2026, 11, 2, 6, 30)]

    def test_cronsim_gives_six_fields_no_daylight_saving_rule(self) -> None:
        after = utc(2026, 11, 1)
        twice = [utc(2026, 11, 1, 5, 30), utc(2026, 11, 1, 6, 30)]
        once = [utc(2026, 11, 1, 5, 30), utc(2026, 11, 2, 6, 30)]
        assert cronsim_fires("0 30 1 * * *", "America/New_York", after, 2) == twice
        assert fires("0 30 1 * * *", "America/New_York", after, 2) == once

    def test_cronsim_rounds_the_end_of_a_gap_up_to_the_minute(self) -> None:
        after = utc(1972, 1, 7)  # Liberia went from -00:44:30 to UTC at its midnight
        assert cronsim_fires("10 0 * * *", "Africa/Monrovia", after, 1) == [utc(1972, 1, 7, 0, 45)]
        assert fires("10 0 * * *", "Africa/Monrovia", after, 1) == [utc(1972, 1, 7, 0, 44, 30)]

    def test_cronsim_fires_a_rhythm_at_an_hour_not_asked_for_when_midnight_is_in_a_gap(self) -> None:
        after = utc(2018, 11, 3, 12)  # São Paulo had no 00:00 to 00:59 on 2018-11-04
        assert cronsim_fires("*/30 0 * * SUN", "America/Sao_Paulo", after, 1) == [utc(2018, 11, 4, 3)]
        assert fires("*/30 0 * * SUN", "America/Sao_Paulo", after, 1) == [utc(2018, 11, 11, 2)]

    def test_cronsim_loses_a_rhythm_in_the_second_half_of_a_half_hour_overlap(self) -> None:
        after = utc(2026, 4, 4, 14, 20)  # Lord Howe shows 01:30 to 01:59 twice on 2026-04-05
        both = [utc(2026, 4, 4, 14, 30), utc(2026, 4, 4, 15), utc(2026, 4, 4, 16)]
        assert cronsim_fires("30 * * * *", "Australia/Lord_Howe", after, 2) == [both[0], both[2]]
        assert fires("30 * * * *", "Australia/Lord_Howe", after, 3) == both

    def test_where_cronsim_would_never_return_a_rhythm_goes_on(self) -> None:
        # St John's put its clocks back at 00:01: midnight came twice, and 23:01 to 23:59 of the day before it too.
        found = fires("30 * * * *", "America/St_Johns", utc(1999, 10, 31, 1), 4)
        assert found == [
            utc(1999, 10, 31, 2),
            utc(1999, 10, 31, 3),
            utc(1999, 10, 31, 4),
            utc(1999, 10, 31, 5),
        ]

    def test_a_range_of_one_value_with_a_step_is_that_value(self) -> None:
        assert CronSim("9-9/20 * * * *", utc(2026, 1, 1)).minutes == {9, 29, 49}
        assert parse_cron("9-9/20 * * * *").minutes == (9,)

    def test_a_value_with_a_step_in_the_weekday_ends_on_saturday(self) -> None:
        assert CronSim("0 0 * * 5/2", utc(2026, 1, 1)).weekdays == {5, 7}
        assert parse_cron("0 0 * * 5/2").days.weekdays == {5}

    @pytest.mark.parametrize(
        "expression", ["*/90 * * * *", "0 */25 * * *", "0 0 L/2 * *", "0 0 LW * *", "0 0 * * */8"]
    )
    def test_what_cronsim_takes_and_we_refuse_as_misleading(self, expression: str) -> None:
        CronSim(expression, utc(2026, 1, 1))
        with pytest.raises(InvalidSchedule, match="cron_expression"):
            Cron(expression)

    @pytest.mark.parametrize(
        "expression",
        ["0 22-3 * * *", "0 0 * * FRI-MON", "0 0 * * L5", "0 0 ? * MON", "0 0 1-L * *", "@daily"],
    )
    def test_what_we_take_and_cronsim_refuses(self, expression: str) -> None:
        Cron(expression)
        with pytest.raises(CronSimError):
            CronSim(expression, utc(2026, 1, 1))


def test_an_iterator_taken_up_again_after_any_fire_goes_on_the_same() -> None:
    for zone in NASTY_ZONES:
        cron = Cron("15,45 0-3 * * *", zone, dst_overlap="both")
        found = [fire.nominal_at for fire in islice(cron.fires_after(utc(2017, 9, 20)), 400)]
        for earlier, later in pairwise(found):
            assert next(cron.fires_after(earlier)).nominal_at == later
            assert next(cron.fires_after(later - timedelta(microseconds=1))).nominal_at == later
