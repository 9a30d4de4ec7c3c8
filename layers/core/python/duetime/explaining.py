"""Why did it run, or not run, at that moment? The decisions that led there, in words.

Everything is read from what is kept anyway: the job, its runs, and what people did to it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Final, NamedTuple

from duetime.audit import Event
from duetime.claiming import Verdict, judge
from duetime.instants import format_instant
from duetime.job import Job
from duetime.planning import Agenda
from duetime.rewinding import Past, reaches_back, rewind
from duetime.run import Run, moment_part
from duetime.schedules import Cron, preview
from duetime.status import JobStatus, RunStatus
from duetime.store import Store

LATE: Final = timedelta(seconds=2)
"""A run that starts later than this after its time is late: it is Duetime's promise."""

_RUNS_LOOKED_AT: Final = 200
_EVENTS_AT_ONCE: Final = 200
_PAGES_OF_EVENTS: Final = 10
_TICK: Final = timedelta(microseconds=1)
_DAY: Final = timedelta(days=1)


class Step(NamedTuple):
    code: str
    detail: str
    at: datetime | None = None
    run_id: str | None = None
    by: str | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    at: datetime
    until: datetime
    steps: Sequence[Step]

    @property
    def verdict(self) -> str:
        """The decision that settled it: the last one of the trail."""
        return self.steps[-1].code


