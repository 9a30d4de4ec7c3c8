"""The watcher: what it does when it is woken, and how it sees to it that it is woken again."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from duetime.clock import Clock
from duetime.due_messages import Patrol, SweepShard
from duetime.errors import Unavailable
from duetime.patrolling import Patroller, PatrolReport
from duetime.patrols import Patrols
from duetime.sweeping import Sweeper, SweepReport
from duetime.wakeups import WakeUps, soonest_wakeup


@dataclass(frozen=True, slots=True)
class Watcher:
    sweeper: Sweeper
    patroller: Patroller
    patrols: Patrols
    wakeups: WakeUps
    clock: Clock

    def tick(self) -> SweepReport:
        # First the patrol: what is overdue is more urgent than what is due in two minutes.
        patrol = self.patroller.patrol()
        report = self.sweeper.sweep_all()
        if patrol.anything_open or report.runs or report.handed_on:
            self._expect_tick()
            self.patrols.ask_for(self.clock.now(), self.clock.now())
        return report

    def sweep_shard(self, message: SweepShard, has_time: Callable[[], bool]) -> SweepReport:
        return self.sweeper.sweep_shard(message, has_time)

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
