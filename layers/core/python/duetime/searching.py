"""An owner's list of jobs, newest first.

The list is spread over many key values of an index. Each is read from its newest entry on, all of them side by side, by
chunks that grow; what lies above the point to which all have been read is in its final order. How much one search reads
is bounded: a filter that hardly anything passes, over a very long list, ends a page early rather than reading on.

Jobs end while a list is read, and then stand in another part of it. What has ended is therefore never read further
than what lives (in the same bucket, which a job keeps): a job that ends is seen where it was, or later where it is.
What is promised: a job that fits all the while is on exactly one page. The exceptions: the moment by which an index may
be behind, and a job that has ended and goes from failed to done, or back, while the two are read.
"""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from itertools import product
from typing import Any, Final

from duetime.batches import in_batches
from duetime.budget import Budget
from duetime.clock import Clock
from duetime.job import Job
from duetime.listing import BUCKETS, Criteria, Listed, ListedPage, Lists, Part, Standing
from duetime.planning import Agenda
from duetime.status import JobStatus, RunStatus
from duetime.store import Store

_FIRST_CHUNK: Final = 4
_LARGEST_CHUNK: Final = 500
_LOADED_AT_ONCE: Final = 100


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
# Where they are, and what the index must say of them. What is RUNNING is found in another way: see running.py.
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
    # None: everybody's.
    owner: str | None
    wanted: Wanted | None = None
    # The rest of what the index can tell: type, priority, tag, name.
    criteria: Criteria = field(default_factory=Criteria)
    due_from: datetime | None = None
    due_before: datetime | None = None

    @property
    def has_due_range(self) -> bool:
        return self.due_from is not None or self.due_before is not None

    def places(self) -> tuple[tuple[Standing, ...], Criteria] | None:
        """Where to look, and what the index must say; None if nothing can fit."""
        standings, index_says = _PLACES[self.wanted]
        criteria = replace(self.criteria, **index_says)
        if not self.has_due_range:
            return standings, criteria
        # Only a job that is SCHEDULED has a next time: what has ended need not be read.
        if Standing.LIVE not in standings or criteria.status not in (None, JobStatus.SCHEDULED):
            return None
        return (Standing.LIVE,), replace(criteria, status=JobStatus.SCHEDULED)

    def fits(self, job: Job, now: datetime) -> bool:
        """As far as only the job itself can tell."""
        if self.owner not in (None, job.owner):
            return False
        if self.wanted is Wanted.PENDING and job.running:
            return False
        if self.wanted is Wanted.RUNNING and not job.running:
            return False
        if not self.has_due_range:
            return True
        due_at = next_due(job, now)
        return (
            due_at is not None
            and (self.due_from is None or due_at >= self.due_from)
            and (self.due_before is None or due_at < self.due_before)
        )


@dataclass(frozen=True, slots=True)
class Found:
    jobs: Sequence[Job]
    # Behind which place to go on; None if there is no more.
    behind: Listed | None


@dataclass(slots=True)
class _Stretch:
    """One part of the list, as far as it has been read."""

    part: Part
    # From which time on the next chunk begins, if it begins behind nothing.
    newest: datetime | None
    # Behind which the next chunk begins.
    until: Listed | None = None
    has_ended: bool = False
    # Entries above this are known; None if nothing was read, or everything.
    unread_from: datetime | None = None

    def take(self, page: ListedPage, no_further_than: datetime | None) -> Sequence[Listed]:
        """What counts of a chunk. What lies further is read again later, when it may be another."""
        reached = page.until.created_at if page.until else None
        if no_further_than is None or (reached is not None and reached >= no_further_than):
            self.until, self.has_ended, self.unread_from = page.until, page.until is None, reached
            return page.jobs
        self.until, self.newest, self.unread_from = None, no_further_than, no_further_than
        return [place for place in page.jobs if place.created_at > no_further_than]