@dataclass(frozen=True, slots=True)
class Explainer:
    store: Store
    runs_kept_for: timedelta

    def explain(self, job: Job, at: datetime, now: datetime) -> Explanation:
        until = at + _width(at)
        events, are_enough = self._events(job, at)
        past = rewind(job, events, at)
        agenda = Agenda.of(past.job)
        # Ids go by the nominal time, which is the jitter earlier than the due one.
        runs = self._runs(job, at - agenda.jitter, until)
        there = [
            run for run in runs if at <= (run.nominal_at or run.due_at) < until or at <= run.due_at < until
        ]
        steps = [*_about_daylight(agenda, at)]
        if there:
            for run in reversed(there):
                steps += self._about(run, job, now)
            return Explanation(at, until, steps)
        if not are_enough and until > job.created_at:
            detail = f"more was done to the job since than is looked at here ({len(events)} events)"
            steps.append(Step("unknown", detail))
        else:
            steps += self._why_none(past, agenda, events, at, until, now)
        return Explanation(at, until, steps)

    def _events(self, job: Job, at: datetime) -> tuple[Sequence[Event], bool]:
        """Back to what tells how the job was at that moment, and whether they reach so far."""
        events: list[Event] = []
        before = None
        for _ in range(_PAGES_OF_EVENTS):
            page = self.store.events(job.job_id, limit=_EVENTS_AT_ONCE, before=before)
            events += page.events
            before = page.next_before
            if before is None or reaches_back(job, events, at):
                return events, True
        return events, False

    def _runs(self, job: Job, since: datetime, until: datetime) -> Sequence[Run]:
        page = self.store.list_runs(
            job.job_id, limit=_RUNS_LOOKED_AT, since=moment_part(since), before=moment_part(until)
        )
        return page.runs

    def _why_none(
        self,
        past: Past,
        agenda: Agenda,
        events: Sequence[Event],
        at: datetime,
        until: datetime,
        now: datetime,
    ) -> Iterator[Step]:
        job = past.job
        if until <= job.created_at:
            yield Step("not_created", f"the job was created later, by {job.owner}", job.created_at)
            return
        due = list(takewhile(lambda nominal: nominal < until, agenda.due_from(at)))
        if due and due[-1] + agenda.jitter < job.created_at:
            yield Step("not_created", f"the job was created after that time, by {job.owner}", job.created_at)
            return
        due = [nominal for nominal in due if nominal + agenda.jitter >= job.created_at]
        if past.status is not JobStatus.SCHEDULED and past.cause:
            cause = past.cause
            yield Step(str(past.status).lower(), f"the job was {past.status}", cause.at, by=cause.by)
            if due and (stand_in := self._stand_in(job, due[0], now)):
                yield _caught_up(job, stand_in)
            return
        if not due:
            yield _why_no_time(job, agenda, at, until)
            return
        yield self._why_not_then(job, due[0], agenda, events, now)

    def _why_not_then(
        self, job: Job, nominal_at: datetime, agenda: Agenda, events: Sequence[Event], now: datetime
    ) -> Step:
        """The schedule has that time, and nobody kept the job from running."""
        due_at = nominal_at + agenda.jitter
        if stand_in := self._stand_in(job, nominal_at, now):
            return _caught_up(job, stand_in)
        if missed := next((e for e in events if e.action == "missed" and e.at == nominal_at), None):
            return Step("missed", missed.detail or "no run was found for this time", missed.at)
        if due_at > now:
            return _about_the_future(job, due_at)
        if nominal_at < now - self.runs_kept_for:
            return Step("expired", f"runs are kept for {self.runs_kept_for.days} days after they ended")
        if job.status in (JobStatus.COMPLETED, JobStatus.CANCELLED):
            return Step(str(job.status).lower(), f"the job is {job.status}")
        if job.next_run_at and job.next_run_at <= due_at:
            return Step("not_planned", "its time has come, and the sweep has not planned it yet", due_at)
        return Step("missed", "the schedule has this time, and no run was found for it", nominal_at)

    def _stand_in(self, job: Job, nominal_at: datetime, now: datetime) -> Run | None:
        """The first that was planned after that time: what was asked for by hand since stands for nothing."""
        later = self.store.runs_from(
            job.job_id,
            since=moment_part(nominal_at),
            until=moment_part(now + _DAY),
            limit=_RUNS_LOOKED_AT,
        )
        return next((run for run in later if run.missed_from and run.missed_from <= nominal_at), None)

    def _about(self, run: Run, job: Job, now: datetime) -> Iterator[Step]:
        yield Step("scheduled", _origin(run), run.nominal_at or run.due_at, run.run_id)
        if run.hints:
            yield Step("hinted_again", f"its hint was taken for lost {run.hints} times", None, run.run_id)
        if run.called_at:
            yield Step("turn_came", "it waited for its turn, and was called", run.called_at, run.run_id)
        for attempt in run.attempts[:-1]:
            detail = f"attempt {attempt.attempt} ended {attempt.outcome}: {attempt.error}"
            yield Step("attempted", detail, attempt.end_time, run.run_id)
        yield from _about_lateness(run, now)
        yield self._verdict(run, job, now)

    def _verdict(self, run: Run, job: Job, now: datetime) -> Step:
        match run.status:
            case RunStatus.SUCCEEDED:
                return Step("ran", f"it ran, with attempt {run.attempt}", run.end_time, run.run_id)
            case RunStatus.RUNNING:
                detail = f"attempt {run.attempt} is running on {run.executor_id}"
                return Step("running", detail, run.start_time, run.run_id)
            case RunStatus.RETRYING:
                detail = f"attempt {run.attempt} failed ({run.error_message}); another is due"
                return Step("retrying", detail, run.not_before, run.run_id)
            case RunStatus.FAILED | RunStatus.DEAD_LETTERED:
                detail = f"it failed for good with attempt {run.attempt}: {run.error_message}"
                return Step("failed", detail, run.end_time, run.run_id)
            case RunStatus.SKIPPED:
                return self._why_skipped(run)
            case RunStatus.CANCELLED:
                return Step("cancelled", run.error_message or "it was cancelled", run.end_time, run.run_id)
        judgement = judge(job, run)
        if judgement.verdict is Verdict.UNWANTED:
            code = "superseded" if job.status is JobStatus.SCHEDULED else str(job.status).lower()
            return Step(code, judgement.reason, job.updated_at, run.run_id, job.updated_by)
        if run.not_before > now:
            return Step("planned", "it is queued, and will start at its time", run.not_before, run.run_id)
        if judgement.verdict is Verdict.NO_PLACE:
            return Step("waiting_for_its_turn", judgement.reason, None, run.run_id)
        return Step("queued", "no worker has claimed it yet", run.not_before, run.run_id)

    def _why_skipped(self, run: Run) -> Step:
        detail = run.error_message or "the overlap policy said no"
        moment = run.end_time or run.due_at
        earlier = self._runs_before(run)
        if holder := next((r for r in earlier if _was_under_way(r, moment)), None):
            detail += f": {holder.run_id} was under way"
        return Step("skipped", detail, moment, run.run_id)

    def _runs_before(self, run: Run) -> Sequence[Run]:
        return self.store.list_runs(run.job_id, limit=_RUNS_LOOKED_AT, before=run.run_id).runs


