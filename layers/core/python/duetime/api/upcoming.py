"""The next times of a job, or of a schedule that is not a job yet."""

from datetime import datetime, timedelta
from typing import Any, Final

from duetime.api.answers import show_upcoming
from duetime.api.requests import Preview, parse_time
from duetime.errors import InvalidField
from duetime.job import Job
from duetime.planning import Agenda, schedule_of
from duetime.schedules import InvalidSchedule, check_jitter, preview
from duetime.status import JobStatus

_TICK: Final = timedelta(microseconds=1)


def upcoming_of(job: Job, now: datetime, count: int) -> list[dict[str, Any]]:
    if job.status is not JobStatus.SCHEDULED:
        return []
    agenda = Agenda.of(job)
    # What is due now and later, by its jitter.
    return show_upcoming(preview(agenda.schedule, now - agenda.jitter - _TICK, count), agenda.jitter)


def preview_schedule(asked: Preview, now: datetime) -> list[dict[str, Any]]:
    """Jitter follows from a job's id, so it is checked here and not shown."""
    after = parse_time(asked.after) if asked.after else now
    try:
        schedule = schedule_of(asked.to_timing(), after)
        check_jitter(asked.jitter_seconds, schedule)
        return show_upcoming(preview(schedule, after - _TICK, asked.count))
    except InvalidSchedule as error:
        raise InvalidField(error.field, error.message) from error
