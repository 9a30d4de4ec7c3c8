"""When a job is due: pure, without a clock, a store or a network.

Every schedule yields its fires lazily and in order: `schedule.fires_after(moment)`.
"""

from duetime.schedules.cron import frequency_to_cron
from duetime.schedules.daylight import DstGap, DstOverlap
from duetime.schedules.fire import Fire, Moved, Schedule
from duetime.schedules.invalid import InvalidSchedule
from duetime.schedules.jitter import check_jitter, jitter_for
from duetime.schedules.preview import Flag, Upcoming, preview
from duetime.schedules.recurrence import Cron, Interval, Once
from duetime.schedules.zones import zone_names

__all__ = [
    "Cron",
    "DstGap",
    "DstOverlap",
    "Fire",
    "Flag",
    "Interval",
    "InvalidSchedule",
    "Moved",
    "Once",
    "Schedule",
    "Upcoming",
    "check_jitter",
    "frequency_to_cron",
    "jitter_for",
    "preview",
    "zone_names",
]
