"""The watcher: what it does when it is woken, and how it sees to it that it is woken again."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from duetime.clock import Clock
from duetime.due_messages import Patrol, SweepShard, WorkEnded
from duetime.errors import Unavailable
from duetime.letters import LetterKeeper
from duetime.patrolling import Patroller, PatrolReport
from duetime.patrols import Patrols
from duetime.run import Run
from duetime.sweeping import Sweeper, SweepReport
from duetime.wakeups import WakeUps, soonest_wakeup
from duetime.work_reports import WorkReports


class TickReport(NamedTuple):
    sweep: SweepReport
    patrol: PatrolReport


@dataclass(frozen=True, slots=True)
class Watcher:
    sweeper: Sweeper
    patroller: Patroller
    patrols: Patrols
    reports: WorkReports
    letters: LetterKeeper
    wakeups: WakeUps
    clock: Clock

    def tick(self) -> TickReport:
        """The two duties do not depend on each other: what goes wrong with one does not keep the other from its own."""
        report, patrol = SweepReport(), PatrolReport(anything_open=True)
        try:
            report = self._sweep()
        except Exception as error:
            report.unwritten.append(error)
        try:
            patrol = self.patroller.patrol()
        except Exception as error:
            patrol.unread.append(error)
        report.unwritten += patrol.unread
        if patrol.anything_open or report.runs or report.handed_on or report.unwritten:
            self._expect_tick()
            self.patrols.ask_for(self.clock.now(), self.clock.now())
        return TickReport(report, patrol)

    def _sweep(self) -> SweepReport:
        started_at = self.clock.now()
        pages = self.sweeper.look()
        if any(pages):
            # Before anything else: whoever dies from here on has a successor.
            self._expect_tick()
        report = self.sweeper.sweep(pages)
        report.lasted = self.clock.now() - started_at
        return report

    def tidy(self) -> int:
        """What is seldom wrong: how many messages were taken off the dead-letter queues."""
        return self.letters.tidy()

    def take_report(self, message: WorkEnded) -> Run | None:
        return self.reports.take(message.source, message.detail)

    def sweep_shard(self, message: SweepShard, has_time: Callable[[], bool]) -> SweepReport:
        started_at = self.clock.now()
        report = self.sweeper.sweep_shard(message, has_time)
        report.lasted = self.clock.now() - started_at
        return report

    def patrol(self, message: Patrol) -> PatrolReport | None:
        if not self.patrols.is_due(message):
            return None
        report = self.patroller.patrol()
        if report.anything_open:
            self._expect_tick()
        return report

    def _expect_tick(self) -> None:
        """While anything is open there is a tick every minute. Without one (EventBridge is out of order) the patrols
        that were asked for go on for two minutes, and then there is the backstop."""
        with suppress(Unavailable):
            self.wakeups.ensure([soonest_wakeup(self.clock.now())])
