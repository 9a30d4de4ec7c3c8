"""Work elsewhere that was told to stop, and has not ended yet.

A container has half a minute, or two, to put its things away. The next attempt must not begin beside it, so the run
stays RUNNING until it has ended. Why it was stopped is kept with its handle: whoever looks next, or hears of its end,
goes on from there.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from duetime.cutting import cut
from duetime.instants import format_instant, parse_instant
from duetime.run import AttemptOutcome, Run

LONGEST: Final = timedelta(minutes=10)
"""What has not ended so long after it was first told to is taken for unstoppable."""

LOOK_AGAIN: Final = timedelta(seconds=10)
_KEPT_AS: Final = "ending"
_REASON_BYTES: Final = 512


@dataclass(frozen=True, slots=True)
class Ending:
    since: datetime
    reason: str
    outcome: AttemptOutcome

    @classmethod
    def of(cls, run: Run) -> "Ending | None":
        kept = (run.handle or {}).get(_KEPT_AS)
        if kept is None:
            return None
        return cls(parse_instant(kept["since"]), kept["reason"], AttemptOutcome(kept["outcome"]))

    def kept_with(self, handle: Mapping[str, Any]) -> Mapping[str, Any]:
        told = {"since": format_instant(self.since), "reason": cut(self.reason, _REASON_BYTES)}
        return {**handle, _KEPT_AS: told | {"outcome": self.outcome}}
