"""An owner's dead letters: listing them, and giving them another chance."""

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass

from duetime.audit import Actor
from duetime.errors import Conflict, InvalidField
from duetime.instants import format_instant, parse_instant
from duetime.run import Run, RunKey
from duetime.run_control import RunControl
from duetime.status import RunStatus
from duetime.store import Store, WatchedRun


@dataclass(frozen=True, slots=True)
class LetterPage:
    runs: Sequence[Run]
    next_page_token: str | None


def list_dead_letters(
    owner: str, store: Store, *, limit: int, page_token: str | None, job_id: str | None = None
) -> LetterPage:
    before = parse_place(page_token) if page_token else None
    places = store.dead_letters(owner, limit=limit, before=before)
    found = store.load(place.key for place in places)
    runs = [
        found[place.key].run
        for place in places
        if place.key in found and found[place.key].run.status is RunStatus.DEAD_LETTERED
    ]
    mine = [run for run in runs if job_id in (None, run.job_id)]
    return LetterPage(mine, format_place(places[-1]) if len(places) == limit else None)


def redrive_dead_letters(
    owner: str,
    store: Store,
    control: RunControl,
    *,
    limit: int,
    page_token: str | None,
    job_id: str | None,
    actor: Actor,
) -> tuple[list[Run], list[tuple[Run, str]], str | None]:
    """Those that were redriven, those that could not be and why, and where to go on."""
    page = list_dead_letters(owner, store, limit=limit, page_token=page_token, job_id=job_id)
    found = store.load(run.key for run in page.runs)
    redriven: list[Run] = []
    refused: list[tuple[Run, str]] = []
    for run in page.runs:
        try:
            after = control.redrive(found[run.key], actor)
        except Conflict as conflict:
            refused.append((run, conflict.message))
            continue
        if after:
            redriven.append(after)
    return redriven, refused, page.next_page_token


def format_place(place: WatchedRun) -> str:
    content = [format_instant(place.at), *place.key]
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


def parse_place(token: str) -> WatchedRun:
    try:
        content = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        at, job_id, run_id = (str(part) for part in content)
        return WatchedRun(parse_instant(at), RunKey(job_id, run_id))
    except (ValueError, TypeError, binascii.Error):
        raise InvalidField("page_token", "is not one that a page before gave") from None
