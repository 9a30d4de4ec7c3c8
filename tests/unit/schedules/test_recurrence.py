"""The three kinds of schedule: windows, anchors, jitter; and the payouts that must happen once a day."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from itertools import islice, takewhile

import pytest
from duetime.schedules import Cron, Interval, Once, jitter_for, preview
from duetime.schedules.zones import find_zone

from tests.unit.schedules.oracle import utc


@pytest.mark.parametrize(
    "zone", ["America/New_York", "Europe/London", "Australia/Lord_Howe", "America/Sao_Paulo"]
)
@pytest.mark.parametrize("time", ["0 0", "30 0", "30 1", "45 1", "0 2", "15 2", "30 2", "0 3", "0 12"])
@pytest.mark.parametrize("start", [utc(2017, 1, 1), utc(2025, 6, 1)], ids=["2017", "2025"])
def test_a_daily_payout_fires_once_a_day_every_day_for_two_years(
    zone: str, time: str, start: datetime
) -> None:
    """From 2017 on São Paulo still changed its clocks, at midnight; Lord Howe does by half an hour."""
    end = start + timedelta(days=731)
    cron = Cron(f"{time} * * *", zone)
    fires = takewhile(lambda fire: fire.nominal_at < end, cron.fires_after(start))
    days = Counter(fire.nominal_at.astimezone(find_zone(zone).info).date() for fire in fires)
    first, last = min(days), max(days)
    assert set(days.values()) == {1}
    assert len(days) == (last - first).days + 1 >= 730


def test_one_time_fires_once() -> None:
    once = Once(utc(2026, 1, 1, 12))
    assert [fire.nominal_at for fire in once.fires_after(utc(2026, 1, 1))] == [utc(2026, 1, 1, 12)]
    assert list(once.fires_after(utc(2026, 1, 1, 12))) == []


def test_an_interval_is_anchored_and_does_not_drift() -> None:
    interval = Interval(90, utc(2026, 1, 1, 0, 0, 5))
    found = [fire.nominal_at for fire in islice(interval.fires_after(utc(2026, 1, 1)), 3)]
    assert found == [utc(2026, 1, 1, 0, 0, 5), utc(2026, 1, 1, 0, 1, 35), utc(2026, 1, 1, 0, 3, 5)]
    later = next(interval.fires_after(utc(2027, 1, 1)))
    assert (later.nominal_at - interval.anchor_at) % timedelta(seconds=90) == timedelta(0)


def test_both_ends_of_the_window_belong_to_it() -> None:
    hourly = Cron("0 * * * *", start_at=utc(2026, 1, 1, 3), end_at=utc(2026, 1, 1, 5))
    assert [fire.nominal_at.hour for fire in hourly.fires_after(utc(2025, 1, 1))] == [3, 4, 5]
    every = Interval(3600, utc(2026, 1, 1), start_at=utc(2026, 1, 1, 3), end_at=utc(2026, 1, 1, 5))
    assert [fire.nominal_at.hour for fire in every.fires_after(utc(2025, 1, 1))] == [3, 4, 5]


def test_six_fields_run_six_times_a_minute() -> None:
    found = [
        fire.nominal_at.second for fire in islice(Cron("*/10 * * * * *").fires_after(utc(2026, 1, 1)), 7)
    ]
    assert found == [10, 20, 30, 40, 50, 0, 10]


def test_jitter_is_stable_within_its_bound_and_spreads() -> None:
    moments = [jitter_for(f"job-{number}", 600) for number in range(2000)]
    assert moments == [jitter_for(f"job-{number}", 600) for number in range(2000)]
    assert timedelta(0) <= min(moments)
    assert max(moments) < timedelta(seconds=600)
    quarters = Counter(moment // timedelta(seconds=150) for moment in moments)
    assert all(400 < count < 600 for count in quarters.values())
    assert jitter_for("job", 0) == timedelta(0)


class TestPreview:
    def test_a_time_in_the_gap_is_flagged_with_the_wall_time_that_was_asked_for(self) -> None:
        lines = preview(Cron("30 2 * * *", "America/New_York"), utc(2026, 3, 7, 12), 2)
        assert [(line.flag, line.local_at.hour, line.wall_at and line.wall_at.hour) for line in lines] == [
            ("gap", 3, 2),
            (None, 2, None),
        ]

    def test_a_time_that_occurs_twice_is_flagged(self) -> None:
        lines = preview(Cron("30 1 * * *", "America/New_York"), utc(2026, 10, 31, 12), 2)
        assert [line.flag for line in lines] == ["overlap", None]

    def test_a_dropped_time_has_a_line_of_its_own_and_does_not_count(self) -> None:
        cron = Cron("30 2 * * *", "America/New_York", dst_gap="skip")
        lines = preview(cron, utc(2026, 3, 7, 12), 2)
        assert [line.flag for line in lines] == ["dropped", None, None]

    def test_a_rhythm_that_loses_a_time_says_so(self) -> None:
        lines = preview(Cron("0 */2 * * *", "America/New_York"), utc(2026, 3, 8, 4), 3)
        assert [(line.flag, line.local_at.hour) for line in lines] == [
            (None, 0),
            ("dropped", 3),
            (None, 4),
            (None, 6),
        ]

    def test_a_rhythm_that_goes_on_through_the_gap_says_nothing(self) -> None:
        lines = preview(Cron("*/15 * * * *", "America/New_York"), utc(2026, 3, 8, 6), 8)
        assert {line.flag for line in lines} == {None}
