"""Accepting a job: from what a caller asked for to a job, its wake-up and its first runs."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from duetime.admission import Admission
from duetime.audit import Actor
from duetime.clock import Clock
from duetime.endpoints import check_notify
from duetime.errors import Conflict, InvalidField, RequestError, TooMany, Unavailable
from duetime.job import Job, JobSpec, digest_request, expecting_from, job_id_for, new_job_id
from duetime.planning import Agenda, Plan, plan, schedule_of
from duetime.run import Run
from duetime.schedules import InvalidSchedule, check_jitter
from duetime.store import NewJob, Store
from duetime.targets import AllowedTargets
from duetime.tasks import check_task
from duetime.timing import ScheduleType
from duetime.wakeups import WakeUps, soonest_wakeup, wakeup_for

FARTHEST: Final = timedelta(days=3660)


@dataclass(frozen=True, slots=True)
class Submission:
    job: Job
    # A repeated request under the same Idempotency-Key: the job was there already.
    repeated: bool


@dataclass(frozen=True, slots=True)
class Intake:
    """What every write of a job needs."""

    store: Store
    wakeups: WakeUps
    clock: Clock
    allowed: AllowedTargets
    admission: Admission
    # Read when a request first has an Idempotency-Key.
    id_key: Callable[[], bytes]

    def submit(
        self, spec: JobSpec, *, by: Actor, request: Mapping[str, Any], idempotency_key: str | None
    ) -> Submission:
        job = self._new(spec, by, self._id(by, idempotency_key), idempotency_key and request)
        try:
            made = self._plan(job, by)
            self.admission.admit(job.owner)
        except (InvalidField, TooMany):
            # What was right when it was first sent (a time in the future) need not be so when it is repeated.
            if idempotency_key and (first := self.store.get_job(job.job_id)):
                return _repeated(first, job)
            raise
        self.wake_for(made)
        existing = self.store.create(made.job, made.runs)
        return Submission(made.job, repeated=False) if existing is None else _repeated(existing, job)

    def submit_many(
        self, specs: Sequence[JobSpec | InvalidField], *, by: Actor, request: Any, idempotency_key: str | None
    ) -> Sequence[Submission | RequestError]:
        """An outcome for each. Under a key, each job's id follows from its place in the batch, and what all of them
        were asked with is remembered on each: so a batch that died half-way is completed when it is repeated, and
        another batch under the same key is refused as a whole."""
        keys = [idempotency_key and f"{idempotency_key}\n{number}" for number in range(len(specs))]
        ids = [self._id(by, key) for key in keys]
        digested = {"batch": request} if idempotency_key else None
        there = {job.job_id: job for job in (self.store.load_jobs(ids) if idempotency_key else ())}
        for first in there.values():
            _require_same(first, digest_request(digested or {}))
        outcomes: dict[int, Submission | RequestError] = {}
        plans: dict[int, Plan] = {}
        for number, (spec, job_id) in enumerate(zip(specs, ids, strict=True)):
            try:
                if isinstance(spec, InvalidField):
                    raise spec
                job = self._new(spec, by, job_id, digested)
                if job_id in there:
                    outcomes[number] = _repeated(there[job_id], job)
                else:
                    plans[number] = self._plan(job, by)
            except InvalidField as error:
                outcomes[number] = error
        if plans:
            self.admission.admit(by.principal, len(plans))
            self._wake_for_all(list(plans.values()))
            new = [NewJob(made.job, made.runs) for made in plans.values()]
            for (number, made), existing in zip(plans.items(), self.store.create_many(new), strict=True):
                outcomes[number] = _outcome(made.job, existing)
        return [outcomes[number] for number in range(len(specs))]

    def _id(self, by: Actor, idempotency_key: str | None) -> str:
        if idempotency_key is None:
            return new_job_id()
        return job_id_for(by.principal, idempotency_key, self.id_key())

    def _new(self, spec: JobSpec, by: Actor, job_id: str, request: Any) -> Job:
        now = self.clock.now()
        return Job(
            job_id=job_id,
            owner=by.principal,
            spec=spec,
            created_at=now,
            updated_at=now,
            updated_by=by.principal,
            anchor_at=now,
            created_from=by.source.address,
            request_digest=digest_request(request) if request else None,
        )

    def _plan(self, job: Job, by: Actor) -> Plan:
        reach = self.allowed.reach_of(job.owner)
        check_task(job.spec, reach)
        check_notify(job.spec.notify, reach)
        made = plan(waiting_from(job, job.created_at), job.created_at)
        return replace(made, runs=tuple(replace(run, trace_id=by.source.trace_id) for run in made.runs))

    def _wake_for_all(self, plans: Sequence[Plan]) -> None:
        waiting = [made.job.next_run_at for made in plans if made.job.waits and made.job.next_run_at]
        self.wakeups.ensure(sorted({wakeup_for(at, self.clock.now()) for at in waiting}))
        self.wake_for_open([run for made in plans for run in made.runs])

    def wake_for(self, made: Plan) -> None:
        """Before the job is written to wait: if nothing would wake us for it, it is not written. Raises Unavailable."""
        if made.job.waits and made.job.next_run_at:
            self.wakeups.ensure([wakeup_for(made.job.next_run_at, self.clock.now())])
        self.wake_for_open(made.runs)

    def wake_for_open(self, runs: Sequence[Run]) -> None:
        """Somebody must look after these runs. It is worth a try, but no reason to refuse them: the enqueuer asks for a
        patrol too, and in the end there is the backstop."""
        if runs:
            with suppress(Unavailable):
                last = max(run.not_before for run in runs)
                self.wakeups.ensure([soonest_wakeup(max(last, self.clock.now()))])


def require_sense(job: Job) -> None:
    """Its schedule can be kept. Asked first: a jitter beyond all bounds, say, cannot even be computed."""
    try:
        check_jitter(job.spec.timing.jitter_seconds, schedule_of(job.spec.timing, job.anchor_at))
    except InvalidSchedule as error:
        raise InvalidField(error.field, error.message) from error


def waiting_from(job: Job, moment: datetime) -> Job:
    """The job as it waits for its first time at or after that moment. Refuses what has none."""
    require_sense(job)
    first = Agenda.of(job).next_due(moment)
    if first is None:
        raise _never(job.spec)
    if first > moment + FARTHEST:
        raise InvalidField(_deciding_field(job.spec), "leads more than ten years ahead")
    waiting = job.evolve(next_run_at=first, final_run_id=None, final_ended=False)
    return expecting_from(waiting, first)


def _never(spec: JobSpec) -> InvalidField:
    if spec.timing.schedule_type is ScheduleType.FUTURE:
        return InvalidField(
            "schedule_time", "lies in the past: give a later time, or submit the job as IMMEDIATE"
        )
    field = "end_at" if spec.timing.end_at is not None else _deciding_field(spec)
    return InvalidField(field, "leaves no time at which the job could run")


def _deciding_field(spec: JobSpec) -> str:
    if spec.timing.start_at is not None:
        return "start_at"
    return {
        ScheduleType.FUTURE: "schedule_time",
        ScheduleType.CRON: "cron_expression",
        ScheduleType.INTERVAL: "interval_seconds",
        ScheduleType.IMMEDIATE: "schedule_type",
    }[spec.timing.schedule_type]


def _outcome(job: Job, existing: Job | None) -> Submission | RequestError:
    if existing is None:
        return Submission(job, repeated=False)
    try:
        return _repeated(existing, job)
    except Conflict as conflict:
        # Another batch under the same key, at the same moment.
        return conflict


def _repeated(existing: Job, job: Job) -> Submission:
    _require_same(existing, job.request_digest)
    return Submission(existing, repeated=True)


def _require_same(existing: Job, request_digest: str | None) -> None:
    if existing.request_digest != request_digest:
        raise Conflict(
            f"the Idempotency-Key was already used for another request, which made job {existing.job_id}: "
            "use a new key for a new job"
        )
