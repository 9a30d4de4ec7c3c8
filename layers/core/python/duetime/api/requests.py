"""What a caller may send. Unknown fields are refused, and every size is bounded."""

import json
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from duetime.job import JobSpec, Priority, ScheduleType
from duetime.retry import LONGEST_DELAY_SECONDS, BackoffKind, RetryPolicy

PAYLOAD_LIMIT_BYTES: Final = 64 * 1024
TASK_LIMIT_BYTES: Final = 16 * 1024
LONGEST_TIMEOUT_SECONDS: Final = 840
"""A worker lives 15 minutes at most; the last minute is for what comes before and after the task."""


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


def _distinct(tags: list[str]) -> list[str]:
    if len(set(tags)) != len(tags):
        raise ValueError("names a tag twice")
    return tags


Tag = Annotated[str, Field(min_length=1, max_length=64), AfterValidator(_printable)]
Payload = Annotated[Any, AfterValidator(lambda value: _json_within(PAYLOAD_LIMIT_BYTES, value))]
TaskSettings = Annotated[dict[str, Any], AfterValidator(lambda value: _json_within(TASK_LIMIT_BYTES, value))]


class Retry(_Strict):
    kind: Literal["fixed", "exponential"] = "exponential"
    base_seconds: Annotated[int, Field(ge=1, le=LONGEST_DELAY_SECONDS)] = 2
    cap_seconds: Annotated[int, Field(ge=1, le=LONGEST_DELAY_SECONDS)] = 300

    def to_policy(self) -> RetryPolicy:
        return RetryPolicy(BackoffKind(self.kind), self.base_seconds, self.cap_seconds)


class CreateJob(_Strict):
    name: Annotated[str, Field(min_length=1, max_length=128), AfterValidator(_printable)]
    schedule_type: Literal["IMMEDIATE"]
    task: TaskSettings
    payload: Payload = None
    priority: Literal["high", "medium", "low"] = "medium"
    max_retries: Annotated[int, Field(ge=0, le=20)] = 3
    retry: Retry = Field(default_factory=Retry)
    timeout_seconds: Annotated[int, Field(ge=1, le=LONGEST_TIMEOUT_SECONDS)] = 60
    tags: Annotated[list[Tag], Field(max_length=20), AfterValidator(_distinct)] = Field(default_factory=list)

    def to_spec(self) -> JobSpec:
        return JobSpec(
            name=self.name,
            schedule_type=ScheduleType(self.schedule_type),
            task=self.task,
            payload=self.payload,
            priority=Priority(self.priority),
            max_retries=self.max_retries,
            retry=self.retry.to_policy(),
            timeout_seconds=self.timeout_seconds,
            tags=tuple(self.tags),
        )
