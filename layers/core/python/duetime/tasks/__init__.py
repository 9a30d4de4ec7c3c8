"""Tasks: the kinds of work that a run can do. A new kind is one module and one registration; see interface.py."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from duetime.errors import InvalidField, PermanentFailure, TaskError, TransientFailure
from duetime.job import Job, JobSpec
from duetime.run import Run
from duetime.stopping import Stopped
from duetime.targets import ForbiddenTarget, Reach
from duetime.tasks.interface import LONGEST_IN_WORKER_SECONDS, Accepted, AttemptContext, Task
from duetime.tasks.registry import find_kind
from duetime.tasks.templates import fill, has_templates, values_of

__all__ = [
    "Accepted",
    "AttemptContext",
    "Task",
    "check_task",
    "execute",
    "filled",
    "parse_task",
    "settings_for",
    "wants_token",
]

# What templates are filled with when a job is written, to see what would come of them.
_SAMPLE: Final[dict[str, Any]] = {
    "job_id": "00000000-0000-0000-0000-000000000000",
    "run_id": "20300131T090000000Z-1-0000000000000000",
    "attempt": 1,
    "due_at": datetime(2030, 1, 31, 9, tzinfo=UTC),
    "fence": 1,
}


def check_task(spec: JobSpec, reach: Reach) -> None:
    """Refuse, when a job is written, what could not run."""
    _refuse_late_decisions(spec.task)
    task = parse_task(fill(spec.task, values_of(**_SAMPLE, payload=spec.payload)))
    try:
        task.check(reach)
    except ForbiddenTarget as error:
        raise InvalidField("task", str(error)) from error
    if not task.outlives_worker and spec.timeout_seconds > LONGEST_IN_WORKER_SECONDS:
        reason = f"must be at most {LONGEST_IN_WORKER_SECONDS} for a task that a worker performs itself"
        raise InvalidField("timeout_seconds", f"{reason}, and is {spec.timeout_seconds}")


def _refuse_late_decisions(settings: Mapping[str, Any]) -> None:
    """Whether an attempt gets a token is decided before its templates are filled."""
    for name in getattr(find_kind(settings.get("type")), "TOKEN_SETTINGS", ()):
        if isinstance(settings.get(name), str) and has_templates(settings[name]):
            raise InvalidField(
                f"task.{name}", "decides whether the task reports by itself, and cannot be a template"
            )


def filled(settings: Mapping[str, Any], **values: Any) -> Mapping[str, Any]:
    """The settings as one attempt sees them."""
    if not has_templates(settings):
        return settings
    found: Mapping[str, Any] = fill(settings, values_of(**values))
    return found


def settings_for(job: Job, run: Run) -> Mapping[str, Any]:
    """The settings of the attempt that the run is at. Raises InvalidField for a template that leads nowhere."""
    return filled(
        job.spec.task,
        job_id=run.job_id,
        run_id=run.run_id,
        attempt=run.attempt,
        due_at=run.nominal_at or run.due_at,
        fence=run.fence,
        payload=job.spec.payload,
    )


def parse_task(settings: Mapping[str, Any]) -> Task:
    kind = find_kind(settings.get("type"))
    task: Task = kind.parse({name: value for name, value in settings.items() if name != "type"})
    return task


def wants_token(settings: Mapping[str, Any]) -> bool:
    """Whether an attempt is given a token to report with. Asked before every claim, so it parses nothing."""
    try:
        wants = getattr(find_kind(settings.get("type")), "wants_token", None)
    except InvalidField:
        return False
    return bool(wants and wants(settings))


def execute(context: AttemptContext, reach: Reach) -> Any:
    """The result of the attempt, or Accepted; nothing but a TaskError or Stopped is raised."""
    try:
        task = parse_task(context.settings)
        task.check(reach)
        return task.execute(context, reach)
    except (TaskError, Stopped):
        raise
    except InvalidField as error:
        # The environment or a plug-in has changed since the job was written.
        raise PermanentFailure(error.message) from error
    except Exception as error:
        # The boundary to code that is not ours to trust: whatever a task does wrong is its run's failure,
        # never the end of the worker and of the runs beside it.
        raise TransientFailure(f"{type(error).__name__}: {error}") from error
