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
        if event.at <= at:
            break
        if event.changes:
            timing = _undone(timing, event.changes)
            # A new beat is counted from the change that made it; what it was counted from before is not known.
            if anchor_at == event.at:
                anchor_at = job.created_at
    cause = next((e for e in events if e.at <= at and e.action in _STATUS_AFTER), None)
    status = _STATUS_AFTER[Action(cause.action)] if cause else JobStatus.SCHEDULED
    return Past(replace(job, spec=replace(job.spec, timing=timing), anchor_at=anchor_at), status, cause)


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
