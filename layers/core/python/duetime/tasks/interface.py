"""What a kind of task is, and what every attempt receives. docs/tasks.md shows how to write one."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final, Protocol, runtime_checkable

from duetime import tracing
from duetime.clock import Clock, SystemClock
from duetime.instants import format_instant
from duetime.secrecy import Redactor
from duetime.stopping import StopSignal
from duetime.targets import Reach

CHECKPOINT_LIMIT_BYTES: Final = 4 * 1024
"""It travels in a header too."""

HANDLE_LIMIT_BYTES: Final = 4 * 1024
"""It is kept with the run, which has to fit into an item."""

LONGEST_IN_WORKER_SECONDS: Final = 840
"""A worker lives 15 minutes at most; the last minute is for what comes before and after the task."""


def _ignore(_: Any) -> None:
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptContext:
    """What an attempt is told, and what it may do while it lasts."""

    job_id: str
    run_id: str
    owner: str
    # The task's settings, with its templates filled in.
    settings: Mapping[str, Any]
    payload: Any
    attempt: int
    # What the schedule says; jitter, retries and outages do not change it.
    due_at: datetime
    fence: int
    # By when it must have ended.
    deadline_at: datetime
    # What the attempt before saved.
    checkpoint: Any = None
    # Whoever has it may speak for this attempt: heartbeat, complete, fail. Only for tasks that ask for it.
    callback_token: str | None = None
    # Of the request that directly caused the run, if one did.
    trace_id: str | None = None
    clock: Clock = field(default_factory=SystemClock)
    stop: StopSignal = field(default_factory=StopSignal)
    redactor: Redactor = field(default_factory=Redactor)
    log: Callable[[str], None] = _ignore
    save_checkpoint: Callable[[Any], None] = _ignore

    @property
    def idempotency_key(self) -> str:
        return self.run_id

    def seconds_left(self) -> float:
        return max(0.0, (self.deadline_at - self.clock.now()).total_seconds())

    def as_headers(self) -> dict[str, str]:
        headers = {
            "Idempotency-Key": self.idempotency_key,
            "Duetime-Job-Id": self.job_id,
            "Duetime-Attempt": str(self.attempt),
            "Duetime-Due-At": format_instant(self.due_at),
            "Duetime-Fence": str(self.fence),
            "Duetime-Deadline": format_instant(self.deadline_at),
        }
        if self.checkpoint is not None:
            headers["Duetime-Checkpoint"] = json.dumps(self.checkpoint, separators=(",", ":"))
        if self.callback_token:
            headers["Duetime-Callback-Token"] = self.callback_token
        if self.trace_id:
            headers[tracing.HEADER] = tracing.as_header(self.trace_id)
        return headers

    def as_object(self) -> dict[str, Any]:
        """The same for targets that take JSON instead of headers."""
        told = {
            "job_id": self.job_id,
            "run_id": self.run_id,
            "idempotency_key": self.idempotency_key,
            "attempt": self.attempt,
            "due_at": format_instant(self.due_at),
            "fence": self.fence,
            "deadline_at": format_instant(self.deadline_at),
            "checkpoint": self.checkpoint,
        }
        secret = {"callback_token": self.callback_token} if self.callback_token else {}
        return told | secret | ({"trace_id": self.trace_id} if self.trace_id else {})

    def as_message(self, content: Any) -> str:
        """What functions, queues, topics, buses and state machines are sent."""
        return json.dumps({"payload": content, "duetime": self.as_object()})


@dataclass(frozen=True, slots=True)
class Accepted:
    """The work goes on elsewhere: its system reports, or is asked."""

    # The lease from now on; each sign of life extends it by as much.
    heartbeat: timedelta
    # What was started, for kinds that can look after it and stop it.
    handle: Mapping[str, Any] | None = None


class Task(Protocol):
    """Settings that were validated, and the work that they describe.

    A kind whose tasks report by callback also has a classmethod `wants_token(settings) -> bool`, and the names of the
    settings that it looks at in `TOKEN_SETTINGS`: these cannot be templates. One that can look after what it started
    has the methods of LooksAfter, and one that finds it without a handle (its worker died before that was written down)
    a classmethod `find(settings, key, attempt)` that returns the handle or None.
    """

    @property
    def outlives_worker(self) -> bool:
        """Whether it may answer Accepted, and so last longer than a worker."""

    @classmethod
    def parse(cls, settings: Mapping[str, Any]) -> "Task":
        """Raises InvalidField, naming `task.<setting>`."""

    def check(self, reach: Reach) -> None:
        """Raises ForbiddenTarget for what can be seen to be forbidden without reaching for it."""

    def execute(self, context: AttemptContext, reach: Reach) -> Any:
        """Do the work and return a JSON value, or Accepted; or raise TransientFailure or PermanentFailure. If
        `context.stop` is given meanwhile, end soon, however; what is returned or raised then does not matter."""


@dataclass(frozen=True, slots=True)
class StillRunning:
    """What was started goes on."""


@dataclass(frozen=True, slots=True)
class Succeeded:
    result: Any = None


@dataclass(frozen=True, slots=True)
class Failed:
    error: str
    is_permanent: bool = False


Finding = StillRunning | Succeeded | Failed


@runtime_checkable
class LooksAfter(Protocol):
    """A kind whose tasks start something that it can look at and stop, by the handle of Accepted."""

    CAN_LOOK_AFTER: ClassVar[bool]

    @classmethod
    def look(cls, handle: Mapping[str, Any]) -> Finding: ...

    @classmethod
    def end(cls, handle: Mapping[str, Any], reason: str) -> None:
        """Really stop it. No error if it has ended already. It is looked at until it has."""
