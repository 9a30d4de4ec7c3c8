"""A job as it was at a moment, from what it is and from what was done to it since."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, Final

from duetime.audit import Action, Event
from duetime.instants import parse_instant
from duetime.job import Job
from duetime.status import JobStatus
from duetime.timing import CatchUp, ScheduleType, Timing

_STATUS_AFTER: Final = {
    Action.PAUSED: JobStatus.PAUSED,
    Action.RESUMED: JobStatus.SCHEDULED,
    Action.CANCELLED: JobStatus.CANCELLED,
}
_INSTANTS: Final = frozenset({"schedule_time", "start_at", "end_at"})
_BEAT: Final = frozenset({"schedule_type", "interval_seconds", "start_at"})
"""What an interval's beat consists of: a change of any of these counts it anew."""


@dataclass(frozen=True, slots=True)
class Past:
    job: Job
    status: JobStatus
    # What made it so, if it was a person.
    cause: Event | None


def rewind(job: Job, events: Sequence[Event], at: datetime) -> Past:
    """`events` are the latest first."""
    timing = job.spec.timing
    anchor_at = job.anchor_at
    for event in events:
        if event.at > at and event.changes:
            timing = _undone(timing, event.changes)
    if anchor_at > at:
        # A beat is counted from the change that made it, and the first from the creation.
        earlier = (event.at for event in events if event.at <= at and _changes_beat(event))
        anchor_at = next(earlier, job.created_at)
    cause = next((e for e in events if e.at <= at and e.action in _STATUS_AFTER), None)
    status = _STATUS_AFTER[Action(cause.action)] if cause else JobStatus.SCHEDULED
    return Past(replace(job, spec=replace(job.spec, timing=timing), anchor_at=anchor_at), status, cause)


def reaches_back(job: Job, events: Sequence[Event], at: datetime) -> bool:
    """Whether these, the latest of a job's events, are enough to tell how it was at that moment."""
    before = [event for event in events if event.at <= at]
    knows_beat = job.anchor_at <= at or any(_changes_beat(event) for event in before)
    knows_status = any(event.action in _STATUS_AFTER for event in before) or _was_scheduled(job, events, at)
    return bool(before) and knows_beat and knows_status


def _was_scheduled(job: Job, events: Sequence[Event], at: datetime) -> bool:
    """Whether that follows from what came after: most jobs were never paused, and have no event that says so."""
    later = [event for event in events if event.at > at and event.action in _STATUS_AFTER]
    return later[-1].action == Action.PAUSED if later else job.status is JobStatus.SCHEDULED


def _changes_beat(event: Event) -> bool:
    return bool(event.changes and _BEAT & event.changes.keys())


def _undone(timing: Timing, changes: Any) -> Timing:
    names = {field.name for field in fields(Timing)}
    before = {
        name: _read(name, change["from"])
        for name, change in changes.items()
        if name in names and "from" in change
    }
    return replace(timing, **before)


def _read(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in _INSTANTS:
        return parse_instant(value)
    return {"schedule_type": ScheduleType, "catch_up": CatchUp}.get(name, lambda same: same)(value)
