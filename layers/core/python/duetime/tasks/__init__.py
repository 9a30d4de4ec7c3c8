"""Tasks: the kinds of work that a run can do. A new kind is one module here and one line in `_KINDS`."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from duetime.errors import InvalidField, TaskError, TransientFailure
from duetime.targets import AllowedTargets, ForbiddenTarget
from duetime.tasks.attempt import AttemptContext, Task
from duetime.tasks.http import HttpTask
from duetime.tasks.python import PythonTask

__all__ = ["AttemptContext", "Task", "check_task", "executor"]

_KINDS: Final[Mapping[str, type[HttpTask] | type[PythonTask]]] = {"http": HttpTask, "python": PythonTask}


def check_task(settings: Mapping[str, Any], allowed: AllowedTargets) -> None:
    """Refuse, when a job is written, what could not run."""
    try:
        _parse(settings).check(allowed)
    except ForbiddenTarget as error:
        raise InvalidField("task", str(error)) from error


def executor(allowed: AllowedTargets) -> Callable[[AttemptContext], Any]:
    def execute(context: AttemptContext) -> Any:
        try:
            task = _parse(context.task)
            task.check(allowed)
            return task.execute(context, allowed)
        except TaskError:
            raise
        except Exception as error:
            # The boundary to code that is not ours to trust: whatever a task does wrong is its run's failure,
            # never the end of the worker and of the runs beside it.
            raise TransientFailure(f"{type(error).__name__}: {error}") from error

    return execute


def _parse(settings: Mapping[str, Any]) -> Task:
    kind = settings.get("type")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InvalidField("task.type", f"must be one of {', '.join(_KINDS)}")
    return _KINDS[kind].parse({name: value for name, value in settings.items() if name != "type"})
