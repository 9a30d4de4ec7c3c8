"""What the due queue carries: reasons for the watcher to look.

None of them says what to do to whom: the watcher looks at the indexes. So any message may be lost, doubled or late.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from duetime.instants import format_instant, parse_instant
from duetime.store import WaitingJob


@dataclass(frozen=True, slots=True)
class Tick:
    """A minute has come: plan what waits, and look after what is open. From EventBridge."""

    # The backstop's: also what is seldom wrong, and takes longer to look at.
    is_thorough: bool = False

    def to_body(self) -> dict[str, Any]:
        return {"kind": "tick"} | ({"thorough": True} if self.is_thorough else {})


@dataclass(frozen=True, slots=True)
class SweepShard:
    """One shard has more to plan than a tick does on the spot. From the watcher itself."""

    shard: int
    after: WaitingJob | None = None
    # How often it was handed on; Lambda stops a function that calls itself through a queue about 16 times.
    hop: int = 0

    def to_body(self) -> dict[str, Any]:
        after = self.after and [format_instant(self.after.next_run_at), self.after.job_id]
        return {"kind": "sweep", "shard": self.shard, "after": after, "hop": self.hop}


@dataclass(frozen=True, slots=True)
class Patrol:
    """Look after what is open, at about this time. From the enqueuer, and from a tick."""

    at: datetime

    def to_body(self) -> dict[str, Any]:
        return {"kind": "patrol", "at": format_instant(self.at)}


@dataclass(frozen=True, slots=True)
class Audit:
    """The times of these jobs that were planned some minutes ago have come: does each have its run? From a sweep."""

    job_ids: tuple[str, ...]

    def to_body(self) -> dict[str, Any]:
        return {"kind": "audit", "job_ids": list(self.job_ids)}


@dataclass(frozen=True, slots=True)
class WorkEnded:
    """Something that a task started has ended. From ECS and Step Functions, through EventBridge."""

    source: str
    detail: Mapping[str, Any]

    def to_body(self) -> dict[str, Any]:
        return {"source": self.source, "detail": dict(self.detail)}


DueMessage = Tick | SweepShard | Patrol | Audit | WorkEnded


def parse_due_message(text: str) -> DueMessage:
    """Raises ValueError, KeyError or TypeError for what no part of Duetime wrote."""
    body: Mapping[str, Any] = json.loads(text)
    if "source" in body:
        return WorkEnded(str(body["source"]), dict(body["detail"]))
    match body["kind"]:
        case "tick":
            return Tick(bool(body.get("thorough")))
        case "sweep":
            return SweepShard(int(body["shard"]), _parse_place(body["after"]), int(body["hop"]))
        case "patrol":
            return Patrol(parse_instant(body["at"]))
        case "audit":
            return Audit(tuple(str(job_id) for job_id in body["job_ids"]))
    raise ValueError(f"{body['kind']!r} is not a kind of message that the due queue carries")


def _parse_place(place: list[str] | None) -> WaitingJob | None:
    return WaitingJob(parse_instant(place[0]), place[1]) if place else None


class Delayed(NamedTuple):
    message: DueMessage
    delay_seconds: int = 0


class DueQueue(Protocol):
    def send(self, messages: Sequence[Delayed]) -> None: ...
