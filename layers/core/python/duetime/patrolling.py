"""The patrol: every open run has a time by which somebody must have moved it, and here is who looks.

    planned ──▶ deadline: due + 20 s ──▶ hinted again: + 20 s, + 40 s, + 80 s … ──▶ FAILED as undeliverable

A hint is sent straight to its queue and not through the stream, so that a blocked stream does not block the rescue.
What a dead worker left behind, and what goes on elsewhere, is rescuing.py's.
"""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from duetime.claiming import Verdict, judge
from duetime.clock import Clock
from duetime.errors import TaskError
from duetime.finishing import dead_lettered, dropped
from duetime.hints import Hint, RunQueues
from duetime.measuring import LATE, is_late
from duetime.pair import JobRun
from duetime.rescuing import Rescuer
from duetime.run import PATIENCE, Run, RunKey
from duetime.settling import settle
from duetime.status import CLAIMABLE, RunStatus
from duetime.store import Store, WatchedRun
from duetime.watch import SPREAD

MOST_HINTS: Final = 8
"""20 s, doubling: about an hour and a half in all."""

PAGE: Final = 25
PAGES_AT_ONCE: Final = 8
"""After a long outage a patrol does so much in each slot; the next one, ten seconds later, goes on."""


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
    unanswered: list[tuple[RunKey, TaskError]] = field(default_factory=list)
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
        for found in self.threads.map(self._patrol_slot, range(SPREAD)):
            report.add(found)
        self._mark_late(report)
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
        after: WatchedRun | None = None
        for _ in range(PAGES_AT_ONCE):
            page = self.store.open_runs(slot, limit=PAGE, after=after)
            if page and after is None:
                report.anything_open = True
                self._look_for_late(slot, page, report)
            overdue = [place for place in page if place.at <= self.clock.now()]
            self._rescue(overdue, report)
            # Only a page full of overdue runs can have more of them behind it.
            if len(overdue) < PAGE:
                break
            after = overdue[-1]
        return report

    def _look_for_late(self, slot: int, page: Sequence[WatchedRun], report: PatrolReport) -> None:
        """If the first page shows one. Those that wait longest for their first hint have the earliest deadlines."""
        due_before = self.clock.now() - LATE
        if not any(place.waits_since and place.waits_since < due_before for place in page):
            return
        report.waiting_late, unmarked = self.store.waiting_late(slot, due_before=due_before, limit=LOOKED_AT)
        report.unmarked = list(unmarked)

    def _rescue(self, overdue: Sequence[WatchedRun], report: PatrolReport) -> None:
        # The index may be a moment behind: what counts is the run itself.
        found = self.store.load(place.key for place in overdue).values() if overdue else ()
        now = self.clock.now()
        late = [seen for seen in found if seen.run.deadline_at and seen.run.deadline_at <= now]
        self._hint_again([seen for seen in late if seen.run.status in CLAIMABLE], report, now)
        self._bury([seen.run for seen in late if seen.run.status is RunStatus.FAILED], report, now)
        for seen in late:
            if seen.run.status is RunStatus.RUNNING:
                self._take_over(seen, report)

    def _take_over(self, seen: JobRun, report: PatrolReport) -> None:
        try:
            rescued = self.rescuer.rescue(seen)
        except TaskError as error:
            # What was started elsewhere cannot be asked or stopped at this moment; the next patrol tries again.
            report.unanswered.append((seen.run.key, error))
            return
        if rescued:
            report.rescued.append(rescued)

    def _hint_again(self, waiting: Sequence[JobRun], report: PatrolReport, now: datetime) -> None:
        """The new deadline is written first: if we die before the hint is sent, it is found again."""
        hinted = []
        for seen in waiting:
            if seen.run.hints >= MOST_HINTS:
                self._give_up(seen, report, now)
                continue
            deadline_at = now + PATIENCE * 2**seen.run.hints
            after = seen.run.evolve(hints=seen.run.hints + 1, deadline_at=deadline_at, modified_time=now)
            if self.store.advance(seen.run, after):
                hinted.append(after)
        self.queues.send_hints([Hint.of(run) for run in hinted], now)
        report.hinted += hinted

    def _give_up(self, seen: JobRun, report: PatrolReport, now: datetime) -> None:
        reason = f"undeliverable: no worker took the run up after {MOST_HINTS} hints"
        run = dropped(seen.run, RunStatus.FAILED, reason, now)
        if settle(seen, run, self.store, now):
            report.given_up.append(run)

    def _bury(self, runs: Sequence[Run], report: PatrolReport, now: datetime) -> None:
        unsent = set(self.queues.send_dead_letters(runs)) if runs else set()
        for run in runs:
            after = dead_lettered(run, now)
            if run.key not in unsent and self.store.advance(run, after):
                report.dead_lettered.append(after)


def _is_late(seen: JobRun, now: datetime) -> bool:
    """The index may be a moment behind; and what its job no longer wants is not late, it is only not yet void."""
    run = seen.run
    is_waiting = run.status is RunStatus.QUEUED and run.late_at is None and run.put_off_at is None
    return is_waiting and is_late(run, now) and judge(*seen).verdict is not Verdict.UNWANTED
