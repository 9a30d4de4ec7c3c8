"""The worker: claim a run, execute its task, record the outcome."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from duetime.attempting import Attempter
from duetime.claimant import Claimant
from duetime.clock import Clock
from duetime.hints import ReceivedHint
from duetime.pair import JobRun
from duetime.run import Run, RunKey
from duetime.store import Store

LONGEST_WAIT: Final = timedelta(seconds=3)
"""A hint that comes earlier than this goes back to its queue: a worker's time is paid for while it waits."""


@dataclass(frozen=True, slots=True)
class Worker:
    store: Store
    clock: Clock
    claimant: Claimant
    attempter: Attempter

    def load(self, hints: Sequence[ReceivedHint]) -> dict[RunKey, JobRun]:
        """One read for a whole batch of hints."""
        return dict(self.store.load(hint.key for hint in hints))

    def time_until_due(self, seen: JobRun) -> timedelta:
        return seen.run.not_before - self.clock.now()

    def work(self, seen: JobRun) -> Run | None:
        """The run as it became here, or None if it was not this worker's to run or to record."""
        claim = self.claimant.claim(seen)
        if claim is None:
            return None
        self.clock.wait_until(claim.held.run.not_before)
        return self.attempter.attempt(claim)
