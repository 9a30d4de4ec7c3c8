"""An owner's list of jobs, newest first.

The list is spread over many key values of an index. Each is read from its newest entry on, all of them side by side, by
chunks that grow; what lies above the point to which all have been read is in its final order. How much one search reads
is bounded: a filter that hardly anything passes, over a very long list, ends a page early rather than reading on.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from itertools import product
from typing import Any, Final

from duetime.batches import in_batches
from duetime.clock import Clock
from duetime.job import Job
from duetime.listing import BUCKETS, Criteria, Listed, ListedPage, Lists, Part, Standing
from duetime.planning import Agenda
from duetime.status import JobStatus, RunStatus
from duetime.store import Store
from duetime.watch import SPREAD

MOST_EXAMINED: Final = 20_000
"""Entries that one search reads at the most, and jobs that it looks at."""

_FIRST_CHUNK: Final = 4
_LARGEST_CHUNK: Final = 500
_LOADED_AT_ONCE: Final = 100
_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Wanted(StrEnum):
    """A job's own status, or what people mean."""

    SCHEDULED = "SCHEDULED"
    PAUSED = "PAUSED"
    CANCELLED = "CANCELLED"
    COMPLETED = "COMPLETED"
    PENDING = "pending"  # waits for its time: SCHEDULED, and nothing of it under way
    RUNNING = "running"  # a run of it is under way
    DONE = "completed"  # COMPLETED, and its last run did not fail
    FAILED = "failed"  # its last run failed, whether or not it will run again


_ANY: Final = tuple(Standing)
_ENDED: Final = (Standing.DONE, Standing.FAILED)
# Where they are, and what the index must say of them.
_PLACES: Final[dict[Wanted | None, tuple[tuple[Standing, ...], dict[str, Any]]]] = {
    None: (_ANY, {}),
    Wanted.SCHEDULED: ((Standing.LIVE,), {"status": JobStatus.SCHEDULED}),
    Wanted.PAUSED: ((Standing.LIVE,), {"status": JobStatus.PAUSED}),
    Wanted.CANCELLED: (_ENDED, {"status": JobStatus.CANCELLED}),
    Wanted.COMPLETED: (_ENDED, {"status": JobStatus.COMPLETED}),
    Wanted.PENDING: ((Standing.LIVE,), {"status": JobStatus.SCHEDULED}),
    Wanted.DONE: ((Standing.DONE,), {"status": JobStatus.COMPLETED}),
    Wanted.FAILED: ((Standing.LIVE, Standing.FAILED), {"last_outcome": RunStatus.FAILED}),
}


@dataclass(frozen=True, slots=True)
class Question:
    owner: str
    wanted: Wanted | None = None
    # The rest of what the index can tell: type, priority, tag, name.
    criteria: Criteria = field(default_factory=Criteria)
    due_from: datetime | None = None
    due_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class Found:
    jobs: Sequence[Job]
    # Behind which place to go on; None if there is no more.
    behind: Listed | None


@dataclass(slots=True)
class _Stretch:
    """One part of the list, as far as it has been read."""

    part: Part
    # Behind which the next chunk begins; None if it has not begun, or has ended.
    until: Listed | None = None
    has_ended: bool = False
    unread_from: datetime | None = None

    def take(self, page: ListedPage) -> None:
        self.until, self.has_ended = page.until, page.until is None
        self.unread_from = page.until.created_at if page.until else None


@dataclass(slots=True)
class _Reading:
    stretches: list[_Stretch]
    behind: Listed | None
    chunk: int
    pool: set[Listed] = field(default_factory=set)
    examined: int = 0

    @property
    def unread_from(self) -> datetime | None:
        """Entries above this are all known; None if everything is."""
        return max((s.unread_from for s in self.stretches if s.unread_from), default=None)

    def too_short_for(self, needed: int) -> list[_Stretch]:
        """The stretches that may hold, unread, one of the so many newest."""
        unended = [stretch for stretch in self.stretches if not stretch.has_ended]
        if len(self.pool) < needed:
            return unended
        oldest = sorted(self.pool, reverse=True)[needed - 1].created_at
        return [s for s in unended if s.unread_from is None or s.unread_from >= oldest]

    def ready(self) -> list[Listed]:
        """Takes out what is in its final order."""
        edge = self.unread_from
        known = {place for place in self.pool if edge is None or place.created_at > edge}
        self.pool -= known
        return sorted(known, reverse=True)


