"""What every attempt receives, and what a kind of task must be able to do."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from duetime.errors import InvalidField
from duetime.instants import format_instant
from duetime.targets import AllowedTargets

if TYPE_CHECKING:
    from duetime.pair import JobRun


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptContext:
    job_id: str
    run_id: str
    task: Mapping[str, Any]
    payload: Any
    attempt: int
    due_at: datetime
    fence: int
    timeout_seconds: int

    @classmethod
    def of(cls, held: "JobRun") -> "AttemptContext":
        assert held.run.fence is not None
        return cls(
            job_id=held.job.job_id,
            run_id=held.run.run_id,
            task=held.job.spec.task,
            payload=held.job.spec.payload,
            attempt=held.run.attempt,
            due_at=held.run.due_at,
            fence=held.run.fence,
            timeout_seconds=held.job.spec.timeout_seconds,
        )

    def as_headers(self) -> dict[str, str]:
        return {
            "Idempotency-Key": self.run_id,
            "Duetime-Attempt": str(self.attempt),
            "Duetime-Due-At": format_instant(self.due_at),
            "Duetime-Fence": str(self.fence),
        }

    def as_object(self) -> dict[str, Any]:
        """The same for targets that take JSON instead of headers."""
        return {
            "job_id": self.job_id,
            "run_id": self.run_id,
            "idempotency_key": self.run_id,
            "attempt": self.attempt,
            "due_at": format_instant(self.due_at),
            "fence": self.fence,
        }


class Task(Protocol):
    """Settings that were validated, and the work that they describe."""

    @classmethod
    def parse(cls, settings: Mapping[str, Any]) -> "Task":
        """Raises InvalidField, naming `task.<setting>`."""

    def check(self, allowed: AllowedTargets) -> None:
        """Raises ForbiddenTarget for what can be seen to be forbidden without reaching for it."""

    def execute(self, context: AttemptContext, allowed: AllowedTargets) -> Any:
        """Do the work and return a JSON value, or raise TransientFailure or PermanentFailure."""


def refuse_unknown(settings: Mapping[str, Any], known: Collection[str]) -> None:
    for name in settings:
        if name not in known:
            raise InvalidField(
                f"task.{name}", f"is not a setting of this task: it has {', '.join(sorted(known))}"
            )
