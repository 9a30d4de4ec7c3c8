"""Planning: from a job that waits to the runs that are due soon, and to the time it waits for next.

One pure function serves create, update, resume, sweep and catch-up. A run's id follows from the job, its generation
and the nominal time, so planning twice plans once, and whoever plans may die at any line.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import chain, islice, takewhile
from typing import Final

from duetime.instants import format_instant
from duetime.job import Job, completed_if_done
from duetime.run import Run, planned_run
from duetime.schedules import Cron, Interval, Once, Schedule, jitter_for
from duetime.status import RunStatus
from duetime.timing import CatchUp, ScheduleType, Timing

HORIZON: Final = timedelta(minutes=4)
"""How far ahead runs are planned. A wake-up comes two minutes before its minute, up to a minute late; the rest is for
the sweep itself."""

TOLERANCE: Final = timedelta(minutes=1)
"""A time that is found late by no more than this was not missed: it runs, whatever `catch_up` says."""

CATCH_UP_LIMIT: Final = 1000
"""Of an outage, `all` makes good the latest so many times."""

STEP: Final = 50
"""So many runs are planned at once, at the most: they must fit into one transaction with their job. What is left
stays due and is planned by the next sweep."""

_TICK: Final = timedelta(microseconds=1)
_NO_RUN: Final = "none"


@dataclass(frozen=True, slots=True)
class Plan:
    # The job as it becomes: it waits for the first time after the runs.
    job: Job
    runs: tuple[Run, ...] = ()


@dataclass(frozen=True, slots=True)
class Agenda:
    """A job's nominal times, looked up by when they are due: its jitter later."""

    schedule: Schedule
    jitter: timedelta

    @classmethod
    def of(cls, job: Job) -> "Agenda":
        schedule = schedule_of(job.spec.timing, job.anchor_at)
        return cls(schedule, jitter_for(job.job_id, job.spec.timing.jitter_seconds))

    def due_from(self, moment: datetime) -> Iterator[datetime]:
        """The nominal times that are due at that moment or later."""
        fires = self.schedule.fires_after(moment - self.jitter - _TICK)
        return (fire.nominal_at for fire in fires)

    def next_due(self, moment: datetime) -> datetime | None:
        """When the first of them is due."""
        nominal_at = next(self.due_from(moment), None)
        return None if nominal_at is None else nominal_at + self.jitter

    def latest_due(self, count: int, since: datetime, until: datetime) -> list[datetime]:
        """The last so many nominal times due from `since` to `until`. It looks back over spans that grow, so that a
        year's outage of a job that runs every ten seconds is not walked through."""
        span = timedelta(seconds=10 * count)
        while True:
            start = max(since, until - span)
            found = takewhile(lambda nominal_at: nominal_at + self.jitter <= until, self.due_from(start))
            latest = deque(found, maxlen=count)
            if len(latest) == count or start == since:
                return list(latest)
            span *= 4


def schedule_of(timing: Timing, anchor_at: datetime) -> Schedule:
    """Raises InvalidSchedule, naming the field."""
    match timing.schedule_type:
        case ScheduleType.CRON:
            assert timing.cron_expression is not None
            return Cron(
                timing.cron_expression,
                timing.timezone,
                timing.dst_gap,
                timing.dst_overlap,
                timing.start_at,
                timing.end_at,
            )
        case ScheduleType.INTERVAL:
            assert timing.interval_seconds is not None
            anchor_at = timing.start_at or anchor_at
            return Interval(timing.interval_seconds, anchor_at, timing.start_at, timing.end_at)
        case ScheduleType.FUTURE:
            assert timing.schedule_time is not None
            return Once(timing.schedule_time)
        case ScheduleType.IMMEDIATE:
            return Once(anchor_at)


def plan(job: Job, now: datetime, *, tolerance: timedelta = TOLERANCE, horizon: timedelta = HORIZON) -> Plan:
    """The runs due before now + horizon, and the job as it becomes. A job that does not wait is left as it is."""
    if not job.waits or job.next_run_at is None or job.next_run_at >= now + horizon:
        return Plan(job)
    agenda = Agenda.of(job)
    missed, resume_at = _catch_up(job, agenda, now, tolerance)
    due = takewhile(lambda nominal_at: nominal_at + agenda.jitter < now + horizon, agenda.due_from(resume_at))
    regular = (planned_run(job, nominal_at, now, jitter=agenda.jitter) for nominal_at in due)
    runs = tuple(islice(chain(missed, regular), STEP))
    return _moved_on(job, agenda, runs, resume_at)


def _catch_up(
    job: Job, agenda: Agenda, now: datetime, tolerance: timedelta
) -> tuple[tuple[Run, ...], datetime]:
    """What becomes of the times that were missed, and the moment from which the schedule goes on as if nothing had
    been."""
    since = job.next_run_at
    assert since is not None
    if since >= now - tolerance:
        return (), since
    match job.spec.timing.catch_up:
        case CatchUp.ONE:
            runs = _standing_for(job, agenda, agenda.latest_due(1, since, now), since, now)
            return tuple(runs), now + _TICK
        case CatchUp.ALL:
            latest = agenda.latest_due(CATCH_UP_LIMIT, since, now)
            runs = _standing_for(job, agenda, latest[:STEP], since, now)
            return tuple(replace(run, patient=True) for run in runs), now + _TICK
        case CatchUp.SKIP:
            too_late = now - tolerance - _TICK
            runs = _standing_for(job, agenda, agenda.latest_due(1, since, too_late), since, now)
            return tuple(_skipped(run, now) for run in runs), now - tolerance


def _standing_for(
    job: Job, agenda: Agenda, nominal_times: list[datetime], since: datetime, now: datetime
) -> list[Run]:
    """A run for each of these times; the first of them also stands for those since `since` that have none."""
    runs = [planned_run(job, nominal_at, now, jitter=agenda.jitter) for nominal_at in nominal_times]
    first_missed = since - agenda.jitter
    if runs and first_missed < nominal_times[0]:
        runs[0] = replace(runs[0], missed_from=first_missed)
    return runs


def _skipped(run: Run, now: datetime) -> Run:
    """Kept on record, though it never was open: somebody will ask why nothing ran."""
    since = f" (and those since {format_instant(run.missed_from)})" if run.missed_from else ""
    reason = f"this time{since} passed while nothing could be planned, and catch_up is skip"
    return run.evolve(status=RunStatus.SKIPPED, error_message=reason, end_time=now, deadline_at=None)


def _moved_on(job: Job, agenda: Agenda, runs: tuple[Run, ...], resume_at: datetime) -> Plan:
    next_run_at = agenda.next_due(runs[-1].due_at + _TICK if runs else resume_at)
    if next_run_at is not None:
        return Plan(job.evolve(next_run_at=next_run_at), runs)
    # The last run knows that it is the last, and may have ended before its job has moved on.
    runs = (*runs[:-1], replace(runs[-1], last=True)) if runs else ()
    final_run_id = runs[-1].run_id if runs else _NO_RUN
    final_ended = job.final_ended or not runs or runs[-1].status is RunStatus.SKIPPED
    done = job.evolve(next_run_at=None, final_run_id=final_run_id, final_ended=final_ended)
    return Plan(completed_if_done(done), runs)
