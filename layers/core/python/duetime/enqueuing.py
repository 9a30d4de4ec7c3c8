"""What the queues must be told when a run has changed."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from duetime.clock import Clock
from duetime.finishing import dead_lettered
from duetime.hints import Hint, RunQueues
from duetime.run import Run, RunKey
from duetime.status import CLAIMABLE, RunStatus
from duetime.store import Store

ANNOUNCED: Final = CLAIMABLE | {RunStatus.FAILED}


@dataclass(frozen=True, slots=True)
class Change:
    """A run as it became, and the status it came from (None: it is new)."""

    run: Run
    was: RunStatus | None

    @property
    def matters(self) -> bool:
        """Only entering a status is news. A run that is QUEUED and was QUEUED has had its hint."""
        return self.run.status in ANNOUNCED and self.run.status is not self.was


def announce(changes: Iterable[Change], queues: RunQueues, store: Store, clock: Clock) -> Collection[RunKey]:
    """Returns the keys of the runs whose queue was not told; to tell it again does no harm."""
    news = [change.run for change in changes if change.matters]
    ready = [Hint.of(run) for run in news if run.status in CLAIMABLE]
    unsent = set(queues.send_hints(ready, clock.now()))
    return unsent | _bury([run for run in news if run.status is RunStatus.FAILED], queues, store, clock)


def _bury(runs: list[Run], queues: RunQueues, store: Store, clock: Clock) -> set[RunKey]:
    """First the queue, then the mark: a crash in between sends it twice, and never forgets it."""
    unsent = set(queues.send_dead_letters(runs))
    for run in runs:
        if run.key not in unsent:
            store.mark_dead_lettered(dead_lettered(run, clock.now()))
    return unsent
