"""Waiting for one's turn: runs that found no free place, and how they are called when there is one.

Nothing is remembered but a count on the job: whoever frees a place and sees it above zero looks for QUEUED runs that
are due, the oldest first, and marks as many as there are places (`called_at`). The stream makes hints of the marks. A
caller that dies in between is made good by the waiting run's own deadline.
"""

from datetime import datetime, timedelta
from typing import Final

from duetime.claiming import waits_for_its_turn
from duetime.finishing import after_the_end, dropped, judged_at_the_end
from duetime.job import Job
from duetime.pair import JobRun
from duetime.run import Run, moment_part
from duetime.status import RunStatus
from duetime.store import Store

LONGEST_QUEUE: Final = 100
"""So many runs of a job wait for their turn, at the most; what comes on top is skipped."""

TURN_PATIENCE: Final = timedelta(minutes=5)
"""A run that waits is hinted again after this time, in case its call was lost."""


def put_off(seen: JobRun, reason: str, store: Store, now: datetime) -> tuple[JobRun, frozenset[str]]:
    """What becomes of a run that finds no place, and which fields of the job that depends on."""
    if not waits_for_its_turn(*seen):
        return _skipped(seen, reason, now)
    if not seen.run.patient and _is_full(seen.run, store):
        return _skipped(seen, f"{reason}, and {LONGEST_QUEUE} more were waiting", now)
    run = seen.run.evolve(deadline_at=now + TURN_PATIENCE, hints=0, modified_time=now)
    # If a place has become free meanwhile, nobody will call: then the write must fail, and the claim be tried again.
    return JobRun(seen.job.evolve(waiters=seen.job.waiters + 1), run), frozenset({"running"})


def call_waiting(job: Job, store: Store, now: datetime) -> int:
    """Call as many waiting runs as there are places; returns how many."""
    waiting = _waiting(job, store, now)
    places = max(job.spec.max_concurrency - job.running, 0)
    called = [run for run in waiting[:places] if store.advance(run, run.evolve(called_at=now))]
    if len(waiting) <= places:
        store.adjust(job, job.evolve(waiters=0), {"waiters"})
    return len(called)


def _waiting(job: Job, store: Store, now: datetime) -> list[Run]:
    """QUEUED runs that are due, the oldest first. Ids sort by time, so what is due later is behind the bound."""
    bound = moment_part(now) + "~"
    recent = store.list_runs(job.job_id, limit=LONGEST_QUEUE, before=bound).runs
    due = [run for run in recent if run.status is RunStatus.QUEUED and run.not_before <= now]
    return due[::-1]


def _is_full(run: Run, store: Store) -> bool:
    before = store.list_runs(run.job_id, limit=LONGEST_QUEUE, before=run.run_id).runs
    return sum(earlier.status is RunStatus.QUEUED for earlier in before) >= LONGEST_QUEUE


def _skipped(seen: JobRun, reason: str, now: datetime) -> tuple[JobRun, frozenset[str]]:
    run = dropped(seen.run, RunStatus.SKIPPED, reason, now)
    return after_the_end(seen, run), judged_at_the_end(seen.job)
