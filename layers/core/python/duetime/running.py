"""The jobs of which a run is under way: read off the watch index, once for everybody who is asked about.

They come owner by owner, the newest first. Should more be under way than one request may read, what follows is a list
for the next slots, and so on: a job with several runs under way may then come once in each.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Final, NamedTuple

from duetime.batches import in_batches
from duetime.budget import Budget
from duetime.clock import Clock
from duetime.held import read_slots
from duetime.job import Job
from duetime.listing import Listed, Lists
from duetime.searching import Question, place_of
from duetime.store import Store
from duetime.watch import HELD_SLOTS

_LOADED_AT_ONCE: Final = 100


class RunningPlace(NamedTuple):
    """Where a page ended."""

    # The first of the slots that it looked at.
    slot: int
    # None: nothing of these slots has been listed.
    owner: str | None = None
    behind: Listed | None = None


class FoundRunning(NamedTuple):
    jobs: Sequence[Job]
    # None if there is no more.
    behind: RunningPlace | None


class _Window(NamedTuple):
    """What is under way in some slots."""

    job_ids: Mapping[str, set[str]]
    following: int | None


@dataclass(frozen=True, slots=True)
class Running:
    store: Store
    lists: Lists
    clock: Clock
    threads: Executor

    def find(
        self,
        question: Question,
        *,
        limit: int,
        behind: RunningPlace | None = None,
        budget: Budget | None = None,
    ) -> FoundRunning:
        slot = behind.slot if behind else HELD_SLOTS[0]
        window = self._window(question.owner, slot, budget or Budget())
        found: list[Job] = []
        for owner in sorted(window.job_ids):
            if behind and behind.owner and owner < behind.owner:
                continue
            jobs = sorted(self._fitting(window.job_ids[owner], question), key=place_of, reverse=True)
            if behind and behind.behind and owner == behind.owner:
                jobs = [job for job in jobs if place_of(job) < behind.behind]
            found += jobs
            if len(found) > limit:
                last = found[limit - 1]
                return FoundRunning(found[:limit], RunningPlace(slot, last.owner, place_of(last)))
        following = None if window.following is None else RunningPlace(window.following)
        return FoundRunning(found, following)

    def _window(self, owner: str | None, first: int, budget: Budget) -> _Window:
        job_ids: dict[str, set[str]] = {}
        slots = [slot for slot in HELD_SLOTS if slot >= first]
        for held in read_slots(self.lists, self.threads, slots, owner=owner):
            for run in held.runs:
                job_ids.setdefault(run.owner, set()).add(run.key.job_id)
            budget.spend(held.examined, queries=held.queries)
            if budget.is_spent and held.slot != slots[-1]:
                return _Window(job_ids, held.slot + 1)
        return _Window(job_ids, None)

    def _fitting(self, job_ids: set[str], question: Question) -> list[Job]:
        """The index may be a moment behind: what counts is the job itself."""
        now = self.clock.now()
        return [
            job
            for batch in in_batches(sorted(job_ids), _LOADED_AT_ONCE)
            for job in self.store.load_jobs(batch)
            if question.criteria.fits(job) and question.fits(job, now)
        ]
