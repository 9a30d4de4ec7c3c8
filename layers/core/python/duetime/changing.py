"""The life of a job after it was accepted: what its owner can do to it.

Each of these is pure: it says what the job becomes and which runs follow. `Changes.apply` writes that in one
conditional write. Every change that could alter what runs or when makes a new generation, so whatever a sweep, a hint
or a claim does with the old one at that moment ends at the claim.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from duetime.audit import Action, Actor, changes_between
from duetime.endpoints import check_notify
from duetime.errors import Conflict, Stale
from duetime.job import GENERATIONS_REMEMBERED, Job, JobSpec, completed_if_done, expecting_from
from duetime.planning import Agenda, Plan, plan
from duetime.run import Run, RunKey, manual_run
from duetime.schedules import jitter_for
from duetime.status import JobStatus
from duetime.store import Once
from duetime.submission import Intake, require_sense, waiting_from
from duetime.tasks import check_task
from duetime.timing import ScheduleType, Timing

_TRIES: Final = 5
_TICK: Final = timedelta(microseconds=1)
# What may change without altering what runs or when.
_COSMETIC: Final = ("name", "tags", "notify")

Change = Callable[[Job, str, datetime], Plan]
"""From the job as it is, by whom, now: what it becomes. The same job: there is nothing to do."""


@dataclass(frozen=True, slots=True)
class Changes:
    intake: Intake
    # Hears of each change that was made.
    told: Callable[[Job, Action], None] | None = None

    def apply(
        self, job: Job, change: Change, *, actor: Actor, action: Action, if_match: int | None = None
    ) -> Job:
        """The job as it became. Nobody else's change is overwritten: what they wrote is read and changed anew, unless
        the caller insists on the version that it saw."""
        for _ in range(_TRIES):
            if if_match is not None and job.version != if_match:
                raise Stale(f"the job is at version {job.version} and not at {if_match}: read it again")
            now = self.intake.clock.now()
            made = change(job, actor.principal, now)
            if made.job == job:
                return job
            self.intake.wake_for(made)
            event = actor.did(action, job.job_id, now, changes=changes_between(job, made.job) or None)
            there = self.intake.store.change(job, made.job, made.runs, event=event)
            if there is None:
                if self.told:
                    self.told(made.job, action)
                return made.job
            job = there
        raise Conflict("the job is being changed by others at this moment: try again")

    def run_now(self, job: Job, actor: Actor, idempotency_key: str | None = None) -> Run:
        """Nothing of the job is written: if it is cancelled at this moment, the claim sees to it. Under a key that was
        used before, the first run."""
        if job.status is JobStatus.CANCELLED:
            raise Conflict("the job is CANCELLED, and will not run again: make a new job")
        now, store = self.intake.clock.now(), self.intake.store
        run = manual_run(job, now, secrets.token_hex(4)).evolve(trace_id=actor.source.trace_id)
        event = actor.did(Action.RAN, job.job_id, now, run_id=run.run_id)
        self.intake.wake_for_open([run])
        if idempotency_key is None:
            store.add_run(run, event=event)
            return run
        first = store.add_run_once(run, Once(f"run#{job.job_id}", idempotency_key), event=event)
        if first is None:
            return run
        there = store.get_run(RunKey(job.job_id, first))
        if there is None:
            raise Conflict("the Idempotency-Key was used for a run that is no longer kept: use a new one")
        return there


def pause(job: Job, by: str, now: datetime) -> Plan:
    if job.status is JobStatus.PAUSED:
        return Plan(job)
    _require_open(job, "paused")
    # Runs that were planned for later will not happen; their times count as slept through.
    overdue = job.next_run_at if job.next_run_at and job.next_run_at <= now else None
    cursor = overdue or Agenda.of(job).next_due(now + _TICK)
    return Plan(_new_generation(job, by, now, cursor, status=JobStatus.PAUSED))


def resume(job: Job, by: str, now: datetime) -> Plan:
    if job.status is JobStatus.SCHEDULED:
        return Plan(job)
    _require_open(job, "resumed")
    awake = _new_generation(job, by, now, job.next_run_at, status=JobStatus.SCHEDULED)
    if awake.next_run_at is None:
        return Plan(completed_if_done(awake))
    # No tolerance: however short the sleep was, `catch_up` says what becomes of the times in it.
    return plan(awake, now, tolerance=timedelta())


def cancel(job: Job, by: str, now: datetime) -> Plan:
    if job.status is JobStatus.CANCELLED:
        return Plan(job)
    _require_open(job, "cancelled")
    return Plan(_new_generation(job, by, now, None, status=JobStatus.CANCELLED))


def update(merge: Callable[[Job], JobSpec], intake: Intake) -> Change:
    """To what its owner wants from now on: `merge` puts the caller's fields into the job as it is."""

    def change(job: Job, by: str, now: datetime) -> Plan:
        _require_open(job, "changed")
        spec = merge(job)
        if spec == job.spec:
            return Plan(job)
        reach = intake.allowed.reach_of(job.owner)
        check_task(spec, reach)
        check_notify(spec.notify, reach)
        if replace(spec, **{name: getattr(job.spec, name) for name in _COSMETIC}) == job.spec:
            return Plan(_edited(job, by, now, spec=spec))
        return _replanned(job, spec, by, now)

    return change


