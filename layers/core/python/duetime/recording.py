"""Writing down what came of an attempt. The work is done: if its outcome were dropped, it would be done again."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from duetime.clock import Clock
from duetime.run import Run

PATIENCE: Final = timedelta(minutes=2)
"""A store that refuses so long, though it renews the lease, will go on doing so. Then the lease is left to end."""

_FIRST_PAUSE: Final = timedelta(milliseconds=100)
_LONGEST_PAUSE: Final = timedelta(seconds=2)


def record(write: Callable[[], Run | None], lease_end: Callable[[], datetime], clock: Clock) -> Run | None:
    """What `write` returns, tried until it does not raise, or the lease is over and the run perhaps another's."""
    give_up_at, pause = clock.now() + PATIENCE, _FIRST_PAUSE
    while True:
        try:
            return write()
        except Exception:
            if clock.now() + pause >= min(lease_end(), give_up_at):
                raise
        clock.wait_until(clock.now() + pause)
        pause = min(pause * 2, _LONGEST_PAUSE)
