"""Waiting for one's turn: runs that found no free place, and how they are called when there is one.

The job counts that somebody waits, and knows from which run on to look. Whoever frees a place and sees the count above
zero looks for QUEUED runs that are due, the oldest first, and marks as many as there are places (`called_at`). The
stream makes hints of the marks. A caller that dies in between is made good by the waiting run's own deadline.
"""

from datetime import datetime, timedelta
from typing import Final

from duetime.claiming import waits_for_its_turn
from duetime.finishing import after_the_end, dropped, judged_at_the_end
from duetime.job import Job, completed_if_done
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
    job, run = seen
    if not waits_for_its_turn(job, run):
        return _skipped(seen, reason, now)
    if not run.patient and _is_full(seen, store):
        return _skipped(seen, f"{reason}, and {LONGEST_QUEUE} more were waiting", now)
    waiting = run.evolve(
        deadline_at=now + TURN_PATIENCE,
        hints=0,
        put_off_at=run.put_off_at or now,
        called_at=None,
        modified_time=now,
    )
    turn_from = min(job.turn_from or run.run_id, run.run_id)
    # If a place has become free meanwhile, nobody will call: then the write must fail, and the claim be tried again.
    after = JobRun(job.evolve(waiters=job.waiters + 1, turn_from=turn_from), waiting)
    return after, frozenset({"running", "turn_from"})


def ended(seen: JobRun, run_after: Run, store: Store, now: datetime) -> tuple[JobRun, frozenset[str]]:
    """What the end of a run makes of the pair. A job that once had waiters is completed by the end that leaves none."""
    after = after_the_end(seen, run_after)
    job = after.job
    is_last = job.final_ended and job.running == 0 and job.next_run_at is None
    if job.waiters and is_last and not _due(job, store, now, 1):
        after = JobRun(completed_if_done(job.evolve(waiters=0, turn_from=None)), after.run)
    return after, judged_at_the_end(seen) | {"turn_from"}


def call_next(seen: JobRun, after: JobRun, store: Store, now: datetime) -> None:
    """If this freed a place, and somebody waits for one."""
    if after.job.waiters and after.job.running < seen.job.running:
        call_waiting(after.job.job_id, store, now)


def call_waiting(job_id: str, store: Store, now: datetime) -> int:
    """Call as many waiting runs as there are places; returns how many."""
    jobs = store.load_jobs([job_id])
    if not jobs or not jobs[0].waiters:
        return 0
    job = jobs[0]
    places = max(job.spec.max_concurrency - job.running, 0)
    waiting = [run for run in _due(job, store, now, LONGEST_QUEUE) if run.not_before <= now]
    # Who was called and has not come yet will need a place too.
    uncalled = [run for run in waiting if run.called_at is None]
    free = max(places - (len(waiting) - len(uncalled)), 0)
    called = [run for run in uncalled[:free] if store.advance(run, run.evolve(called_at=now))]
    _remember(job, waiting, store)
    return len(called)


def _remember(job: Job, waiting: list[Run], store: Store) -> None:
    """Where to look next time; or, if nobody waits any more, that nobody does."""
    if waiting:
        store.adjust(job, job.evolve(turn_from=waiting[0].run_id), {"waiters", "turn_from"})
        return
    done = completed_if_done(job.evolve(waiters=0, turn_from=None))
    store.adjust(job, done, {"waiters", "turn_from", "status", "next_run_at", "final_ended", "running"})


def _due(job: Job, store: Store, now: datetime, limit: int) -> list[Run]:
    # Ids sort by time, and "~" behind everything that an id can go on with.
    until = f"{moment_part(now)}~"
    return list(store.queued_runs(job.job_id, since=job.turn_from or "0", until=until, limit=limit))


def _is_full(seen: JobRun, store: Store) -> bool:
    job, run = seen
    if job.turn_from is None:
        return False
    waiting = store.queued_runs(run.job_id, since=job.turn_from, until=run.run_id, limit=LONGEST_QUEUE + 1)
    return sum(earlier.run_id < run.run_id for earlier in waiting) >= LONGEST_QUEUE


def _skipped(seen: JobRun, reason: str, now: datetime) -> tuple[JobRun, frozenset[str]]:
    run = dropped(seen.run, RunStatus.SKIPPED, reason, now)
    return after_the_end(seen, run), judged_at_the_end(seen)
