"""What a caller may send. Unknown fields are refused, and every size is bounded."""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.fields import FieldInfo

from duetime.api.answers import show_notify
from duetime.errors import InvalidField
from duetime.instants import format_instant, to_milliseconds
from duetime.job import Job, JobSpec, Overlap, Priority
from duetime.notify import Notify, Protocol, parse_events
from duetime.retry import LONGEST_DELAY_SECONDS, BackoffKind, RetryPolicy
from duetime.schedules import InvalidSchedule, frequency_to_cron
from duetime.timing import CatchUp, ScheduleType, Timing

PAYLOAD_LIMIT_BYTES: Final = 64 * 1024
RESULT_LIMIT_BYTES: Final = 256 * 1024
TASK_LIMIT_BYTES: Final = 16 * 1024
LONGEST_TIMEOUT_SECONDS: Final = 7 * 86_400
"""For work that goes on elsewhere. What a worker performs itself has less: tasks/interface.py."""

PRINCIPAL: Final = r"^arn:[!-~]+$"
"""A role or a user."""

MOST_IN_A_BATCH: Final = 100
LONGEST_JITTER_SECONDS: Final = 366 * 86_400


_YEARS: Final = "must lie in the years 1970 to 9998"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


def _json_within(limit: int, value: Any) -> Any:
    try:
        size = len(json.dumps(value, allow_nan=False).encode())
    except ValueError as error:
        raise ValueError("NaN and Infinity are not JSON") from error
    if size > limit:
        raise ValueError(f"is {size} bytes as JSON, more than the {limit} allowed")
    return value


def _printable(text: str) -> str:
    if not text.isprintable() or not text.strip():
        raise ValueError("must be printable text and not only spaces")
    return text


def _distinct(names: list[Any]) -> list[Any]:
    if len(set(names)) != len(names):
        raise ValueError("names one twice")
    return names


def _instant(text: str) -> str:
    """Kept as text, so that what the document promises (a string) is what is taken; `parse_time` reads it again."""
    parse_time(text)
    return text


