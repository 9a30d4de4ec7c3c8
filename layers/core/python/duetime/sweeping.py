"""The sweep: every job that waits for a time in the next minutes is planned, and waits for its next one.

Runs are written first, each if it is not there yet; then the job moves on, if nobody changed it. Whoever sweeps may
die between any two writes, or sweep twice: what is planned again has the same ids.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypeVar

from duetime.batches import in_batches
from duetime.clock import Clock
from duetime.due_messages import Audit, Delayed, DueQueue, SweepShard
from duetime.job import Job
from duetime.planning import HORIZON, Plan, plan
from duetime.store import Move, Store, WaitingJob
from duetime.timing import RECURRING
from duetime.wakeups import WakeUps, wakeup_for
from duetime.watch import SPREAD

PAGE: Final = 100
"""A tick plans a shard on the spot if it has fewer due jobs than this; as many as one BatchGetItem takes."""

LARGE_PAGE: Final = 500
"""What a shard with a watcher of its own is planned by. Between two pages it looks at the clock."""

MOVES_AT_ONCE: Final = 25
"""As many jobs as one BatchExecuteStatement takes."""

ROUNDS: Final = 3
"""A job that was overtaken between its reading and its move is planned anew so often."""

MOST_HOPS: Final = 12
"""A shard is handed on by message so often; what is left then is found by the next tick."""


AUDITED_AT_ONCE: Final = 200
"""So many jobs are audited by one message."""

AUDITED_AFTER: Final = timedelta(seconds=60)
"""So long after the last of the times that were planned."""

_LONGEST_DELAY_SECONDS: Final = 900

Subject = TypeVar("Subject")
Result = TypeVar("Result")


class Planned(NamedTuple):
    job: Job
    plan: Plan


@dataclass(slots=True)
class SweepReport:
    jobs: int = 0
    runs: int = 0
    handed_on: int = 0
    # Jobs that cannot be planned, and why (a zone that no longer exists, say). Trying again would not help them.
    unplannable: list[tuple[str, Exception]] = field(default_factory=list)
    # What AWS refused. Those jobs wait where they were, and another sweep plans them.
    unwritten: list[Exception] = field(default_factory=list)
    # Audits that could not be asked for; the jobs' next ones make up for them.
    unasked: list[Exception] = field(default_factory=list)
    lasted: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Sweeper:
    store: Store
    wakeups: WakeUps
    due_queue: DueQueue
    clock: Clock
    threads: Executor

    def look(self) -> Sequence[Sequence[WaitingJob]]:
        """The first page of every shard."""
        return list(self.threads.map(lambda shard: self._find(shard, PAGE), range(SPREAD)))

    def sweep(self, pages: Sequence[Sequence[WaitingJob]]) -> SweepReport:
        """Every shard that fits on a page; one that has more gets a message, and so a watcher, of its own."""
        report = SweepReport()
        for shard, page in enumerate(pages):
            if len(page) >= PAGE:
                self._hand_on(SweepShard(shard), report)
        small = [place for page in pages if len(page) < PAGE for place in page]
        # A run may be executed before its job has moved on, so the jobs do not wait for all the others' runs.
        for batch in in_batches(small, LARGE_PAGE):
            self._plan_all(batch, report)
        return report

    def sweep_shard(self, message: SweepShard, has_time: Callable[[], bool]) -> SweepReport:
        """Page after page, while there is time for another."""
        report, after = SweepReport(), message.after
        while True:
            page = self._find(message.shard, LARGE_PAGE, after)
            self._plan_all(page, report)
            if len(page) < LARGE_PAGE:
                return report
            after = page[-1]
            if not has_time():
                self._hand_on(SweepShard(message.shard, after, message.hop + 1), report)
                return report

    def _find(self, shard: int, limit: int, after: WaitingJob | None = None) -> Sequence[WaitingJob]:
        return self.store.waiting(shard, until=self.clock.now() + HORIZON, limit=limit, after=after)

    def _hand_on(self, message: SweepShard, report: SweepReport) -> None:
        if message.hop <= MOST_HOPS:
            self.due_queue.send([Delayed(message)])
            report.handed_on += 1

    def _plan_all(self, places: Sequence[WaitingJob], report: SweepReport) -> None:
        waiting = [place.job_id for place in places]
        for _ in range(ROUNDS):
            waiting = self._plan_once(waiting, report) if waiting else []

    def _plan_once(self, job_ids: Sequence[str], report: SweepReport) -> list[str]:
        """Returns the jobs that were overtaken: changed by their owner, or ended by their last run, meanwhile."""
        pages = in_batches(job_ids, PAGE)
        jobs = [job for found in self.threads.map(self.store.load_jobs, pages) for job in found]
        planned = [made for job in jobs if (made := self._plan(job, report))]
        written = [made for made, _ in self._try_each(self._write_runs, planned, report)]
        moves = [Move(made.job, made.plan.job) for made in self._with_wakeups(written, report)]
        batches = list(in_batches(moves, MOVES_AT_ONCE))
        overtaken: list[str] = []
        moved: set[str] = set()
        for batch, late in self._try_each(self.store.move_on, batches, report):
            report.jobs += len(batch) - len(late)
            overtaken += late
            moved |= {move.seen.job_id for move in batch} - set(late)
        report.runs += sum(len(made.plan.runs) for made in written)
        self._ask_for_audits([made for made in written if made.job.job_id in moved], report)
        return overtaken

    def _ask_for_audits(self, moved: Sequence[Planned], report: SweepReport) -> None:
        """Of what recurs. A hint, like all that the queue carries: one that is lost is made good by the next."""
        recurring = [
            made for made in moved if made.plan.runs and made.job.spec.timing.schedule_type in RECURRING
        ]
        for batch in in_batches(recurring, AUDITED_AT_ONCE):
            last = max(made.plan.runs[-1].due_at for made in batch)
            delay = (last + AUDITED_AFTER - self.clock.now()) // timedelta(seconds=1)
            audit = Audit(tuple(made.job.job_id for made in batch))
            try:
                self.due_queue.send([Delayed(audit, min(max(delay, 0), _LONGEST_DELAY_SECONDS))])
            except Exception as error:
                # The jobs are planned, and that is what a sweep is for.
                report.unasked.append(error)

    def _plan(self, job: Job, report: SweepReport) -> Planned | None:
        try:
            made = plan(job, self.clock.now())
        except Exception as error:
            # One job that cannot be planned must not hold up all the others.
            report.unplannable.append((job.job_id, error))
            return None
        return Planned(job, made) if made.job != job else None

    def _write_runs(self, planned: Planned) -> None:
        for run in planned.plan.runs:
            self.store.add_run(run)

    def _with_wakeups(self, planned: Sequence[Planned], report: SweepReport) -> Iterable[Planned]:
        """Those that may wait for their next time, because something will wake us for it. If EventBridge is out of
        order, what is due soon runs all the same; the jobs stay where they are and are planned again."""
        now = self.clock.now()
        by_minute: dict[datetime | None, list[Planned]] = {}
        for made in planned:
            next_run_at = made.plan.job.next_run_at
            by_minute.setdefault(next_run_at and wakeup_for(next_run_at, now), []).append(made)
        yield from by_minute.pop(None, [])
        minutes = [minute for minute in by_minute if minute]
        for minute, _ in self._try_each(lambda minute: self.wakeups.ensure([minute]), minutes, report):
            yield from by_minute[minute]

    def _try_each(
        self, write: Callable[[Subject], Result], subjects: Sequence[Subject], report: SweepReport
    ) -> list[tuple[Subject, Result]]:
        """Side by side; those that succeeded, with what came of them. What failed is on the report."""
        futures = [(subject, self.threads.submit(write, subject)) for subject in subjects]
        done = []
        for subject, future in futures:
            try:
                done.append((subject, future.result()))
            except Exception as error:
                # Throttling or an outage, after all retries: the others may well succeed.
                report.unwritten.append(error)
        return done
