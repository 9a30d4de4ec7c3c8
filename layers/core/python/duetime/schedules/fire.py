"""What a schedule yields, and what every schedule can do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, Protocol

from duetime.schedules.invalid import InvalidSchedule

Moved = Literal["gap", "overlap"] | None

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_FIRST_YEAR, _LAST_YEAR = 1970, 9998


@dataclass(frozen=True, slots=True)
class Fire:
    """One time at which a job is due.

    `nominal_at` (aware, UTC) is its identity: run ids and `end_at` go by it; jitter is added afterwards.
    `moved` says what daylight saving did to a fixed time:

    - None: nothing, it fires at the wall time that was asked for;
    - "gap": that wall time was skipped by the clocks, it fires at the instant the gap closes;
    - "overlap": that wall time occurs twice that day, and `dst_overlap` chose this one (or both).
    """

    nominal_at: datetime
    moved: Moved = None


class Schedule(Protocol):
    @property
    def shortest_gap_seconds(self) -> int | None:
        """The least time between two fires, by the wall clock; None when there is only one fire."""

    def fires_after(self, after: datetime) -> Iterator[Fire]:
        """Strictly after `after`, strictly increasing, computed as they are asked for."""


def require_moment(field: str, moment: datetime | None) -> None:
    if moment is None:
        return
    if moment.utcoffset() is None:
        raise InvalidSchedule(field, "has no UTC offset; write it as in 2030-01-31T09:00:00Z")
    # A day from either end of `datetime`, another offset or a look ahead would overflow.
    if not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
        raise InvalidSchedule(field, f"must lie in the years {_FIRST_YEAR} to {_LAST_YEAR}")


def require_window(start_at: datetime | None, end_at: datetime | None) -> None:
    require_moment("start_at", start_at)
    require_moment("end_at", end_at)
    if start_at is not None and end_at is not None and end_at < start_at:
        raise InvalidSchedule("end_at", "lies before start_at; give a later time, or leave it out")


def whole_seconds(moment: datetime) -> int:
    """Seconds since 1970, rounded down, in integers: a float would blur the microseconds of far years."""
    return (moment - EPOCH) // _SECOND


def whole_seconds_up(moment: datetime) -> int:
    return -((EPOCH - moment) // _SECOND)