def _replanned(job: Job, spec: JobSpec, by: str, now: datetime) -> Plan:
    require_sense(replace(job, spec=spec))
    # What was due already happens all the same, as it was wanted when it was due.
    owed = plan(job, now, horizon=_TICK)
    if owed.job.waits and owed.job.next_run_at and owed.job.next_run_at <= now:
        raise Conflict("the job has many missed times to make good first: try again in some minutes")
    # If one of those is the last, it stays so.
    job = replace(job, final_run_id=owed.job.final_run_id, final_ended=owed.job.final_ended)
    cursor = job.next_run_at if job.status is JobStatus.PAUSED else Agenda.of(job).next_due(now + _TICK)
    after = _new_generation(job, by, now, cursor, spec=spec)
    if not _same_times(job.spec.timing, spec.timing):
        after = _with_new_times(job, after, now)
    elif after.next_run_at and spec.timing.jitter_seconds != job.spec.timing.jitter_seconds:
        # A time that has come by its old jitter has come; one that has not comes by the new.
        moved = _jitter(after) - _jitter(job)
        after = waiting_from(after, after.next_run_at + moved)
    made = plan(completed_if_done(after), now)
    return Plan(made.job, (*owed.runs, *made.runs))


def _with_new_times(job: Job, after: Job, now: datetime) -> Job:
    """A job that shall run at once runs at once. An interval keeps its beat unless the beat itself is another."""
    if not _same_beat(job.spec.timing, after.spec.timing):
        after = replace(after, anchor_at=now)
    is_due_at_once = after.spec.timing.schedule_type is ScheduleType.IMMEDIATE
    return waiting_from(after, now if is_due_at_once else now + _TICK)


def _jitter(job: Job) -> timedelta:
    return jitter_for(job.job_id, job.spec.timing.jitter_seconds)


def _same_times(old: Timing, new: Timing) -> bool:
    return replace(new, jitter_seconds=old.jitter_seconds, catch_up=old.catch_up) == old


def _same_beat(old: Timing, new: Timing) -> bool:
    def beat(timing: Timing) -> tuple[object, ...]:
        return timing.schedule_type, timing.interval_seconds, timing.start_at

    return beat(old) == beat(new)


def _new_generation(job: Job, by: str, now: datetime, next_run_at: datetime | None, **changes: Any) -> Job:
    # Where no further time will come, the last run stays the last, though it is of an older generation.
    final = {} if next_run_at is None else {"final_run_id": None, "final_ended": False}
    after = _edited(
        job,
        by,
        now,
        generation=job.generation + 1,
        generation_ends=(*job.generation_ends, now)[-GENERATIONS_REMEMBERED:],
        next_run_at=next_run_at,
        **final,
        **changes,
    )
    return expecting_from(after, next_run_at or now)


def _edited(job: Job, by: str, now: datetime, **changes: Any) -> Job:
    return job.evolve(version=job.version + 1, updated_at=now, updated_by=by, **changes)


def _require_open(job: Job, wish: str) -> None:
    if job.status in (JobStatus.CANCELLED, JobStatus.COMPLETED):
        raise Conflict(f"the job is {job.status}, and cannot be {wish}: make a new job")
