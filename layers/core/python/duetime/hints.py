"""A hint says that a run may be ready. It can be lost, doubled, early or late without harm: the claim arbitrates."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from duetime.instants import format_instant, parse_instant
from duetime.job import Priority
from duetime.retry import LONGEST_DELAY_SECONDS
from duetime.run import Run, RunKey


@dataclass(frozen=True, slots=True)
class Hint:
    key: RunKey
    priority: Priority
    owner: str
    not_before: datetime

    @classmethod
    def of(cls, run: Run) -> "Hint":
        return cls(run.key, run.priority, run.owner, run.not_before)

    def delay_seconds(self, now: datetime, lead: timedelta) -> int:
        """The whole seconds that remain but for the lead, cut and not rounded: a hint may come early, never late."""
        remaining = (self.not_before - now - lead) // timedelta(seconds=1)
        return min(max(remaining, 0), LONGEST_DELAY_SECONDS)

    def to_message(self) -> str:
        job_id, run_id = self.key
        return json.dumps({"job_id": job_id, "run_id": run_id, "not_before": format_instant(self.not_before)})


@dataclass(frozen=True, slots=True)
class ReceivedHint:
    """What a worker makes of a message."""

    key: RunKey
    not_before: datetime

    @classmethod
    def from_message(cls, body: str) -> "ReceivedHint":
        values = json.loads(body)
        return cls(RunKey(values["job_id"], values["run_id"]), parse_instant(values["not_before"]))


class RunQueues(Protocol):
    """The queues that hints and dead letters go to. Each verb returns the keys that could not be sent."""

    def send_hints(self, hints: Sequence[Hint], now: datetime) -> Collection[RunKey]: ...

    def send_dead_letters(self, runs: Sequence[Run]) -> Collection[RunKey]: ...