@dataclass(frozen=True, slots=True)
class Search:
    store: Store
    lists: Lists
    clock: Clock
    threads: Executor

    def find(self, question: Question, *, limit: int, behind: Listed | None = None) -> Found:
        if question.wanted is Wanted.RUNNING:
            return self._running(question, limit, behind)
        standings, index_says = _PLACES[question.wanted]
        criteria = replace(question.criteria, **index_says)
        parts = [Part(question.owner, *where) for where in product(standings, range(BUCKETS))]
        chunk = max(_FIRST_CHUNK, 2 * limit // len(parts))
        reading = _Reading([_Stretch(part) for part in parts], behind, chunk)
        found: list[Job] = []
        while True:
            self._read_on(reading, criteria, needed=limit + 1 - len(found))
            edge = reading.unread_from
            for batch in in_batches(reading.ready(), _LOADED_AT_ONCE):
                found += self._fitting(batch, question, criteria)
                reading.examined += len(batch)
                if len(found) > limit:
                    return Found(found[:limit], _place(found[limit - 1]))
            if edge is None:
                return Found(found, None)
            if reading.examined >= MOST_EXAMINED:
                # "~" sorts behind every id: nothing at the edge has been seen yet.
                return Found(found, Listed(edge, "~"))

    def owners_behind(self, owner: str | None) -> Sequence[str]:
        """For those who see everybody's jobs: whose come after this owner's."""
        return [other for other in self.lists.owners() if owner is None or other > owner]

    def _read_on(self, reading: _Reading, criteria: Criteria, needed: int) -> None:
        newest = reading.behind.created_at if reading.behind else None

        def read(stretch: _Stretch) -> ListedPage:
            limit = reading.chunk
            return self.lists.listed(stretch.part, criteria, limit=limit, newest=newest, behind=stretch.until)

        short = reading.too_short_for(needed)
        for stretch, page in zip(short, self.threads.map(read, short), strict=True):
            stretch.take(page)
            reading.examined += page.examined
            reading.pool.update(p for p in page.jobs if reading.behind is None or p < reading.behind)
        reading.chunk = min(reading.chunk * 4, _LARGEST_CHUNK)

    def _fitting(self, places: Sequence[Listed], question: Question, criteria: Criteria) -> list[Job]:
        """The index may be a moment behind: what counts is the job itself."""
        jobs = {job.job_id: job for job in self.store.load_jobs(place.job_id for place in places)}
        loaded = [jobs[place.job_id] for place in places if place.job_id in jobs]
        return [job for job in loaded if criteria.fits(job) and self._fits(job, question)]

    def _fits(self, job: Job, question: Question) -> bool:
        if job.owner != question.owner:
            return False
        if question.wanted is Wanted.PENDING and job.running:
            return False
        if question.wanted is Wanted.RUNNING and not job.running:
            return False
        if question.due_from is None and question.due_before is None:
            return True
        due_at = next_due(job, self.clock.now())
        return (
            due_at is not None
            and (question.due_from is None or due_at >= question.due_from)
            and (question.due_before is None or due_at < question.due_before)
        )

    def _running(self, question: Question, limit: int, behind: Listed | None) -> Found:
        """What is under way is bounded by what workers can hold, so all of it is read."""
        look: Callable[[int], Sequence[str]] = lambda slot: [  # noqa: E731
            run.key.job_id for run in self.lists.under_way(slot, owner=question.owner)
        ]
        job_ids = {job_id for found in self.threads.map(look, range(SPREAD)) for job_id in found}
        places = [Listed(_BEGINNING, job_id) for job_id in sorted(job_ids)][:MOST_EXAMINED]
        jobs = [
            job
            for batch in in_batches(places, _LOADED_AT_ONCE)
            for job in self._fitting(batch, question, question.criteria)
        ]
        ahead = sorted(
            (job for job in jobs if behind is None or _place(job) < behind), key=_place, reverse=True
        )
        more = len(ahead) > limit
        return Found(ahead[:limit], _place(ahead[limit - 1]) if more else None)


def next_due(job: Job, now: datetime) -> datetime | None:
    """The next time that the job is due, whether or not it is planned already."""
    return Agenda.of(job).next_due(now) if job.status is JobStatus.SCHEDULED else None


def _place(job: Job) -> Listed:
    return Listed(job.created_at, job.job_id)
