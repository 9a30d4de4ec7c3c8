"""Keeping the dead-letter queues true to the runs.

A queue holds two kinds of messages: letters that the enqueuer wrote for runs that failed, and hints that SQS moved
there by itself, because they were received again and again. Seldom, and for a bounded number of messages, the watcher
looks at them: a letter whose run is no longer a dead letter (it was redriven) is taken away, and so is a hint whose run
has gone on.

That a hint was moved says little of its run: a worker that is throttled, or loses races, gives it back every two
seconds, and another hint may have done its duty since. Where workers really crash on a run, a hint is moved after more
than an hour, and the patrol, which has hinted the run all that time, knows that nobody looked at it. So the patrol's
criterion decides here too, and until then the message is left where people can see it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from duetime.clock import Clock
from duetime.finishing import dropped
from duetime.pair import JobRun
from duetime.patrolling import is_undeliverable
from duetime.run import RunKey
from duetime.settling import settle
from duetime.status import CLAIMABLE, RunStatus
from duetime.store import Store


class DeadMessage(NamedTuple):
    """A message on a dead-letter queue, as it was received."""

    key: RunKey
    # SQS moved it: it is a hint, and not a letter.
    was_moved: bool
    receipt: object


class DeadLetterQueues(Protocol):
    def receive(self) -> Sequence[DeadMessage]:
        """Some of the messages, hidden from others for a minute. Bounded."""

    def delete(self, messages: Sequence[DeadMessage]) -> None: ...


@dataclass(frozen=True, slots=True)
class LetterKeeper:
    store: Store
    dead_letters: DeadLetterQueues
    clock: Clock

    def tidy(self) -> int:
        """How many messages were taken away."""
        messages = self.dead_letters.receive()
        found = self.store.load(message.key for message in messages) if messages else {}
        done = [message for message in messages if self._is_done(message, found.get(message.key))]
        self.dead_letters.delete(done)
        return len(done)

    def _is_done(self, message: DeadMessage, seen: JobRun | None) -> bool:
        if seen is None:
            return True
        now = self.clock.now()
        if message.was_moved and seen.run.status in CLAIMABLE:
            return is_undeliverable(seen.run, now) and self._bury(seen, now)
        # A letter stays as long as its run is one; a hint that was moved has nothing more to say.
        return message.was_moved or seen.run.status not in (RunStatus.DEAD_LETTERED, RunStatus.FAILED)

    def _bury(self, seen: JobRun, now: datetime) -> bool:
        reason = "undeliverable: its hint was received again and again, and no worker survived it"
        after = dropped(seen.run, RunStatus.FAILED, reason, now)
        # The stream tells the enqueuer, which writes the letter; else the patrol does.
        return settle(seen, after, self.store, now) is not None