@dataclass(slots=True)
class _Reading:
    stretches: list[_Stretch]
    behind: Listed | None
    chunk: int
    budget: Budget
    pool: set[Listed] = field(default_factory=set)

    @property
    def unread_from(self) -> datetime | None:
        """Entries above this are all known; None if everything is."""
        return max((s.unread_from for s in self.stretches if s.unread_from), default=None)

    def end_of_living(self, bucket: int) -> datetime | None:
        """How far the living of a bucket have been read; None if all have been, or nobody asks for them."""
        living = (s.unread_from for s in self.stretches if s.part[1:] == (Standing.LIVE, bucket))
        return next(living, None)

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

    def find(
        self, question: Question, *, limit: int, behind: Listed | None = None, budget: Budget | None = None
    ) -> Found:
        """A page, of one owner. It ends early, with a place to go on from, when the budget is spent."""
        assert question.owner is not None
        if (places := question.places()) is None:
            return Found((), None)
        standings, criteria = places
        parts = [Part(question.owner, *where) for where in product(standings, range(BUCKETS))]
        newest = behind.created_at if behind else None
        reading = _Reading(
            [_Stretch(part, newest) for part in parts],
            behind,
            max(_FIRST_CHUNK, 2 * limit // len(parts)),
            budget or Budget(),
        )
        found: list[Job] = []
        while True:
            self._read_on(reading, criteria, needed=limit + 1 - len(found))
            edge = reading.unread_from
            ready = reading.ready()
            for batch in in_batches(ready, _LOADED_AT_ONCE):
                found += self._fitting(batch, question, criteria)
                reading.budget.spend(len(batch))
                if len(found) > limit:
                    return Found(found[:limit], place_of(found[limit - 1]))
                if reading.budget.is_spent and batch[-1] != ready[-1]:
                    return Found(found, batch[-1])
            if edge is None:
                return Found(found, None)
            if reading.budget.is_spent:
                # "~" sorts behind every id: nothing at the edge has been seen yet.
                return Found(found, Listed(edge, "~"))

    def _read_on(self, reading: _Reading, criteria: Criteria, needed: int) -> None:
        short = reading.too_short_for(needed)
        self._read(reading, criteria, [s for s in short if s.part.standing is Standing.LIVE])
        self._read(reading, criteria, [s for s in short if s.part.standing is not Standing.LIVE])
        reading.chunk = min(reading.chunk * 4, _LARGEST_CHUNK)

    def _read(self, reading: _Reading, criteria: Criteria, stretches: Sequence[_Stretch]) -> None:
        if not stretches:
            return
        affordable = reading.budget.left // len(stretches)
        chunk = max(_FIRST_CHUNK, min(reading.chunk, affordable))

        def read(stretch: _Stretch) -> ListedPage:
            return self.lists.listed(
                stretch.part, criteria, limit=chunk, newest=stretch.newest, behind=stretch.until
            )

        for stretch, page in zip(stretches, self.threads.map(read, stretches), strict=True):
            is_living = stretch.part.standing is Standing.LIVE
            edge = None if is_living else reading.end_of_living(stretch.part.bucket)
            places = stretch.take(page, edge)
            reading.budget.spend(page.examined, queries=1)
            reading.pool.update(p for p in places if reading.behind is None or p < reading.behind)

    def _fitting(self, places: Sequence[Listed], question: Question, criteria: Criteria) -> list[Job]:
        """The index may be a moment behind: what counts is the job itself."""
        jobs = {job.job_id: job for job in self.store.load_jobs(place.job_id for place in places)}
        loaded = [jobs[place.job_id] for place in places if place.job_id in jobs]
        now = self.clock.now()
        return [job for job in loaded if criteria.fits(job) and question.fits(job, now)]


def next_due(job: Job, now: datetime) -> datetime | None:
    """The next time that the job is due, whether or not it is planned already."""
    return Agenda.of(job).next_due(now) if job.status is JobStatus.SCHEDULED else None


def place_of(job: Job) -> Listed:
    return Listed(job.created_at, job.job_id)