def parse_time(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("must be a time such as 2030-01-31T09:00:00Z") from None
    if moment.tzinfo is None:
        raise ValueError(
            "has no UTC offset; write it as in 2030-01-31T09:00:00Z or 2030-01-31T09:00:00+01:00"
        )
    try:
        moment = to_milliseconds(moment)
    except OverflowError:
        raise ValueError(_YEARS) from None
    if not 1970 <= moment.year <= 9998:
        raise ValueError(_YEARS)
    return moment


Tag = Annotated[str, Field(min_length=1, max_length=64), AfterValidator(_printable)]
Payload = Annotated[Any, AfterValidator(lambda value: _json_within(PAYLOAD_LIMIT_BYTES, value))]
TaskSettings = Annotated[dict[str, Any], AfterValidator(lambda value: _json_within(TASK_LIMIT_BYTES, value))]
Event = Literal["succeeded", "failed", "dead_lettered", "retried", "late", "missed", "paused"]
Events = Annotated[list[Event], Field(min_length=1, max_length=7), AfterValidator(_distinct)]
Time = Annotated[
    str, Field(max_length=64, json_schema_extra={"format": "date-time"}), AfterValidator(_instant)
]


Status = Literal["SCHEDULED", "PAUSED", "CANCELLED", "COMPLETED", "pending", "running", "completed", "failed"]


class Retry(_Strict):
    kind: Literal["fixed", "exponential"] = "exponential"
    base_seconds: Annotated[int, Field(ge=1, le=LONGEST_DELAY_SECONDS)] = 2
    cap_seconds: Annotated[int, Field(ge=1, le=LONGEST_DELAY_SECONDS)] = 300

    def to_policy(self) -> RetryPolicy:
        return RetryPolicy(BackoffKind(self.kind), self.base_seconds, self.cap_seconds)


class NotifyBlock(_Strict):
    """Who is told what becomes of the job's runs, for the simple case; subscriptions can do more."""

    events: Events
    protocol: Literal["https", "sqs", "lambda"]
    endpoint: Annotated[str, Field(min_length=1, max_length=2048)]

    def to_notify(self) -> Notify:
        return Notify(parse_events(self.events), Protocol(self.protocol), self.endpoint)


class Schedule(_Strict):
    """When a job shall run: what `POST /jobs`, `PUT /jobs/{job_id}` and `POST /schedules/preview` have in common."""

    schedule_type: Literal["IMMEDIATE", "FUTURE", "CRON", "INTERVAL"]
    schedule_time: Time | None = None
    cron_expression: Annotated[str, Field(max_length=255)] | None = None
    frequency: Literal["hourly", "daily", "weekly", "monthly", "yearly"] | None = None
    timezone: Annotated[str, Field(max_length=64)] = "UTC"
    interval_seconds: int | None = None
    start_at: Time | None = None
    end_at: Time | None = None
    jitter_seconds: Annotated[int, Field(ge=0, le=LONGEST_JITTER_SECONDS)] = 0
    dst_gap: Literal["next", "skip"] = "next"
    dst_overlap: Literal["first", "second", "both"] = "first"
    catch_up: Literal["one", "all", "skip"] = "one"

    def to_timing(self) -> Timing:
        self._require_what_fits()
        return Timing(
            schedule_type=ScheduleType(self.schedule_type),
            schedule_time=_time(self.schedule_time),
            cron_expression=self._expression(),
            timezone=self.timezone,
            interval_seconds=self.interval_seconds,
            start_at=_time(self.start_at),
            end_at=_time(self.end_at),
            jitter_seconds=self.jitter_seconds,
            dst_gap=self.dst_gap,
            dst_overlap=self.dst_overlap,
            catch_up=CatchUp(self.catch_up),
        )

    def _expression(self) -> str | None:
        try:
            return frequency_to_cron(self.frequency) if self.frequency else self.cron_expression
        except InvalidSchedule as error:
            raise InvalidField(error.field, error.message) from error

    def _require_what_fits(self) -> None:
        fitting = FIELDS_OF_TYPE[self.schedule_type]
        for name in Schedule.model_fields:
            if name in self.model_fields_set and name not in fitting and getattr(self, name) is not None:
                raise InvalidField(name, f"does not go with schedule_type {self.schedule_type}")
        if self.cron_expression is not None and self.frequency is not None:
            raise InvalidField("frequency", "is short for a cron_expression: give one of the two")
        required = {"FUTURE": self.schedule_time, "INTERVAL": self.interval_seconds, "IMMEDIATE": ""}
        if required.get(self.schedule_type, self.cron_expression or self.frequency) is None:
            raise InvalidField(
                REQUIRED_FIELD[self.schedule_type], f"is needed with schedule_type {self.schedule_type}"
            )


_RECURRING: Final = frozenset({"schedule_type", "start_at", "end_at", "jitter_seconds", "catch_up"})
FIELDS_OF_TYPE: Final[Mapping[str, frozenset[str]]] = {
    "IMMEDIATE": frozenset({"schedule_type"}),
    "FUTURE": frozenset({"schedule_type", "schedule_time", "jitter_seconds", "catch_up"}),
    "CRON": _RECURRING | {"cron_expression", "frequency", "timezone", "dst_gap", "dst_overlap"},
    "INTERVAL": _RECURRING | {"interval_seconds"},
}
REQUIRED_FIELD: Final = {
    "FUTURE": "schedule_time",
    "CRON": "cron_expression",
    "INTERVAL": "interval_seconds",
}


class CreateJob(Schedule):
    name: Annotated[str, Field(min_length=1, max_length=128), AfterValidator(_printable)]
    task: TaskSettings
    payload: Payload = None
    priority: Literal["high", "medium", "low"] = "medium"
    max_retries: Annotated[int, Field(ge=0, le=20)] = 3
    retry: Retry = Field(default_factory=Retry)
    timeout_seconds: Annotated[int, Field(ge=1, le=LONGEST_TIMEOUT_SECONDS)] = 60
    max_concurrency: Annotated[int, Field(ge=1, le=1000)] = 1
    overlap: Literal["skip", "queue"] = "skip"
    tags: Annotated[list[Tag], Field(max_length=20), AfterValidator(_distinct)] = Field(default_factory=list)
    notify: NotifyBlock | None = None

    def to_spec(self) -> JobSpec:
        return JobSpec(
            name=self.name,
            timing=self.to_timing(),
            task=self.task,
            payload=self.payload,
            priority=Priority(self.priority),
            max_retries=self.max_retries,
            retry=self.retry.to_policy(),
            timeout_seconds=self.timeout_seconds,
            max_concurrency=self.max_concurrency,
            overlap=Overlap(self.overlap),
            tags=tuple(self.tags),
            notify=self.notify.to_notify() if self.notify else None,
        )


def _optional(field: FieldInfo) -> Any:
    annotation: Any = field.annotation
    return (Annotated[annotation, *field.metadata] if field.metadata else annotation) | None


if TYPE_CHECKING:

    class UpdateJob(BaseModel):
        pass

else:
    # Every field of CreateJob, none of them needed; null takes one back to its default.
    UpdateJob = create_model(
        "UpdateJob",
        __base__=_Strict,
        **{name: (_optional(field), None) for name, field in CreateJob.model_fields.items()},
    )


class Preview(Schedule):
    count: Annotated[int, Field(ge=1, le=100)] = 10
    # `from` is a word of Python's own.
    after: Time | None = Field(default=None, alias="from")


class Heartbeat(_Strict):
    checkpoint: Payload = None


class Complete(_Strict):
    result: Annotated[Any, AfterValidator(lambda value: _json_within(RESULT_LIMIT_BYTES, value))] = None


class Fail(_Strict):
    error: Annotated[str, Field(min_length=1, max_length=4000)]
    # Whether another attempt may succeed, and when.
    retry: bool = True
    retry_after_seconds: Annotated[int, Field(ge=0, le=LONGEST_DELAY_SECONDS)] | None = None


class Batch(_Strict):
    """Each job is judged by itself, as `POST /jobs` would: one that is refused does not keep the others out."""

    jobs: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MOST_IN_A_BATCH)]

    def specs(self) -> list[JobSpec | InvalidField]:
        return [_spec_or_problem(number, job) for number, job in enumerate(self.jobs)]


