from datetime import UTC, datetime, timedelta, timezone

import pytest
from duetime.clock import ManualClock, SystemClock
from duetime.hints import Hint, ReceivedHint
from duetime.instants import format_instant, parse_instant, to_milliseconds

from tests.factories import NOW, a_job, a_run


def test_an_instant_reads_back_as_it_was_written() -> None:
    assert parse_instant(format_instant(NOW)) == NOW


def test_an_instant_is_written_in_utc_and_cut_to_the_millisecond() -> None:
    there = datetime(2026, 11, 18, 9, 0, 0, 123999, tzinfo=timezone(timedelta(hours=2)))
    assert format_instant(there) == "2026-11-18T07:00:00.123Z"


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        to_milliseconds(datetime(2026, 1, 1))  # noqa: DTZ001


@pytest.mark.parametrize("text", ["", "2026-11-18T07:00:00Z", "2026-11-18T07:00:00.000+00"])
def test_what_duetime_did_not_write_is_not_an_instant(text: str) -> None:
    with pytest.raises(ValueError, match="not an instant"):
        parse_instant(text)


def test_a_manual_clock_moves_by_waiting_and_never_back() -> None:
    clock = ManualClock(NOW)
    clock.wait_until(NOW - timedelta(hours=1))
    assert clock.now() == NOW
    clock.wait_until(NOW + timedelta(hours=1))
    assert clock.now() == NOW + timedelta(hours=1)


def test_the_system_clock_never_returns_from_a_wait_early() -> None:
    clock = SystemClock()
    instant = clock.now() + timedelta(milliseconds=3)
    clock.wait_until(instant)
    assert datetime.now(UTC) >= instant


def test_a_hint_is_delayed_by_the_whole_seconds_that_remain_but_for_the_lead() -> None:
    hint = Hint.of(a_run(a_job(), at=NOW + timedelta(seconds=2, milliseconds=900)))
    none, second = timedelta(), timedelta(seconds=1)
    assert [hint.delay_seconds(NOW, lead) for lead in (none, second)] == [2, 1]
    assert hint.delay_seconds(NOW + timedelta(minutes=1), none) == 0
    assert hint.delay_seconds(NOW - timedelta(days=1), none) == 900


def test_a_hint_survives_its_queue() -> None:
    hint = Hint.of(a_run(a_job()))
    assert ReceivedHint.from_message(hint.to_message()) == ReceivedHint(hint.key, hint.not_before)
