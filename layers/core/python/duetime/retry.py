"""How long a run waits after a failed attempt."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

LONGEST_DELAY_SECONDS: Final = 900
"""An SQS message can be delayed by 15 minutes at most, so a longer wait could not be hinted on time."""

Fraction = Callable[[], float]
"""A random number in [0, 1). Passed in, so that a test knows it."""


class BackoffKind(StrEnum):
    FIXED = "fixed"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    kind: BackoffKind = BackoffKind.EXPONENTIAL
    base_seconds: int = 2
    cap_seconds: int = 300

    def delay_after(self, failed_attempts: int, fraction: Fraction) -> timedelta:
        """Fixed waits are exact. Exponential ones have full jitter (anything from nothing to the ceiling):
        runs that failed together must not come back together."""
        if self.kind is BackoffKind.FIXED:
            return timedelta(seconds=min(self.base_seconds, self.cap_seconds))
        ceiling = min(self.base_seconds * 2 ** (failed_attempts - 1), self.cap_seconds)
        return timedelta(milliseconds=int(ceiling * 1000 * fraction()))


def bounded(delay: timedelta) -> timedelta:
    """A target may name its own delay (Retry-After), but no wait is negative or longer than a hint can be."""
    return min(max(delay, timedelta()), timedelta(seconds=LONGEST_DELAY_SECONDS))
