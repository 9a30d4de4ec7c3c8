"""Only real places are time zones, and what the engine assumes of them holds in all of the data."""

from __future__ import annotations

from itertools import pairwise

import pytest
from duetime.schedules import Cron, InvalidSchedule, zone_names
from duetime.schedules.zones import LARGEST_SHIFT, QUIET, WIDEST_SPREAD, find_zone

from tests.unit.schedules.oracle import read_changes


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "localtime",
        "Factory",
        "posixrules",
        "posix/Europe/Berlin",
        "right/Europe/Berlin",
        "Mars/Olympus",
        "../../etc/passwd",
        "/etc/passwd",
        "Europe/../Europe/Berlin",
        "Europe",
        "Europe/",
        "zone.tab",
        "tzdata.zi",
        "america/new_york",
        "America/New_York ",
        "America/New_York\0",
        "UTC+2",
        "+02:00",
        "x" * 10_000,
        "Ünited",
    ],
)
def test_a_name_that_is_no_zone_is_refused(name: str) -> None:
    with pytest.raises(InvalidSchedule, match="timezone: ") as refusal:
        Cron("0 0 * * *", name)
    assert refusal.value.field == "timezone"
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize(
    "name", ["UTC", "Etc/GMT+5", "America/Argentina/Buenos_Aires", "Asia/Calcutta", "EST5EDT"]
)
def test_every_iana_name_is_known_old_ones_too(name: str) -> None:
    assert name in zone_names()
    assert find_zone(name).info.key == name


def test_every_listed_zone_has_its_data() -> None:
    assert len(zone_names()) > 590
    assert all(find_zone(name).info.key == name for name in zone_names())


def test_no_zone_changes_its_offset_twice_within_the_quiet_span() -> None:
    apart = [
        later.at - earlier.at for name in zone_names() for earlier, later in pairwise(read_changes(name))
    ]
    assert min(apart) > QUIET


def test_no_zone_has_offsets_as_far_apart_as_the_widest_spread() -> None:
    for name in zone_names():
        offsets = [offset for change in read_changes(name) for offset in (change.before, change.after)]
        assert max(offsets, default=0) - min(offsets, default=0) < WIDEST_SPREAD, name


def test_no_change_is_larger_than_the_largest_shift() -> None:
    shifts = [abs(change.after - change.before) for name in zone_names() for change in read_changes(name)]
    assert max(shifts) <= LARGEST_SHIFT


def test_changes_are_found_where_the_zone_file_has_them() -> None:
    for name in ("America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Monrovia", "Asia/Gaza"):
        zone = find_zone(name)
        for change in read_changes(name)[1:]:
            assert zone.find_change(change.at - 70_001, change.at + 50_000, change.before) == change
            assert zone.find_change(change.at, change.at + 50_000, change.after) is None
