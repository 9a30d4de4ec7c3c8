"""What answers look like. No field more, no field less: the tests hold the functions to it."""

from enum import StrEnum
from typing import Annotated, Any, Generic, Literal, TypeVar

from duetime.audit import Action
from duetime.run import AttemptOutcome
from duetime.status import JobStatus, RunStatus
from pydantic import BaseModel, ConfigDict, Field

Item = TypeVar("Item", bound=BaseModel)
Instant = Annotated[
    str, Field(json_schema_extra={"format": "date-time"}, description="RFC 3339, UTC, milliseconds")
]


class Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class FieldProblem(Answer):
    field: str
    message: str


class Problem(Answer):
    """RFC 9457. `type` is stable; docs/api.md says what to do about each."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[FieldProblem] = Field(
        default_factory=list, description="for an invalid request: each field at fault"
    )


class GatewayMessage(BaseModel):
    """API Gateway's own answer: no signature or a wrong one, no policy, or more requests than the stage takes."""

    model_config = ConfigDict(extra="allow")
    message: str


class Submitted(Answer):
    job_id: str
    status: JobStatus
    next_run_at: Instant | None
    notify_secret: str | None = Field(description="to verify what an `https` notify block sends; only here")


class BatchOutcome(Answer):
    status_code: int = Field(description="as if the job had been submitted alone")
    job: Submitted | None
    problem: Problem | None


class BatchAnswer(Answer):
    items: list[BatchOutcome] = Field(description="in the order of the request")


class Unchanged(Answer):
    job_id: str
    reason: str


class BulkAnswer(Answer):
    changed: list[str]
    unchanged: list[Unchanged]
    next_page_token: str | None


class Backoff(Answer):
    kind: Literal["fixed", "exponential"]
    base_seconds: int
    cap_seconds: int


class JobSummary(Answer):
    job_id: str
    name: str
    owner: str = Field(description="the role or user that submitted it")
    status: JobStatus
    schedule_type: Literal["IMMEDIATE", "FUTURE", "CRON", "INTERVAL"]
    cron_expression: str | None
    timezone: str
    interval_seconds: int | None
    priority: Literal["high", "medium", "low"]
    tags: list[str]
    next_run_at: Instant | None
    version: int
    running: int = Field(description="how many of its runs are under way")
    succeeded: int
    failed: int
    last_outcome: RunStatus | None
    created_at: Instant
    updated_at: Instant
    updated_by: str


class Notify(Answer):
    events: list[str]
    protocol: Literal["https", "sqs", "lambda"]
    endpoint: str


class Job(JobSummary):
    schedule_time: Instant | None
    start_at: Instant | None
    end_at: Instant | None
    jitter_seconds: int
    dst_gap: Literal["next", "skip"]
    dst_overlap: Literal["first", "second", "both"]
    catch_up: Literal["one", "all", "skip"]
    task: dict[str, Any]
    payload: Any
    max_retries: int
    retry: Backoff
    timeout_seconds: int
    max_concurrency: int
    overlap: Literal["skip", "queue"]
    notify: Notify | None


class Spread(Answer):
    average: float
    p95: float


class Outcomes(Answer):
    succeeded: int
    failed: int
    cancelled: int
    skipped: int


class Streak(Answer):
    outcome: RunStatus | None
    runs: int


class Statistics(Answer):
    """Since its creation: `succeeded` and `failed`; all else of its latest 50 runs."""

    succeeded: int
    failed: int
    recent_runs: Outcomes
    duration_ms: Spread | None
    lateness_ms: Spread | None
    last_success_at: Instant | None
    last_failure_at: Instant | None
    streak: Streak


class JobWithStatistics(Job):
    statistics: Statistics


class Subscription(Answer):
    subscription_id: str
    owner: str
    protocol: Literal["email", "sms", "https", "sqs", "lambda"]
    endpoint: str
    events: list[str]
    job_id: str | None
    tag: str | None
    all: bool
    needs_confirmation: bool = Field(
        description="nothing is sent before whoever reads the mailbox has confirmed it"
    )
    created_at: Instant
    created_by: str


class NewSubscription(Subscription):
    secret: str | None = Field(description="of `https`: to verify what is sent; only here")


class Subscriptions(Answer):
    items: list[Subscription]


class Attempt(Answer):
    attempt: int
    executor_id: str
    claimed_at: Instant
    start_time: Instant
    end_time: Instant
    outcome: AttemptOutcome
    error: str | None


class Run(Answer):
    job_id: str
    run_id: str
    status: RunStatus
    attempt: int
    max_attempt: int
    due_at: Instant
    nominal_at: Instant
    missed_from: Instant | None
    manual: bool
    not_before: Instant
    claimed_at: Instant | None
    start_time: Instant | None
    end_time: Instant | None
    modified_time: Instant
    deadline_at: Instant | None
    executor_id: str | None
    fence: int | None
    cancel_requested: str | None
    checkpoint: Any
    error_message: str | None
    result: Any
    result_url: str | None
    log_url: str | None
    attempts: list[Attempt]
    earlier_attempts: int


class Page(Answer, Generic[Item]):
    items: list[Item]
    next_page_token: str | None = Field(description="null on the last page")


class JobPage(Page[JobSummary]):
    pass


class RunPage(Page[Run]):
    pass


class Status(Answer):
    job_id: str
    status: JobStatus
    latest_run: Run | None


class LogLine(Answer):
    at: Instant
    attempt: int
    text: str


class Log(Answer):
    run_id: str | None
    items: list[LogLine]
    log_url: str | None


class UpcomingTime(Answer):
    due_at: Instant | None
    nominal_at: Instant
    local_time: str
    flag: Literal["gap", "overlap", "dropped"] | None
    wall_time: str | None


class UpcomingTimes(Answer):
    items: list[UpcomingTime]


class Source(Answer):
    address: str | None
    agent: str | None
    request_id: str | None


class Event(Answer):
    at: Instant
    action: str = Field(description=", ".join(Action))
    by: str
    source: Source
    run_id: str | None
    changes: dict[str, Any] | None
    detail: str | None


class EventPage(Page[Event]):
    pass


class Step(Answer):
    code: str
    detail: str
    at: Instant | None
    run_id: str | None
    by: str | None


class Explanation(Answer):
    job_id: str
    at: Instant
    until: Instant
    verdict: str = Field(description="the code of the trail's last step")
    summary: str
    trail: list[Step]


class RunRef(Answer):
    job_id: str
    run_id: str


class RefusedRun(RunRef):
    reason: str


class Redriven(Answer):
    redriven: list[RunRef]
    refused: list[RefusedRun]
    next_page_token: str | None


class HeartbeatAnswer(Answer):
    cancel_requested: bool
    deadline_at: Instant


class RunStatusAnswer(Answer):
    status: RunStatus


class Stage(Answer):
    oldest_age_seconds: float


class Stages(Answer):
    waiting: Stage
    queued: Stage
    running: Stage
    failed: Stage


class HealthStatus(StrEnum):
    OK = "ok"
    BEHIND = "behind"


class Health(Answer):
    status: HealthStatus
    environment: str
    version: str
    checked_at: Instant
    stages: Stages


class Contract(BaseModel):
    """This document."""

    model_config = ConfigDict(extra="allow")
    openapi: str