def _spec_or_problem(number: int, job: Mapping[str, Any]) -> JobSpec | InvalidField:
    try:
        return CreateJob.model_validate(job).to_spec()
    except ValidationError as error:
        problem = _first_problem(error)
    except InvalidField as error:
        problem = error
    return InvalidField(f"jobs.{number}.{problem.field}", problem.reason)


class Selection(_Strict):
    """Which jobs: those that fit everything that is given."""

    status: Status | None = None
    schedule_type: Literal["IMMEDIATE", "FUTURE", "CRON", "INTERVAL"] | None = None
    priority: Literal["high", "medium", "low"] | None = None
    tag: Tag | None = None
    name_prefix: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    due_from: Time | None = None
    due_before: Time | None = None
    user_id: Annotated[str, Field(max_length=256, pattern=PRINCIPAL)] | None = None


class BulkRequest(_Strict):
    action: Literal["pause", "resume", "cancel"]
    filter: Selection
    limit: Annotated[int, Field(ge=1, le=100)] = 100
    page_token: Annotated[str, Field(max_length=1024)] | None = None


class Redrive(_Strict):
    """Which dead letters: all of the caller's (for an admin, of whom it names), or those of a job."""

    job_id: Annotated[str, Field(max_length=64)] | None = None
    user_id: Annotated[str, Field(max_length=256, pattern=PRINCIPAL)] | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 100
    page_token: Annotated[str, Field(max_length=1024)] | None = None


def merge(changes: Mapping[str, Any], job: Job) -> JobSpec:
    """The job's own request with the caller's fields in it, judged as a new one would be. null takes a field back to
    its default; another schedule_type takes with it the fields that only the old one had."""
    request = as_request(job.spec)
    if changes.get("schedule_type", request["schedule_type"]) != request["schedule_type"]:
        kept = FIELDS_OF_TYPE.get(str(changes["schedule_type"]), frozenset())
        request = {
            name: value
            for name, value in request.items()
            if name not in Schedule.model_fields or name in kept
        }
    if changes.get("frequency") is not None:
        request.pop("cron_expression", None)
    request |= changes
    given = {name: value for name, value in request.items() if value is not None or name == "payload"}
    try:
        return CreateJob.model_validate(given).to_spec()
    except ValidationError as error:
        raise _first_problem(error) from error


def _first_problem(error: ValidationError) -> InvalidField:
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"]) or "body"
    message = "is not a field that Duetime knows here" if first["type"] == "extra_forbidden" else first["msg"]
    return InvalidField(field, str(message).removeprefix("Value error, "))


def as_request(spec: JobSpec) -> dict[str, Any]:
    """The fields of a spec as a caller would send them; None is left out."""
    timing = {field.name: getattr(spec.timing, field.name) for field in fields(Timing)}
    fitting = FIELDS_OF_TYPE[spec.timing.schedule_type]
    own = {field.name: getattr(spec, field.name) for field in fields(JobSpec) if field.name != "timing"}
    own |= {
        "retry": {name: _plain(value) for name, value in asdict(spec.retry).items()},
        "tags": list(spec.tags),
        "notify": spec.notify and show_notify(spec.notify),
    }
    request = {name: value for name, value in timing.items() if name in fitting} | own
    return {name: _plain(value) for name, value in request.items() if value is not None}


def asked_time(field: str, text: str | None) -> datetime | None:
    """A time that was asked for in a query."""
    try:
        return _time(text)
    except ValueError as error:
        raise InvalidField(field, str(error)) from error


def _plain(value: Any) -> Any:
    """As it would be in JSON."""
    if isinstance(value, datetime):
        return format_instant(value)
    return value.value if isinstance(value, StrEnum) else value


def _time(text: str | None) -> datetime | None:
    return None if text is None else parse_time(text)
