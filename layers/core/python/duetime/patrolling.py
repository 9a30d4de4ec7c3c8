"""The patrol: every open run has a time by which somebody must have moved it, and here is who looks.

    planned ──▶ deadline: due + 20 s ──▶ hinted again: + 20 s, + 40 s, + 80 s … ──▶ FAILED as undeliverable

A hint is sent straight to its queue and not through the stream, so that a blocked stream does not block the rescue.
What a dead worker left behind, and what goes on elsewhere, is rescuing.py's.

Each run is looked after by itself: one that cannot be rescued, for whatever reason, is reported, looked at again a
minute later, and keeps nobody from the others.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from duetime.claiming import Verdict, judge
from duetime.clock import Clock
from duetime.finishing import dead_lettered, dropped
from duetime.hints import Hint, RunQueues
from duetime.measuring import LATE, is_late
from duetime.pair import JobRun
from duetime.rescuing import Rescuer
from duetime.run import PATIENCE, Run, RunKey
from duetime.settling import settle
from duetime.status import CLAIMABLE, RunStatus
from duetime.store import Store, WatchedRun
from duetime.watch import SLOTS

MOST_HINTS: Final = 8
"""20 s, doubling: about an hour and a half in all."""

PAGE: Final = 25
PAGES_AT_ONCE: Final = 8
"""After a long outage a patrol does so much in each slot; the next one, ten seconds later, goes on."""

TIME_PER_SLOT: Final = timedelta(seconds=20)
"""What was started elsewhere may take long to answer. A watcher has two minutes, and each of its threads four slots."""

PUT_BACK: Final = timedelta(minutes=1)
"""A run that could not be looked after makes way for those behind it."""


MOST_MARKS: Final = 100
"""So many runs are marked as late by one patrol: an overload must not be made worse by writing about it."""

LOOKED_AT: Final = 1000
"""So many open runs of each slot are looked at for those that wait too long."""


@dataclass(slots=True)
class PatrolReport:
    # Whether anything is open, overdue or not: then there must be another patrol.
    anything_open: bool = False
    hinted: list[Run] = field(default_factory=list)
    given_up: list[Run] = field(default_factory=list)
    dead_lettered: list[Run] = field(default_factory=list)
    # RUNNING, and not heard of any more.
    rescued: list[Run] = field(default_factory=list)
    # What could not be looked after this time, and why.
    unanswered: list[tuple[RunKey, Exception]] = field(default_factory=list)
    # Slots that could not even be read.
    unread: list[Exception] = field(default_factory=list)
    # How many wait though their time has come; those among them that nobody has marked yet; and those marked here.
    waiting_late: int = 0
    unmarked: list[RunKey] = field(default_factory=list)
    marked_late: list[Run] = field(default_factory=list)

    def add(self, other: "PatrolReport") -> None:
        self.anything_open = self.anything_open or other.anything_open
        self.hinted += other.hinted
        self.given_up += other.given_up
        self.dead_lettered += other.dead_lettered
        self.rescued += other.rescued
        self.unanswered += other.unanswered
        self.unread += other.unread
        self.waiting_late += other.waiting_late
        self.unmarked += other.unmarked


@dataclass(frozen=True, slots=True)
class Patroller:
    store: Store
    queues: RunQueues
    rescuer: Rescuer
    clock: Clock
    threads: Executor

    def patrol(self) -> PatrolReport:
        report = PatrolReport()
        for found in self.threads.map(self._patrol_slot, SLOTS):
            report.add(found)
        try:
            self._mark_late(report)
        except Exception as error:
            report.unread.append(error)
        return report

    def _mark_late(self, report: PatrolReport) -> None:
        """So that it is known while they still wait. The stream makes a count of each mark."""
        seen = self.store.load(report.unmarked[:MOST_MARKS]).values() if report.unmarked else ()
        now = self.clock.now()
        late = [pair for pair in seen if _is_late(pair, now)]
        marked = self.threads.map(
            lambda pair: self.store.advance(pair.run, pair.run.evolve(late_at=now)), late
        )
        report.marked_late += [pair.run for pair, did in zip(late, marked, strict=True) if did]

    def _patrol_slot(self, slot: int) -> PatrolReport:
        report = PatrolReport()
        try:
            self._look_into(slot, report)
        except Exception as error:
            # Perhaps it holds something open; whoever sent us comes back.
            report.anything_open = True
            report.unread.append(error)
        return report

    def _look_into(self, slot: int, report: PatrolReport) -> None:
        give_up_at = self.clock.now() + TIME_PER_SLOT
        after: WatchedRun | None = None
        for _ in range(PAGES_AT_ONCE):
            page = self.store.open_runs(slot, limit=PAGE, after=after)
            if page and after is None:
                report.anything_open = True
                self._look_for_late(slot, page, report)
            overdue = [place for place in page if place.at <= self.clock.now()]
            self._rescue([place.key for place in overdue], report, give_up_at)
            # Only a page full of overdue runs can have more of them behind it.
            if len(overdue) < PAGE or self.clock.now() >= give_up_at:
                return
            after = overdue[-1]

    def _look_for_late(self, slot: int, page: Sequence[WatchedRun], report: PatrolReport) -> None:
        """If the first page shows one. Those that wait longest for their first hint have the earliest deadlines."""
        due_before = self.clock.now() - LATE
        if not any(place.waits_since and place.waits_since < due_before for place in page):
            return
        report.waiting_late, unmarked = self.store.waiting_late(slot, due_before=due_before, limit=LOOKED_AT)
        report.unmarked = list(unmarked)

    def _rescue(self, overdue: Sequence[RunKey], report: PatrolReport, give_up_at: datetime) -> None:
        # The index may be a moment behind: what counts is the run itself.
        found = self._load(overdue, report)
        now = self.clock.now()
        late = [seen for seen in found if seen.run.deadline_at and seen.run.deadline_at <= now]
        self._hint_again([seen for seen in late if seen.run.status in CLAIMABLE], report, now)
        self._bury([seen.run for seen in late if seen.run.status is RunStatus.FAILED], report, now)
        for seen in late:
            if seen.run.status is RunStatus.RUNNING and self.clock.now() < give_up_at:
                self._each(seen.run, report, partial(self._take_over, seen, report))

    def _load(self, keys: Sequence[RunKey], report: PatrolReport) -> Iterable[JobRun]:
        """All at once; if one of them cannot be read, one by one."""
        if not keys:
            return ()
        try:
            return self.store.load(keys).values()
        except Exception:
            found: list[JobRun] = []
            for key in keys:
                try:
                    found += self.store.load([key]).values()
                except Exception as error:
                    report.unanswered.append((key, error))
            return found

    def _each(self, run: Run, report: PatrolReport, look_after: Callable[[], None]) -> None:
        """What goes wrong with one run is that run's: AWS does not answer for it, a kind of task has a fault, its item
        cannot be written."""
        try:
            look_after()
        except Exception as error:
            report.unanswered.append((run.key, error))
            self._put_back(run)

    def _put_back(self, run: Run) -> None:
        with suppress(Exception):
            self.store.advance(run, run.evolve(deadline_at=self.clock.now() + PUT_BACK))

    def _take_over(self, seen: JobRun, report: PatrolReport) -> None:
        if rescued := self.rescuer.rescue(seen):
            report.rescued.append(rescued)

    def _hint_again(self, waiting: Sequence[JobRun], report: PatrolReport, now: datetime) -> None:
        """The new deadline is written first: if we die before the hint is sent, it is found again."""
        hinted: list[Run] = []
        for seen in waiting:
            self._each(seen.run, report, partial(self._expect_again, seen, hinted, report, now))
        try:
            self.queues.send_hints([Hint.of(run) for run in hinted], now)
        except Exception as error:
            # Each has a new deadline, and is found again then.
            report.unanswered += [(run.key, error) for run in hinted]
        else:
            report.hinted += hinted

    def _expect_again(self, seen: JobRun, hinted: list[Run], report: PatrolReport, now: datetime) -> None:
        if is_undeliverable(seen.run, now):
            self._give_up(seen, report, now)
            return
        deadline_at = now + PATIENCE * 2**seen.run.hints
        after = seen.run.evolve(hints=seen.run.hints + 1, deadline_at=deadline_at, modified_time=now)
        if self.store.advance(seen.run, after):
            hinted.append(after)

    def _give_up(self, seen: JobRun, report: PatrolReport, now: datetime) -> None:
        reason = f"undeliverable: no worker took the run up after {MOST_HINTS} hints"
        run = dropped(seen.run, RunStatus.FAILED, reason, now)
        if given_up := settle(seen, run, self.store, now):
            report.given_up.append(given_up)

    def _bury(self, runs: Sequence[Run], report: PatrolReport, now: datetime) -> None:
        try:
            unsent = set(self.queues.send_dead_letters(runs)) if runs else set()
        except Exception as error:
            report.unanswered += [(run.key, error) for run in runs]
            unsent = {run.key for run in runs}
        for run in runs:
            if run.key in unsent:
                self._put_back(run)
            else:
                self._each(run, report, partial(self._mark_dead, run, report, now))

    def _mark_dead(self, run: Run, report: PatrolReport, now: datetime) -> None:
        after = dead_lettered(run, now)
        if self.store.advance(run, after):
            report.dead_lettered.append(after)


def is_undeliverable(run: Run, now: datetime) -> bool:
    """No worker has looked at it since, though it was hinted again and again, and each hint had its time."""
    return run.hints >= MOST_HINTS and run.deadline_at is not None and run.deadline_at <= now


def _is_late(seen: JobRun, now: datetime) -> bool:
    """The index may be a moment behind; and what its job no longer wants is not late, it is only not yet void."""
    run = seen.run
    is_waiting = run.status is RunStatus.QUEUED and run.late_at is None and run.put_off_at is None
    return is_waiting and is_late(run, now) and judge(*seen).verdict is not Verdict.UNWANTED
