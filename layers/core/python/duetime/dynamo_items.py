"""Jobs and runs as DynamoDB items, and back. Attribute names are the API's names.

Task, payload and result are kept as JSON text: DynamoDB's own numbers would turn 1.0 into 1 and refuse NaN late.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any, Final

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer

from duetime.instants import format_instant, parse_instant
from duetime.job import Job, JobSpec, Priority, ScheduleType
from duetime.retry import BackoffKind, RetryPolicy
from duetime.run import Attempt, AttemptOutcome, Run
from duetime.status import JobStatus, RunStatus
from duetime.watch import spread, watch_of

Item = dict[str, Any]

OWNER_BUCKETS: Final = 32
"""One owner may submit 10,000 jobs a second and each job is written to the listing twice: at most 1,000 writes a
second fall on one key value."""

_serialize = TypeSerializer().serialize
_deserialize = TypeDeserializer().deserialize


def to_value(value: Any) -> Any:
    return _serialize(_plain(value))


def job_to_item(job: Job) -> Item:
    spec = job.spec
    attributes = {field.name: getattr(spec, field.name) for field in fields(JobSpec)}
    attributes |= {field.name: getattr(job, field.name) for field in fields(Job) if field.name != "spec"}
    attributes |= {
        "task": json.dumps(spec.task),
        "payload": None if spec.payload is None else json.dumps(spec.payload),
        "retry": asdict(spec.retry),
        "owner_bucket": f"{job.owner}#{spread(job.job_id, OWNER_BUCKETS)}",
        "shard": spread(job.job_id),
    }
    return _to_item(attributes)


def item_to_job(item: Item) -> Job:
    values = _from_item(item)
    retry = values["retry"]
    spec = JobSpec(
        **_picked(values, JobSpec)
        | {
            "schedule_type": ScheduleType(values["schedule_type"]),
            "task": json.loads(values["task"]),
            "payload": json.loads(values["payload"]) if "payload" in values else None,
            "priority": Priority(values["priority"]),
            "retry": RetryPolicy(BackoffKind(retry["kind"]), retry["base_seconds"], retry["cap_seconds"]),
            "tags": tuple(values["tags"]),
        }
    )
    state = _picked(values, Job) | {"spec": spec, "status": JobStatus(values["status"])}
    return Job(
        **_typed(
            state, {"last_outcome": RunStatus}, ("created_at", "updated_at", "changed_at", "next_run_at")
        )
    )


def run_to_item(run: Run) -> Item:
    attributes = {field.name: getattr(run, field.name) for field in fields(Run)}
    attributes["attempts"] = [attempt_to_map(attempt) for attempt in run.attempts]
    attributes["result"] = None if run.result is None else json.dumps(run.result)
    if watch := watch_of(run):
        attributes |= {"watch_key": watch.key, "watch_at": watch.at}
    return _to_item(attributes)


def item_to_run(item: Item) -> Run:
    values = _picked(_from_item(item), Run)
    values["attempts"] = tuple(_map_to_attempt(attempt) for attempt in values["attempts"])
    if "result" in values:
        values["result"] = json.loads(values["result"])
    return Run(
        **_typed(
            values,
            {"status": RunStatus, "priority": Priority},
            ("due_at", "not_before", "modified_time", "claimed_at", "start_time", "end_time", "deadline_at"),
        )
    )


def attempt_to_map(attempt: Attempt) -> dict[str, Any]:
    values = {field.name: _plain(getattr(attempt, field.name)) for field in fields(Attempt)}
    return {name: value for name, value in values.items() if value is not None}


def _map_to_attempt(values: dict[str, Any]) -> Attempt:
    return Attempt(**_typed(values, {"outcome": AttemptOutcome}, ("claimed_at", "start_time", "end_time")))


def _plain(value: Any) -> Any:
    return format_instant(value) if isinstance(value, datetime) else value


def _to_item(attributes: Mapping[str, Any]) -> Item:
    """None is left out: an index must not hold what has no such key, and absence costs no bytes."""
    return {name: to_value(value) for name, value in attributes.items() if value is not None}


def _from_item(item: Item) -> dict[str, Any]:
    return {name: _whole(_deserialize(value)) for name, value in item.items()}


def _whole(value: Any) -> Any:
    """The serializer reads every number as a Decimal; every number that Duetime stores is whole."""
    if isinstance(value, dict):
        return {name: _whole(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_whole(inner) for inner in value]
    return value if isinstance(value, str | bool | type(None)) else int(value)


def _picked(values: Mapping[str, Any], into: type) -> dict[str, Any]:
    """Only the fields of that class: index keys, and what a newer version may have added, are passed over."""
    names = {field.name for field in fields(into)}
    return {name: value for name, value in values.items() if name in names}


def _typed(
    values: dict[str, Any], enums: Mapping[str, Callable[[str], Any]], instants: tuple[str, ...]
) -> dict[str, Any]:
    typed = dict(values)
    for name, enum in enums.items():
        if name in typed:
            typed[name] = enum(typed[name])
    for name in instants:
        if name in typed:
            typed[name] = parse_instant(typed[name])
    return typed
