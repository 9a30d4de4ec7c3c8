"""When the patrols come: one every ten seconds while anything is open, none while nothing is.

They are messages that wait in the due queue, asked for two minutes ahead: EventBridge's ticks may be 119 seconds apart,
and each tick that finds something open asks for the next ones. No patrol asks for another, because Lambda stops a
function that wakes itself through a queue about 16 times in a row. The enqueuer asks for those that look after the runs
it announced, so that the first two minutes of a run are covered even if nothing was open before.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

from duetime.due_messages import Delayed, DueQueue, Patrol

EVERY: Final = timedelta(seconds=10)
SPAN: Final = timedelta(minutes=2)
_LONGEST_DELAY: Final = timedelta(minutes=15)
_SECOND: Final = timedelta(seconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Patrols:
    def __init__(self, due_queue: DueQueue) -> None:
        self._due_queue = due_queue
        self._asked: set[datetime] = set()
        self._last_done = _EPOCH

    def ask_for(self, since: datetime, now: datetime) -> None:
        """Patrols from then on, for two minutes. What this function has asked for before it does not ask for again."""
        first = _slot_after(since)
        slots = (first + n * EVERY for n in range(SPAN // EVERY))
        wanted = [at for at in slots if now < at <= now + _LONGEST_DELAY and at not in self._asked]
        self._due_queue.send([Delayed(Patrol(at), (at - now) // _SECOND) for at in wanted])
        self._asked = {asked for asked in self._asked if asked > now} | set(wanted)

    def is_due(self, patrol: Patrol) -> bool:
        """False for one that this function has already been on, or a later one: that looked at everything."""
        if patrol.at <= self._last_done:
            return False
        self._last_done = patrol.at
        return True


def _slot_after(moment: datetime) -> datetime:
    return moment + (EVERY - (moment - _EPOCH) % EVERY)
