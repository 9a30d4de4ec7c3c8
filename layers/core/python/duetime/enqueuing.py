"""What the queues must be told when a run has changed."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from duetime.clock import Clock
from duetime.finishing import dead_lettered
from duetime.hints import Hint, RunQueues
from duetime.measuring import LATE
from duetime.patrols import Patrols
from duetime.run import Run, RunKey
from duetime.status import CLAIMABLE, RunStatus
from duetime.store import Store

ANNOUNCED: Final = CLAIMABLE | {RunStatus.FAILED}


@dataclass(frozen=True, slots=True)
class Change:
    """A run as it became, and as it was (None: it is new)."""

    run: Run
    was: Run | None

    @property
    def matters(self) -> bool:
        """Entering a status is news, and so is that its turn has come. A run that was QUEUED has had its hint."""
        if self.run.status not in ANNOUNCED:
            return False
        return not self.was or (self.run.status, self.run.called_at) != (self.was.status, self.was.called_at)


@dataclass(frozen=True, slots=True)
class Announcer:
    store: Store
    queues: RunQueues
    patrols: Patrols
    clock: Clock

    def announce(self, changes: Sequence[Change]) -> Collection[RunKey]:
        """Returns the keys of the runs whose queue was not told; to tell it again does no harm."""
        news = [change.run for change in changes if change.matters]
        ready = [run for run in news if run.status in CLAIMABLE]
        unsent = set(self.queues.send_hints([Hint.of(run) for run in ready], self.clock.now()))
        unsent |= self._bury([run for run in news if run.status is RunStatus.FAILED])
        for run in ready:
            # From when it would be late: that is to be known while it waits.
            self.patrols.ask_for(run.not_before + LATE, self.clock.now())
        return unsent

    def _bury(self, runs: Sequence[Run]) -> set[RunKey]:
        """First the queue, then the mark: a crash in between sends it twice, and never forgets it."""
        unsent = set(self.queues.send_dead_letters(runs))
        for run in runs:
            if run.key not in unsent:
                self.store.advance(run, dead_lettered(run, self.clock.now()))
        return unsent
