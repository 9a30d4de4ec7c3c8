"""The kinds of task: the built-in ones, and those that somebody's own package registers.

A package in a layer of the worker and of job_service registers a kind by an entry point of the group `duetime.tasks`,
named as the kind, that leads to its class. Built-in names cannot be taken. A module is imported when its kind is first
met, so that nobody pays for kinds that nobody uses.
"""

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Final

from duetime.errors import InvalidField

GROUP: Final = "duetime.tasks"
BUILT_IN: Final = {
    "http": "duetime.tasks.http:HttpTask",
    "python": "duetime.tasks.python:PythonTask",
    "lambda": "duetime.tasks.lambda_function:LambdaTask",
    "sqs": "duetime.tasks.sqs:SqsTask",
    "sns": "duetime.tasks.sns:SnsTask",
    "events": "duetime.tasks.events:EventsTask",
    "states": "duetime.tasks.states:StatesTask",
    "ecs": "duetime.tasks.ecs:EcsTask",
}


def find_kind(name: Any) -> Any:
    """The class of a kind. Raises InvalidField for one that nobody registered."""
    if not isinstance(name, str) or not (kind := _load(name)):
        registered = {point.name for point in entry_points(group=GROUP)} - set(BUILT_IN)
        known = ", ".join([*BUILT_IN, *sorted(registered)])
        raise InvalidField("task.type", f"must be one of {known}")
    return kind


@cache
def _load(name: str) -> Any:
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        return getattr(import_module(module), attribute)
    # Looking for entry points means looking at every installed package: only for names that are not ours.
    for point in entry_points(group=GROUP, name=name):
        return point.load()
    return None
