"""When a job wants to run, in its owner's words. `planning.py` makes a schedule of them; most functions never do."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    # Not at run time: a worker should not load calendars and time zones.
    from duetime.schedules import DstGap, DstOverlap


class ScheduleType(StrEnum):
    IMMEDIATE = "IMMEDIATE"  # once, when it is accepted
    FUTURE = "FUTURE"  # once, at `schedule_time`
    CRON = "CRON"  # at wall-clock times in a zone
    INTERVAL = "INTERVAL"  # every so many seconds


RECURRING: Final = frozenset({ScheduleType.CRON, ScheduleType.INTERVAL})


class CatchUp(StrEnum):
    """What becomes of times that passed while nobody could plan them: an outage, a pause."""

    ONE = "one"  # the latest of them, once
    ALL = "all"  # each of them, one after the other
    SKIP = "skip"  # none


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    schedule_type: ScheduleType
    schedule_time: datetime | None = None
    cron_expression: str | None = None
    timezone: str = "UTC"
    interval_seconds: int | None = None
    start_at: datetime | None = None
    end_at: datetime | None = None
    jitter_seconds: int = 0
    dst_gap: "DstGap" = "next"
    dst_overlap: "DstOverlap" = "first"
    catch_up: CatchUp = CatchUp.ONE
