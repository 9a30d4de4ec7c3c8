"""Notices: what happened to a job or a run that somebody may want to hear of."""

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Final, Protocol

from duetime.instants import format_instant, parse_instant
from duetime.job import Job
from duetime.measuring import is_late
from duetime.notify import NoticeEvent
from duetime.run import Run
from duetime.status import RunStatus

LONGEST_ERROR: Final = 1000
_NAMESPACE: Final = uuid.UUID("c8a4a0a6-0d0c-5d0e-8f5a-3f0f3f7a2b51")
_TIMES: Final = ("at", "due_at", "not_before")
_ENTERED: Final[Mapping[RunStatus, NoticeEvent]] = {
    RunStatus.SUCCEEDED: NoticeEvent.SUCCEEDED,
    RunStatus.FAILED: NoticeEvent.FAILED,
    RunStatus.DEAD_LETTERED: NoticeEvent.DEAD_LETTERED,
    RunStatus.RETRYING: NoticeEvent.RETRIED,
}


class RunChange(Protocol):
    """A run as it became, and as it was (None: it is new). The stream's `Change` is one."""

    @property
    def run(self) -> Run: ...

    @property
    def was(self) -> Run | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    # Follows from what it tells, so that whoever is told twice can know it.
    notice_id: str
    event: NoticeEvent
    owner: str
    job_id: str
    at: datetime
    run_id: str | None = None
    status: str | None = None
    attempt: int | None = None
    max_attempt: int | None = None
    due_at: datetime | None = None
    # When the next attempt may start.
    not_before: datetime | None = None
    error: str | None = None
    # By whom, where a person did it.
    by: str | None = None
    # Only the job knows these; whoever sends the notice on looks them up.
    job_name: str | None = None
    tags: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """None is left out, times are text."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        told = {name: value for name, value in values.items() if value not in (None, ())}
        return told | {name: format_instant(told[name]) for name in _TIMES if name in told}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Notice":
        known = {field.name for field in fields(cls)}
        read = {name: value for name, value in values.items() if name in known}
        read |= {name: parse_instant(read[name]) for name in _TIMES if name in read}
        return cls(**read | {"event": NoticeEvent(read["event"]), "tags": tuple(read.get("tags", ()))})


def notices_for(change: RunChange) -> Iterator[Notice]:
    """What is new: a status that was entered, a run that was found late."""
    run, was = change.run, change.was
    entered = was is None or was.status is not run.status
    if entered and (event := _ENTERED.get(run.status)):
        yield _of_run(event, run, run.modified_time)
    # Set once by whoever watches for late runs.
    if run.late_at and not (was and was.late_at):
        yield _of_run(NoticeEvent.LATE, run, run.late_at)
    if entered and run.status is RunStatus.RUNNING and run.attempt == 1 and _started_unseen(run):
        yield _of_run(NoticeEvent.LATE, run, run.modified_time)


def _started_unseen(run: Run) -> bool:
    """It started late, and nobody came by while it waited."""
    return run.late_at is None and run.start_time is not None and is_late(run, run.start_time)


def paused_notice(job: Job) -> Notice:
    """Of a job that was just paused."""
    return _of_job(NoticeEvent.PAUSED, job, job.updated_at, known_by=job.updated_at, by=job.updated_by)


def missed_notice(job: Job, nominal_at: datetime, found_at: datetime) -> Notice:
    """Of a time for which there is no run. However often it is found, it is one notice."""
    return _of_job(NoticeEvent.MISSED, job, found_at, known_by=nominal_at, due_at=nominal_at)


def _of_run(event: NoticeEvent, run: Run, at: datetime) -> Notice:
    return Notice(
        notice_id=_id(event, run.job_id, run.run_id, format_instant(at)),
        event=event,
        owner=run.owner,
        job_id=run.job_id,
        at=at,
        run_id=run.run_id,
        status=run.status.value,
        attempt=run.attempt,
        max_attempt=run.max_attempt,
        due_at=run.due_at,
        not_before=run.not_before if event is NoticeEvent.RETRIED else None,
        error=run.error_message and run.error_message[:LONGEST_ERROR],
    )


def _of_job(event: NoticeEvent, job: Job, at: datetime, *, known_by: datetime, **told: Any) -> Notice:
    notice_id = _id(event, job.job_id, format_instant(known_by))
    return Notice(notice_id=notice_id, event=event, owner=job.owner, job_id=job.job_id, at=at, **told)


def _id(*parts: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, "\n".join(parts)))
