"""Jobs and runs as DynamoDB items, and back. Attribute names are the API's names."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, Final

from duetime.dynamo_values import (
    FLAG,
    INSTANT,
    INSTANTS,
    JSON,
    NUMBER,
    TEXT,
    TEXTS,
    Item,
    Kind,
    enum,
    enums,
    read_fields,
    record,
    records,
    to_value,
    write_fields,
)
from duetime.job import Job, JobSpec, Overlap, Priority
from duetime.listing import part_of
from duetime.notify import NoticeEvent, Notify, Protocol
from duetime.retry import BackoffKind, RetryPolicy
from duetime.run import Attempt, AttemptOutcome, Run, RunKey
from duetime.status import JobStatus, RunStatus
from duetime.timing import CatchUp, ScheduleType, Timing
from duetime.watch import shard_of, watch_of

_TIMING: Final[Mapping[str, Kind]] = {
    "schedule_type": enum(ScheduleType),
    "schedule_time": INSTANT,
    "cron_expression": TEXT,
    "timezone": TEXT,
    "interval_seconds": NUMBER,
    "start_at": INSTANT,
    "end_at": INSTANT,
    "jitter_seconds": NUMBER,
    "dst_gap": TEXT,
    "dst_overlap": TEXT,
    "catch_up": enum(CatchUp),
}
_RETRY: Final[Mapping[str, Kind]] = {
    "kind": enum(BackoffKind),
    "base_seconds": NUMBER,
    "cap_seconds": NUMBER,
}
_NOTIFY: Final[Mapping[str, Kind]] = {
    "events": enums(NoticeEvent),
    "protocol": enum(Protocol),
    "endpoint": TEXT,
}
_SPEC: Final[Mapping[str, Kind]] = {
    "name": TEXT,
    "task": JSON,
    "payload": JSON,
    "priority": enum(Priority),
    "max_retries": NUMBER,
    "retry": record(_RETRY, RetryPolicy),
    "timeout_seconds": NUMBER,
    "max_concurrency": NUMBER,
    "overlap": enum(Overlap),
    "tags": TEXTS,
    "notify": record(_NOTIFY, Notify),
}
_JOB: Final[Mapping[str, Kind]] = {
    "job_id": TEXT,
    "owner": TEXT,
    "created_at": INSTANT,
    "updated_at": INSTANT,
    "updated_by": TEXT,
    "anchor_at": INSTANT,
    "status": enum(JobStatus),
    "next_run_at": INSTANT,
    "generation": NUMBER,
    "generation_ends": INSTANTS,
    "audited_until": INSTANT,
    "version": NUMBER,
    "final_run_id": TEXT,
    "final_ended": FLAG,
    "running": NUMBER,
    "waiters": NUMBER,
    "turn_from": TEXT,
    "fence": NUMBER,
    "succeeded": NUMBER,
    "failed": NUMBER,
    "last_outcome": enum(RunStatus),
    "created_from": TEXT,
    "request_digest": TEXT,
}
_ATTEMPT: Final[Mapping[str, Kind]] = {
    "attempt": NUMBER,
    "executor_id": TEXT,
    "claimed_at": INSTANT,
    "start_time": INSTANT,
    "end_time": INSTANT,
    "outcome": enum(AttemptOutcome),
    "error": TEXT,
}
_RUN: Final[Mapping[str, Kind]] = {
    "job_id": TEXT,
    "run_id": TEXT,
    "owner": TEXT,
    "priority": enum(Priority),
    "generation": NUMBER,
    "due_at": INSTANT,
    "not_before": INSTANT,
    "max_attempt": NUMBER,
    "modified_time": INSTANT,
    "status": enum(RunStatus),
    "task_type": TEXT,
    "nominal_at": INSTANT,
    "missed_from": INSTANT,
    "last": FLAG,
    "manual": FLAG,
    "trace_id": TEXT,
    "patient": FLAG,
    "notify": enums(NoticeEvent),
    "hints": NUMBER,
    "put_off_at": INSTANT,
    "called_at": INSTANT,
    "late_at": INSTANT,
    "expected_at": INSTANT,
    "attempt": NUMBER,
    "attempts": records(_ATTEMPT, Attempt),
    "fence": NUMBER,
    "executor_id": TEXT,
    "claimed_at": INSTANT,
    "start_time": INSTANT,
    "end_time": INSTANT,
    "deadline_at": INSTANT,
    "cancel_requested": TEXT,
    "times_out_at": INSTANT,
    "heartbeat_seconds": NUMBER,
    "handle": JSON,
    "callback_digest": TEXT,
    "checkpoint": JSON,
    "error_message": TEXT,
    "result": JSON,
    "result_key": TEXT,
    "log_key": TEXT,
}
# Conditions compare these, and a condition on what is not there does not hold.
_ALWAYS_WRITTEN: Final = frozenset(
    {"status", "generation", "version", "running", "waiters", "fence", "attempt", "final_ended"}
)


def job_to_item(job: Job) -> Item:
    spec = job.spec
    item = _without_defaults(write_fields(spec.timing, _TIMING), _DEFAULTS_OF_TIMING)
    item |= _without_defaults(write_fields(spec, _SPEC), _DEFAULTS_OF_SPEC)
    item |= _without_defaults(write_fields(job, _JOB), _DEFAULTS_OF_JOB)
    item["listing"] = to_value(part_of(job).key)
    if job.waits:
        # The index of waiting jobs holds an item that has both its keys; a paused job keeps only the time.
        item["shard"] = to_value(shard_of(job.job_id))
    return item


def item_to_job(item: Mapping[str, Any]) -> Job:
    timing = Timing(**read_fields(item, _TIMING))
    spec = JobSpec(timing=timing, **read_fields(item, _SPEC))
    return Job(spec=spec, **read_fields(item, _JOB))


def run_to_item(run: Run) -> Item:
    item = _without_defaults(write_fields(run, _RUN), _DEFAULTS_OF_RUN)
    if watch := watch_of(run):
        item |= {"watch_key": to_value(watch.key), "watch_at": to_value(watch.at)}
    return item


def item_to_run(item: Mapping[str, Any]) -> Run:
    return Run(**read_fields(item, _RUN))


def job_key(job_id: str) -> Item:
    return {"job_id": {"S": job_id}}


def run_key(key: RunKey) -> Item:
    return {"job_id": {"S": key.job_id}, "run_id": {"S": key.run_id}}


def _defaults(of: type, kinds: Mapping[str, Kind]) -> Item:
    found: Item = {}
    for field in fields(of):
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        if field.name in kinds and field.name not in _ALWAYS_WRITTEN and default not in (MISSING, None):
            found[field.name] = kinds[field.name].write(default)
    return found


def _without_defaults(item: Item, defaults: Item) -> Item:
    """What is not written costs nothing, at each of an item's many writes."""
    return {name: value for name, value in item.items() if defaults.get(name) != value}


_DEFAULTS_OF_TIMING: Final = _defaults(Timing, _TIMING)
_DEFAULTS_OF_SPEC: Final = _defaults(JobSpec, _SPEC)
_DEFAULTS_OF_JOB: Final = _defaults(Job, _JOB)
_DEFAULTS_OF_RUN: Final = _defaults(Run, _RUN)