def _caught_up(job: Job, stand_in: Run) -> Step:
    catch_up = job.spec.timing.catch_up
    if stand_in.status is RunStatus.SKIPPED:
        detail = stand_in.error_message or f"the time was missed, and {stand_in.run_id}, for it, was skipped"
        return Step("skipped", detail, stand_in.end_time or stand_in.due_at, stand_in.run_id)
    detail = f"the time was missed; as catch_up {catch_up} says, {stand_in.run_id} stands for it"
    return Step("caught_up", detail, stand_in.due_at, stand_in.run_id)


def _width(at: datetime) -> timedelta:
    """Asked about a whole minute, people mean the minute; asked about a second, the second."""
    return timedelta(minutes=1) if at.second == 0 and at.microsecond == 0 else timedelta(seconds=1)


def _origin(run: Run) -> str:
    if run.manual:
        return "somebody asked for it by hand"
    if run.missed_from:
        return f"its time came, and it also stands for those missed since {format_instant(run.missed_from)}"
    return "its time came"


def _about_lateness(run: Run, now: datetime) -> Iterator[Step]:
    first = run.attempts[0].start_time if run.attempts else run.start_time
    if first is None and run.status is not RunStatus.QUEUED:
        return
    late_by = (first or now) - run.due_at
    if late_by > LATE:
        seconds = round(late_by.total_seconds(), 1)
        detail = f"it started {seconds} s late" if first else f"it has not started, and is {seconds} s late"
        yield Step("late", detail, first, run.run_id)


def _about_daylight(agenda: Agenda, at: datetime) -> Iterator[Step]:
    """What a change of the clocks did on that day."""
    if not isinstance(agenda.schedule, Cron):
        return
    local_day = at.astimezone(agenda.schedule.zone.info).date()
    # A day has at most as many times as one every ten seconds, but a fixed time has one: the change is what matters.
    for line in preview(agenda.schedule, at - _DAY, 50):
        if line.flag and line.local_at.date() == local_day:
            what = {
                "gap": f"{line.wall_at} does not exist on that day, and runs at {line.local_at} instead",
                "overlap": f"{line.local_at} occurs twice on that day: dst_overlap says which one counts",
                "dropped": f"{line.wall_at} does not exist on that day, and is left out",
            }[line.flag]
            yield Step("daylight_saving", what, line.nominal_at)


def _why_no_time(job: Job, agenda: Agenda, at: datetime, until: datetime) -> Step:
    timing = job.spec.timing
    if timing.start_at and until <= timing.start_at:
        return Step("before_start", "start_at is later", timing.start_at)
    if timing.end_at and at > timing.end_at:
        return Step("after_end", "end_at was earlier", timing.end_at)
    following = agenda.next_due(until)
    detail = "the schedule has no time then" + (
        f"; the next after it is {format_instant(following)}" if following else ", and none after it"
    )
    return Step("not_scheduled", detail, following)


def _about_the_future(job: Job, due_at: datetime) -> Step:
    if job.status is JobStatus.SCHEDULED:
        return Step("upcoming", "it will run then, if nothing changes", due_at)
    return Step(str(job.status).lower(), f"the job is {job.status}, and will not run then", due_at)


def _was_under_way(run: Run, moment: datetime) -> bool:
    started = run.attempts[0].start_time if run.attempts else run.start_time
    return started is not None and started <= moment and (run.end_time is None or run.end_time >= moment)
