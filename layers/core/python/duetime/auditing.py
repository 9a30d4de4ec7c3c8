"""The auditor: every nominal time of every recurring job is matched to exactly one run.

A job's times before `next_run_at` have been planned: runs are written before their job moves on, so each has its run
by then, or a run that stands for it (`missed_from`), in whatever status. Only what is wrong with Duetime itself, or
with the table, breaks that; and then the job's owner and whoever is on call are told.

It works on what passes by: a sweep that planned recurring jobs asks for their audit some minutes later. How far a job
was audited is on the job. So an audit may come twice, late, or never: the next one begins where the last one ended. A
new generation begins anew, with its first time; what the one before had left unaudited can no longer be worked out.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from duetime.audit import DUETIME, Action, Event
from duetime.batches import in_batches
from duetime.clock import Clock
from duetime.instants import format_instant
from duetime.job import Job
from duetime.planning import Agenda
from duetime.run import Run, moment_part, run_id_for
from duetime.status import JobStatus, RunStatus
from duetime.store import Store
from duetime.timing import RECURRING

PAGE: Final = 100
"""As many jobs as one BatchGetItem takes."""

MOST_RUNS: Final = 5000
"""Of a job that was not audited for long, the latest so many runs are looked at."""

MOST_TIMES: Final = 10_000
"""So many times are matched at once; the next audit goes on from there."""

MOST_EVENTS: Final = 20
"""So many entries are made for one job at once. All are counted."""

NOT_EXPIRED: Final = timedelta(hours=1)
"""What comes so near to the end of its retention is not looked at: its run may be gone, and that is no miss."""

_MILLISECOND: Final = timedelta(milliseconds=1)
_TICK: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Finding:
    """A time without a run, or one with two. Whoever notifies an owner finds here what of."""

    job: Job
    action: Action
    nominal_at: datetime
    # The run that should be there, or the one that should not.
    run_id: str


@dataclass(slots=True)
class AuditReport:
    matched: int = 0
    missed: int = 0
    duplicated: int = 0
    findings: list[Finding] = field(default_factory=list)
    # What could not be audited now. The next audit of those jobs begins where this one should have.
    unread: list[tuple[str, Exception]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Window:
    """Which of a job's times are to be matched: those due after `since`, until `until`."""

    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class Auditor:
    store: Store
    clock: Clock
    threads: Executor
    runs_kept_for: timedelta

    def audit(self, job_ids: Sequence[str]) -> AuditReport:
        report = AuditReport()
        pages = self.threads.map(self.store.load_jobs, in_batches(job_ids, PAGE))
        jobs = [job for page in pages for job in page]
        for job, audited in zip(jobs, self.threads.map(self._try_one, jobs), strict=True):
            if isinstance(audited, Exception):
                report.unread.append((job.job_id, audited))
                continue
            report.matched += audited.matched
            report.missed += audited.missed
            report.duplicated += audited.duplicated
            report.findings += audited.findings
        return report

    def _try_one(self, job: Job) -> AuditReport | Exception:
        try:
            return self._audit_one(job)
        except Exception as error:
            # A zone that is gone, a throttled read: the others are none the worse for it.
            return error

    def _audit_one(self, job: Job) -> AuditReport:
        window = window_of(job, self.clock.now(), self.runs_kept_for)
        if window is None:
            return AuditReport()
        agenda = Agenda.of(job)
        runs, window = self._runs_in(job, window, agenda.jitter)
        report, until = match(job, agenda, window, runs)
        if not (report.matched or report.missed):
            return report
        for finding in report.findings[:MOST_EVENTS]:
            self.store.note(_event(finding))
        audited = job.evolve(audited_until=until)
        # Whoever writes how far it was audited also counts what was found: two audits at once count it once.
        won = self.store.adjust(job, audited, {"generation", "audited_until"})
        return report if won else AuditReport()

    def _runs_in(self, job: Job, window: Window, jitter: timedelta) -> tuple[list[Run], Window]:
        since = moment_part(window.since - jitter)
        # "~" sorts behind everything that an id can go on with.
        before: str | None = f"{moment_part(window.until - jitter)}~"
        runs: list[Run] = []
        while before and len(runs) < MOST_RUNS:
            page = self.store.list_runs(job.job_id, limit=500, before=before, since=since)
            runs += page.runs
            before = page.next_before
        if before:
            window = Window(_nominal(runs[-1]) + jitter, window.until)
        return runs, window


