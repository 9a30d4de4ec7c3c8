"""Every expression that cannot be kept is refused with the field at fault and a word on what to do."""

from __future__ import annotations

from datetime import timedelta

import pytest
from duetime.schedules import Cron, Interval, InvalidSchedule, check_jitter, frequency_to_cron

from tests.unit.schedules.oracle import utc


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("", "has 0 fields"),
        ("* * * *", "has 4 fields"),
        ("* * * * * * *", "has 7 fields"),
        ("61 * * * *", "in the minute field is not understood"),
        ("* 24 * * *", "in the hour field is not understood"),
        ("0 0 0 * *", "in the day-of-month field is not understood"),
        ("0 0 * 13 *", "in the month field is not understood"),
        ("0 0 * * 8", "in the day-of-week field is not understood"),
        ("0 0 * * MONDAY", "in the day-of-week field is not understood"),
        ("a b c d e", "in the minute field is not understood"),
        ("1- * * * *", "in the minute field is not understood"),
        ("*/0 * * * *", "in the minute field is not understood"),
        ("*/90 * * * *", "has a step longer than the field"),
        ("0 22-3/2 * * *", "runs backwards and has a step"),
        ("0 0 15W * *", "asks for the nearest weekday"),
        ("H * * * *", "jitter_seconds spreads jobs"),
        ("0 0 31 2 *", "never happens"),
        ("0 0 30 2 *", "never happens"),
        ("0 0 31 4,6,9,11 *", "never happens"),
        ("@reboot", "is not one of @hourly"),
        ("*/5 * * * * *", "fires 5 s apart, and 10 s is the least"),
        ("* * * * * *", "fires 1 s apart"),
        ("0,55 * * * * *", "fires 5 s apart"),
        ("* * * * * */10", "Of six fields, the first is the seconds"),
        ("0 0 * * *" + " " * 300, "is longer than 255 characters"),
        ("٠ 0 * * *", "has characters that no cron expression has"),
    ],
)
def test_a_cron_expression_that_cannot_be_kept(expression: str, reason: str) -> None:
    with pytest.raises(InvalidSchedule) as refusal:
        Cron(expression)
    assert refusal.value.field == "cron_expression"
    assert reason in refusal.value.message


@pytest.mark.parametrize(("seconds", "ok"), [(9, False), (10, True), (10 * 366 * 86_400 + 1, False)])
def test_an_interval_has_bounds(seconds: int, ok: bool) -> None:
    if ok:
        Interval(seconds, utc(2026, 1, 1))
        return
    with pytest.raises(InvalidSchedule, match="interval_seconds: must be from 10 to"):
        Interval(seconds, utc(2026, 1, 1))


def test_an_end_before_the_start_is_refused() -> None:
    with pytest.raises(InvalidSchedule, match="end_at: lies before start_at"):
        Cron("0 0 * * *", start_at=utc(2026, 1, 2), end_at=utc(2026, 1, 1))


def test_a_time_without_an_offset_is_refused() -> None:
    with pytest.raises(InvalidSchedule, match="start_at: has no UTC offset"):
        Cron("0 0 * * *", start_at=utc(2026, 1, 2).replace(tzinfo=None))


@pytest.mark.parametrize(("field", "value"), [("dst_gap", "jump"), ("dst_overlap", "twice")])
def test_an_unknown_daylight_saving_policy_is_refused(field: str, value: str) -> None:
    with pytest.raises(InvalidSchedule, match=f"{field}: '{value}' is not one of"):
        Cron("0 0 * * *", **{field: value})  # type: ignore[arg-type]


def test_jitter_stays_below_the_period() -> None:
    hourly = Cron("0 * * * *")
    check_jitter(3599, hourly)
    with pytest.raises(InvalidSchedule, match="jitter_seconds: must be less than the 3600 s"):
        check_jitter(3600, hourly)
    with pytest.raises(InvalidSchedule, match="jitter_seconds: must not be negative"):
        check_jitter(-1, hourly)


def test_jitter_knows_that_a_mixed_schedule_has_short_gaps() -> None:
    with pytest.raises(InvalidSchedule, match="less than the 300 s"):
        check_jitter(600, Cron("0,5 * * * *"))


def test_a_frequency_word_is_a_cron() -> None:
    words = ("hourly", "daily", "weekly", "monthly", "yearly")
    assert [frequency_to_cron(word) for word in words] == [
        "0 * * * *",
        "0 0 * * *",
        "0 0 * * 0",
        "0 0 1 * *",
        "0 0 1 1 *",
    ]
    with pytest.raises(InvalidSchedule, match="frequency: 'often' is not a frequency"):
        frequency_to_cron("often")


def test_a_long_echo_is_cut() -> None:
    with pytest.raises(InvalidSchedule) as refusal:
        Cron("9" * 5000)
    assert len(refusal.value.message) < 200


def test_the_shortest_gap_is_found_across_midnight() -> None:
    assert Cron("55,5 23,0 * * *").shortest_gap_seconds == timedelta(minutes=10).total_seconds()
