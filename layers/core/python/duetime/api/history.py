"""`GET /jobs/{job_id}/events`: what was done to a job, the latest first, down to its creation."""

from collections.abc import Sequence
from typing import Any, Final

from duetime.api.answers import show_time
from duetime.audit import Action, Event, Source
from duetime.job import Job
from duetime.store import Store

# Below every entry, which begins with a year: only the creation is left.
_THE_CREATION: Final = "0"


def creation_of(job: Job) -> Event:
    """It has no entry of its own: what there is to say about it is on the job."""
    return Event(
        job_id=job.job_id,
        at=job.created_at,
        action=Action.CREATED,
        by=job.owner,
        source=Source(address=job.created_from),
        token="",
    )


def read_history(
    job: Job, store: Store, *, limit: int, before: str | None
) -> tuple[Sequence[Event], str | None]:
    """A page, and below which entry the next one begins."""
    page = store.events(job.job_id, limit=limit, before=before)
    if page.next_before:
        return page.events, page.next_before
    if len(page.events) == limit:
        return page.events, _THE_CREATION
    return [*page.events, creation_of(job)], None


def show_event(event: Event) -> dict[str, Any]:
    return {
        "at": show_time(event.at),
        "action": event.action,
        "by": event.by,
        "source": {
            "address": event.source.address,
            "agent": event.source.agent,
            "request_id": event.source.request_id,
        },
        "run_id": event.run_id,
        "changes": dict(event.changes) if event.changes else None,
        "detail": event.detail,
    }
