"""Notices as their recipients read them: JSON for programs, a few lines for people."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final

from duetime.instants import format_instant
from duetime.notices import Notice
from duetime.notify import NoticeEvent
from duetime.storms import Window

_NAMESPACE: Final = uuid.UUID("7d9b0e0a-4a0f-5b46-9a57-0e5c3d1f8a21")
_LONGEST_SUBJECT: Final = 100
_LONGEST_SMS: Final = 140
# What it happens to, and what is said of one and of many.
_SAID: Final[Mapping[NoticeEvent, tuple[str, str, str]]] = {
    NoticeEvent.SUCCEEDED: ("run", "succeeded", "succeeded"),
    NoticeEvent.FAILED: ("run", "failed", "failed"),
    NoticeEvent.DEAD_LETTERED: ("run", "became a dead letter", "became dead letters"),
    NoticeEvent.RETRIED: ("run", "failed and will be retried", "failed and will be retried"),
    NoticeEvent.LATE: ("run", "is late", "are late"),
    NoticeEvent.MISSED: ("time", "was missed", "were missed"),
    NoticeEvent.PAUSED: ("schedule", "was paused", "were paused"),
}
_TOLD_TO_PEOPLE: Final = ("error", "attempt", "max_attempt", "due_at", "not_before", "by", "job_id", "run_id")


@dataclass(frozen=True, slots=True)
class Wording:
    """One piece of news in every form."""

    message_id: str
    event: NoticeEvent
    content: Mapping[str, Any]
    # One line, and the rest of a letter.
    headline: str
    lines: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Wording":
        return cls(**{**values, "event": NoticeEvent(values["event"]), "lines": tuple(values["lines"])})

    @property
    def subject(self) -> str:
        """SNS takes 100 characters of ASCII without control characters."""
        ascii_text = f"Duetime: {self.headline}".encode("ascii", "replace").decode()
        return "".join(c if c.isprintable() else " " for c in ascii_text)[:_LONGEST_SUBJECT]

    @property
    def letter(self) -> str:
        return "\n".join((self.headline + ".", "", *self.lines))

    @property
    def short(self) -> str:
        return f"Duetime: {self.headline}"[:_LONGEST_SMS]


def word_notice(notice: Notice) -> Wording:
    data = notice.to_json()
    name = notice.job_name or notice.job_id
    thing, said, _ = _SAID[notice.event]
    return Wording(
        message_id=notice.notice_id,
        event=notice.event,
        content={"type": notice.event.value, "timestamp": data["at"], "data": data},
        headline=f"a {thing} of {name} {said}",
        lines=tuple(f"{field}: {data[field]}" for field in _TOLD_TO_PEOPLE if field in data),
    )


def word_summary(window: Window, owner: str) -> Wording:
    """Of what a window held back."""
    assert window.first_at is not None
    assert window.last_at is not None
    first_at, last_at = format_instant(window.first_at), format_instant(window.last_at)
    event = window.key.event
    text = _summed_up(window, window.first_at, window.last_at)
    data = {
        "event": event.value,
        "owner": owner,
        "count": window.held,
        "jobs": [{"job_id": job_id, "job_name": name} for job_id, name in window.jobs.items()],
        "more_jobs": window.more_jobs,
        "first_at": first_at,
        "last_at": last_at,
        "last_error": window.last_error,
        "text": text,
    }
    told = (window.key.recipient, event, format_instant(window.key.starts_at))
    return Wording(
        message_id=str(uuid.uuid5(_NAMESPACE, "\n".join(told))),
        event=event,
        content={"type": f"{event}.summary", "timestamp": last_at, "data": data},
        headline=text,
        lines=(
            *(f"{name} ({job_id})" for job_id, name in window.jobs.items()),
            *(["and others"] if window.more_jobs else []),
            *([f"The last error: {window.last_error}"] if window.last_error else []),
        ),
    )


def _summed_up(window: Window, first_at: datetime, last_at: datetime) -> str:
    thing, of_one, of_many = _SAID[window.key.event]
    jobs = len(window.jobs)
    of_jobs = f"more than {jobs} jobs" if window.more_jobs else _counted(jobs, "job")
    what = f"{_counted(window.held, f'more {thing}')} of {of_jobs} {of_one if window.held == 1 else of_many}"
    return f"{what} between {format_instant(first_at)} and {format_instant(last_at)}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
