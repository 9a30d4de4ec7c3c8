"""Who did what to a job, when and from where: an entry beside the job, written in the same transaction as the change.

The creation needs none: what there is to say about it is on the job itself.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from duetime.instants import format_instant
from duetime.job import Job, JobSpec
from duetime.timing import Timing

DUETIME: Final = "duetime"
"""Who did it, where nobody asked for it."""


class Action(StrEnum):
    CREATED = "created"
    CHANGED = "changed"
    PAUSED = "paused"
    RESUMED = "resumed"
    CANCELLED = "cancelled"
    RAN = "ran"
    RUN_CANCELLED = "run_cancelled"
    REDRIVEN = "redriven"
    # Found by the auditor: a time without a run, and one with two.
    MISSED = "missed"
    DUPLICATED = "duplicated"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a request came from."""

    address: str | None = None
    agent: str | None = None
    request_id: str | None = None
    trace_id: str | None = None


def new_token() -> str:
    """Keeps two entries of the same millisecond apart."""
    return secrets.token_hex(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    job_id: str
    at: datetime
    action: str
    by: str
    source: Source = Source()
    run_id: str | None = None
    # For each field that changed, what it was and what it became.
    changes: Mapping[str, Any] | None = None
    detail: str | None = None
    token: str = field(default_factory=new_token)

    @property
    def entry(self) -> str:
        """Sorts by time."""
        return f"{format_instant(self.at)}#{self.token}"


@dataclass(frozen=True, slots=True)
class EventPage:
    events: Sequence[Event]
    # Where the next page starts, or None if this was the last one.
    next_before: str | None


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks for something, and from where."""

    principal: str
    source: Source = Source()

    def did(self, action: Action, job_id: str, at: datetime, **details: Any) -> Event:
        return Event(job_id=job_id, at=at, action=action, by=self.principal, source=self.source, **details)


_OPAQUE: Final = ("task", "payload", "notify")


def changes_between(before: Job, after: Job) -> dict[str, Any]:
    """Field by field, as the API names them. What may hold secrets is named, not shown: an audit is read by more
    people than wrote the job."""
    changes: dict[str, Any] = {}
    pairs = [
        *((f.name, before.spec.timing, after.spec.timing) for f in fields(Timing)),
        *((f.name, before.spec, after.spec) for f in fields(JobSpec) if f.name != "timing"),
    ]
    for name, old, new in pairs:
        was, became = getattr(old, name), getattr(new, name)
        if was == became:
            continue
        changes[name] = (
            {"fields": _changed_keys(was, became)}
            if name in _OPAQUE
            else {"from": _plain(was), "to": _plain(became)}
        )
    return changes


def _changed_keys(was: Any, became: Any) -> list[str]:
    if not isinstance(was, Mapping) or not isinstance(became, Mapping):
        return []
    missing = object()
    return sorted(
        str(key) for key in was.keys() | became.keys() if was.get(key, missing) != became.get(key, missing)
    )


def _plain(value: Any) -> Any:
    """As it would be in JSON."""
    match value:
        case datetime():
            return format_instant(value)
        case StrEnum():
            return value.value
        case tuple():
            return [_plain(inner) for inner in value]
        case None | bool() | int() | str() | float():
            return value
    return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
