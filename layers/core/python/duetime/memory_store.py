"""A store in a dictionary: for Duetime's own tests, and for those of people who build on it."""

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import Any

from duetime.audit import Event, EventPage
from duetime.job import Job
from duetime.listing import Criteria, Listed, ListedPage, Part, UnderWay, UnderWayPage, part_of
from duetime.pair import JobRun
from duetime.run import Run, RunKey
from duetime.status import RunStatus
from duetime.store import (
    ALL_RUNS,
    GUARDED_BY_RENEWAL,
    MOST_RUNS_READ,
    TALLIES,
    LateRuns,
    Move,
    NewJob,
    Once,
    RunPage,
    WaitingJob,
    WatchedRun,
    WhichRuns,
    guarded_fields,
    guarded_with_its_job,
    judged_by_change,
    judged_by_move,
)
from duetime.watch import DEAD_SPREAD, dead_key, open_key, shard_of, watch_of


class MemoryStore:
    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._runs: dict[RunKey, Run] = {}
        self._events: dict[str, dict[str, Event]] = {}
        self._once: dict[Once, str] = {}
        self._owners: set[str] = set()
        # Each verb is atomic, as DynamoDB's conditional writes and transactions are.
        self._lock = threading.RLock()

    def create(self, job: Job, runs: Sequence[Run]) -> Job | None:
        with self._lock:
            if existing := self._jobs.get(job.job_id):
                return existing
            self._jobs[job.job_id] = job
            self._runs.update({run.key: run for run in runs})
            return None

    def create_many(self, new: Sequence[NewJob]) -> Sequence[Job | None]:
        return [self.create(job, runs) for job, runs in new]

    def get_job(self, job_id: str) -> Job | None:
        return self._jobs.get(job_id)

    def get_run(self, key: RunKey) -> Run | None:
        return self._runs.get(key)

    def list_runs(
        self,
        job_id: str,
        *,
        limit: int,
        before: str | None = None,
        since: str | None = None,
        which: WhichRuns = ALL_RUNS,
    ) -> RunPage:
        with self._lock:
            runs = [run for run in self._runs.values() if run.job_id == job_id]
        earlier = sorted(
            (run for run in runs if run.run_id >= (since or "") and (before is None or run.run_id < before)),
            key=lambda run: run.run_id,
            reverse=True,
        )
        found: list[Run] = []
        for number, run in enumerate(earlier, 1):
            if which.fits(run):
                found.append(run)
            if len(found) > limit:
                return RunPage(found[:limit], found[limit - 1].run_id)
            if which != ALL_RUNS and number == MOST_RUNS_READ < len(earlier):
                return RunPage(found, run.run_id)
        return RunPage(found, None)

    def runs_from(self, job_id: str, *, since: str, until: str, limit: int) -> Sequence[Run]:
        with self._lock:
            runs = [run for run in self._runs.values() if run.job_id == job_id]
        return sorted((r for r in runs if since <= r.run_id <= until), key=lambda run: run.run_id)[:limit]

    def queued_runs(self, job_id: str, *, since: str, until: str, limit: int) -> Sequence[Run]:
        with self._lock:
            runs = [run for run in self._runs.values() if run.job_id == job_id]
        queued = [run for run in runs if run.status is RunStatus.QUEUED and since <= run.run_id <= until]
        return sorted(queued, key=lambda run: run.run_id)[:limit]

    def load(self, keys: Iterable[RunKey]) -> Mapping[RunKey, JobRun]:
        with self._lock:
            return {
                key: JobRun(self._jobs[key.job_id], self._runs[key])
                for key in keys
                if key in self._runs and key.job_id in self._jobs
            }

    def load_jobs(self, job_ids: Iterable[str]) -> Sequence[Job]:
        with self._lock:
            return [self._jobs[job_id] for job_id in dict.fromkeys(job_ids) if job_id in self._jobs]

    def change(
        self, seen: Job, after: Job, runs: Sequence[Run] = (), *, event: Event | None = None
    ) -> Job | None:
        with self._lock:
            if not self.adjust(seen, after, judged_by_change(after)):
                return self._jobs[seen.job_id]
            for run in runs:
                self.add_run(run)
            self._keep(event)
            return None

    def exchange(
        self,
        seen: JobRun,
        after: JobRun,
        judged: Collection[str],
        *,
        by_holder: bool = False,
        event: Event | None = None,
    ) -> JobRun | None:
        with self._lock:
            there = JobRun(self._jobs[seen.job.job_id], self._runs[seen.run.key])
            job_holds = seen.job == after.job or _same(seen.job, there.job, judged)
            if not job_holds or not self._write(seen.run, after.run, guarded_with_its_job(by_holder)):
                return there
            self._keep(event)
            self._jobs[seen.job.job_id] = _with_difference(there.job, seen.job, after.job)
            return None

    def advance(self, seen: Run, after: Run, *, by_holder: bool = False, event: Event | None = None) -> bool:
        with self._lock:
            if not self._write(seen, after, guarded_fields(by_holder)):
                return False
            self._keep(event)
            return True

    def renew(self, held: Run, deadline_at: datetime) -> Run | None:
        with self._lock:
            renewed = self._write(held, replace(held, deadline_at=deadline_at), GUARDED_BY_RENEWAL)
            return self._runs[held.key] if renewed else None

    def _write(self, seen: Run, after: Run, guarded: Iterable[str]) -> bool:
        there = self._runs[seen.key]
        if not _same(seen, there, guarded):
            return False
        self._runs[seen.key] = replace(there, **_difference(seen, after))
        return True

    def adjust(self, seen: Job, after: Job, judged: Collection[str]) -> bool:
        with self._lock:
            there = self._jobs[seen.job_id]
            if not _same(seen, there, judged):
                return False
            self._jobs[seen.job_id] = _with_difference(there, seen, after)
            return True

    def waiting(
        self, shard: int, *, until: datetime, limit: int, after: WaitingJob | None = None
    ) -> Sequence[WaitingJob]:
        with self._lock:
            found = [
                WaitingJob(job.next_run_at, job.job_id)
                for job in self._jobs.values()
                if job.waits and job.next_run_at and job.next_run_at < until and shard_of(job.job_id) == shard
            ]
        return sorted(place for place in found if after is None or place > after)[:limit]

    def add_run(self, run: Run, *, event: Event | None = None) -> bool:
        with self._lock:
            is_new = self._runs.setdefault(run.key, run) is run
            self._keep(event if is_new else None)
            return is_new

    def add_run_once(self, run: Run, once: Once, *, event: Event) -> str | None:
        with self._lock:
            if first := self._once.get(once):
                return first
            self._once[once] = run.run_id
            self.add_run(run, event=event)
            return None

    def move_on(self, moves: Sequence[Move]) -> Collection[str]:
        return [move.seen.job_id for move in moves if not self._move(move)]

    def listed(
        self,
        part: Part,
        criteria: Criteria,
        *,
        limit: int,
        newest: datetime | None = None,
        behind: Listed | None = None,
    ) -> ListedPage:
        with self._lock:
            jobs = [job for job in self._jobs.values() if part_of(job) == part]
        if newest:
            jobs = [job for job in jobs if job.created_at <= newest]
        entries = sorted(
            ((Listed(job.created_at, job.job_id), job) for job in jobs),
            key=lambda entry: entry[0],
            reverse=True,
        )
        ahead = [entry for entry in entries if behind is None or entry[0] < behind]
        read = ahead[:limit]
        until = read[-1][0] if len(ahead) > limit else None
        return ListedPage([place for place, job in read if criteria.fits(job)], len(read), until)

    def count_listed(self, part: Part, *, limit: int) -> int:
        with self._lock:
            return min(limit, sum(part_of(job) == part for job in self._jobs.values()))

    def under_way(
        self, slot: int, *, limit: int, owner: str | None = None, after: WatchedRun | None = None
    ) -> UnderWayPage:
        places = self.open_runs(slot, limit=limit + 1, after=after)
        read = [(self._runs[place.key], place) for place in places[:limit]]
        found = [
            UnderWay(run.key, run.owner, run.executor_id, place.at)
            for run, place in read
            if owner in (None, run.owner)
        ]
        return UnderWayPage(found, len(read), places[limit - 1] if len(places) > limit else None)

    def holders(self, job: Job) -> Sequence[RunKey]:
        with self._lock:
            return [key for key, run in self._runs.items() if key.job_id == job.job_id and run.holds_place]

    def know_owner(self, owner: str) -> None:
        self._owners.add(owner)

    def owners(self) -> Sequence[str]:
        return sorted(self._owners)

    def events(self, job_id: str, *, limit: int, before: str | None = None) -> EventPage:
        with self._lock:
            kept = sorted(self._events.get(job_id, {}).items(), reverse=True)
        earlier = [event for entry, event in kept if before is None or entry < before]
        page = earlier[:limit]
        return EventPage(page, page[-1].entry if len(earlier) > limit else None)

    def note(self, event: Event) -> bool:
        with self._lock:
            kept = self._events.setdefault(event.job_id, {})
            is_new = event.entry not in kept
            kept.setdefault(event.entry, event)
            return is_new

    def _keep(self, event: Event | None) -> None:
        if event:
            self.note(event)

    def dead_letters(
        self, owner: str, *, limit: int, before: WatchedRun | None = None
    ) -> Sequence[WatchedRun]:
        keys = {dead_key(owner, slot) for slot in range(DEAD_SPREAD)}
        with self._lock:
            watches = [(watch_of(run), run.key) for run in self._runs.values()]
        found = [WatchedRun(watch.at, key) for watch, key in watches if watch and watch.key in keys]
        return sorted((place for place in found if before is None or place < before), reverse=True)[:limit]

    def open_runs(self, slot: int, *, limit: int, after: WatchedRun | None = None) -> Sequence[WatchedRun]:
        with self._lock:
            watches = [(watch_of(run), run) for run in self._runs.values()]
        found = [
            WatchedRun(watch.at, run.key, _waits_since(run))
            for watch, run in watches
            if watch and watch.key == open_key(slot)
        ]
        return sorted(place for place in found if after is None or place[:2] > after[:2])[:limit]

    def waiting_late(self, slot: int, *, due_before: datetime, limit: int) -> LateRuns:
        runs = [self._runs[place.key] for place in self.open_runs(slot, limit=limit)]
        late = [run for run in runs if (since := _waits_since(run)) and since < due_before]
        return LateRuns(len(late), [run.key for run in late if run.late_at is None])

    def _move(self, move: Move) -> bool:
        return self.adjust(move.seen, move.after, judged_by_move(move.after))


def _waits_since(run: Run) -> datetime | None:
    return run.not_before if run.status is RunStatus.QUEUED and run.put_off_at is None else None


def _same(seen: Any, there: Any, names: Iterable[str]) -> bool:
    return all(getattr(seen, name) == getattr(there, name) for name in names)


def _difference(seen: Any, after: Any) -> dict[str, Any]:
    names = [field.name for field in fields(seen)]
    return {name: getattr(after, name) for name in names if getattr(seen, name) != getattr(after, name)}


def _with_difference(there: Job, seen: Job, after: Job) -> Job:
    """What differs between the two is written to what is there, which may have changed elsewhere."""
    sums = {name: getattr(there, name) + getattr(after, name) - getattr(seen, name) for name in TALLIES}
    return there.evolve(**_difference(seen, after) | sums)