def window_of(job: Job, now: datetime, runs_kept_for: timedelta) -> Window | None:
    """None where nothing is to be matched: a paused or cancelled job wants no runs, and one that does not recur has
    nothing that could be forgotten behind the first."""
    if job.spec.timing.schedule_type not in RECURRING or job.status not in (
        JobStatus.SCHEDULED,
        JobStatus.COMPLETED,
    ):
        return None
    since = max(_begin(job), now - runs_kept_for + NOT_EXPIRED)
    # What is not planned yet, because nobody came to it, is late and not missed: it will be caught up with.
    until = min(now, job.next_run_at - _MILLISECOND) if job.next_run_at else now
    return Window(since, until) if since < until else None


def match(job: Job, agenda: Agenda, window: Window, runs: Sequence[Run]) -> tuple[AuditReport, datetime]:
    """What was found, and until when it is complete. Pure: `runs` are all that the job has in that window, of every
    generation."""
    scheduled = [run for run in runs if run.is_of_the_schedule]
    planned = {run.run_id: run for run in scheduled if run.generation == job.generation}
    stand_ins = sorted(
        ((run.missed_from, _nominal(run)) for run in planned.values() if run.missed_from),
        key=lambda span: span[1],
    )
    others: dict[datetime, list[Run]] = {}
    for run in scheduled:
        if run.generation != job.generation and _did_its_work(run):
            others.setdefault(_nominal(run), []).append(run)
    report = AuditReport()
    times = list(islice(_expected(agenda, window, stand_ins), MOST_TIMES))
    for nominal_at in times:
        run_id = run_id_for(job.job_id, job.generation, nominal_at)
        found = planned.get(run_id)
        if found is None:
            report.missed += 1
            report.findings.append(Finding(job, Action.MISSED, nominal_at, run_id))
            continue
        report.matched += 1
        doubles = others.get(nominal_at, []) if found.attempt > 0 else []
        report.duplicated += bool(doubles)
        report.findings += [Finding(job, Action.DUPLICATED, nominal_at, run.run_id) for run in doubles]
    return report, window.until if len(times) < MOST_TIMES else times[-1] + agenda.jitter


def _did_its_work(run: Run) -> bool:
    """One that was cancelled between two attempts, because its job was paused, is made good by another."""
    return run.attempt > 0 and run.status not in (RunStatus.CANCELLED, RunStatus.SKIPPED)


def _expected(
    agenda: Agenda, window: Window, stand_ins: Sequence[tuple[datetime, datetime]]
) -> Iterator[datetime]:
    """The times that must have a run of their own. Those that another run stands for are leapt over, so that a year's
    outage of a job that runs every ten seconds is not walked through."""
    moment = window.since + _TICK
    while True:
        for nominal_at in agenda.due_from(moment):
            if nominal_at + agenda.jitter > window.until:
                return
            stood_for_by = next((end for start, end in stand_ins if start <= nominal_at < end), None)
            if stood_for_by:
                moment = stood_for_by + agenda.jitter
                break
            yield nominal_at
        else:
            return


def _begin(job: Job) -> datetime:
    if job.audited_until:
        return job.audited_until
    # A job from before there was an auditor.
    return job.generation_ends[-1] if job.generation_ends else job.created_at - _MILLISECOND


def _nominal(run: Run) -> datetime:
    return run.nominal_at or run.due_at


def _event(finding: Finding) -> Event:
    """What it says follows from what was found, its token included, so that it is written once."""
    job, action = finding.job, finding.action
    when = format_instant(finding.nominal_at)
    detail = {
        Action.MISSED: f"the time {when} has no run",
        Action.DUPLICATED: f"the time {when} was run twice, once by {finding.run_id}",
    }[action]
    return Event(
        job_id=job.job_id,
        at=finding.nominal_at,
        action=action,
        by=DUETIME,
        run_id=finding.run_id,
        detail=detail,
        token=f"{action}-{job.generation}",
    )
