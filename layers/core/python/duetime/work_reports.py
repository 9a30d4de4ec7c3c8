"""What ECS and Step Functions report of what Duetime started, through EventBridge rules into the due queue."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from duetime.errors import DuetimeError
from duetime.pair import JobRun
from duetime.rescuing import Rescuer
from duetime.run import Run
from duetime.status import RunStatus
from duetime.store import Store
from duetime.tasks.interface import Finding, StillRunning
from duetime.tasks.work_names import StartedFor, parse_execution_name, parse_started_by

# The kind of task, and what names its work in an event and in a handle.
_NAMED_BY: Final = {
    "aws.ecs": ("ecs", "taskArn", "task_arn"),
    "aws.states": ("states", "executionArn", "execution_arn"),
}


class TooSoon(DuetimeError):
    """The work has ended before its worker has written down that it began. The message comes back in a moment."""


@dataclass(frozen=True, slots=True)
class WorkReports:
    store: Store
    rescuer: Rescuer

    def take(self, source: str, detail: Mapping[str, Any]) -> Run | None:
        """The run that ended with it; None if it is nobody's, or an attempt that is over."""
        started = _started_for(source, detail)
        found = self.store.load([started.key]) if started else {}
        seen = found.get(started.key) if started else None
        if not started or not seen or not _is_under_way(seen, started):
            return None
        if seen.run.handle is None:
            raise TooSoon(f"run {seen.run.run_id} is not known to have started yet")
        if not _is_about(source, detail, seen.run.handle):
            return None
        finding = _finding(source, detail, seen.run.handle)
        return None if isinstance(finding, StillRunning) else self.rescuer.conclude(seen, finding)


def _is_under_way(seen: JobRun, started: StartedFor) -> bool:
    return (seen.run.status, seen.run.attempt) == (RunStatus.RUNNING, started.attempt)


def _is_about(source: str, detail: Mapping[str, Any], handle: Mapping[str, Any]) -> bool:
    """Whoever may start containers or executions in this account can give them any name. Ours has the very ARN that we
    were told when we started it."""
    kind, told, kept = _NAMED_BY.get(source, ("", "", ""))
    return bool(handle.get("type") == kind and detail.get(told) and detail.get(told) == handle.get(kept))


def _started_for(source: str, detail: Mapping[str, Any]) -> StartedFor | None:
    if source == "aws.ecs":
        return parse_started_by(str(detail.get("startedBy", "")))
    return parse_execution_name(str(detail.get("name", "")))


def _finding(source: str, detail: Mapping[str, Any], handle: Mapping[str, Any]) -> Finding:
    # Imported here: most deployments never see one.
    if source == "aws.ecs":
        from duetime.tasks import ecs

        return ecs.finding_of(detail, handle)
    from duetime.tasks import states

    return states.finding_of(
        str(detail.get("status")), detail.get("output"), detail.get("error"), detail.get("cause")
    )
