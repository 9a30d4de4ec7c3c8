"""What each operation is for, what it answers, and how it can fail."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from pydantic import BaseModel

from openapi import answers, examples

LOCATION: Final = {"Location": "where what was made can be read"}
ETAG: Final = {"ETag": "the job's version, for If-Match"}
_WRITES: Final = (HTTPStatus.CONFLICT, HTTPStatus.SERVICE_UNAVAILABLE)
_CHANGES: Final = (*_WRITES, HTTPStatus.PRECONDITION_FAILED)


@dataclass(frozen=True)
class Operation:
    tag: str
    summary: str
    answer: type[BaseModel]
    example: Callable[[], Any]
    status: HTTPStatus = HTTPStatus.OK
    headers: Mapping[str, str] = field(default_factory=dict)
    # Beyond those that every operation has: 400, 403, 429, and 404 where the path has an id.
    problems: tuple[HTTPStatus, ...] = ()
    description: str = ""
    request: Mapping[str, Any] | None = None


def _jobs(summary: str, **details: Any) -> Operation:
    return Operation("jobs", summary, answers.Job, examples.job, **details)


def _change(summary: str, **details: Any) -> Operation:
    return _jobs(summary, headers=ETAG, problems=_CHANGES, **details)


def _runs(summary: str, **details: Any) -> Operation:
    return Operation("runs", summary, answers.Run, examples.run, **details)


def _report(summary: str, answer: type[BaseModel], example: Any, request: Mapping[str, Any]) -> Operation:
    return Operation(
        "callbacks", summary, answer, lambda: example, problems=(HTTPStatus.CONFLICT,), request=request
    )


_RUN_MADE: Final[dict[str, Any]] = {"status": HTTPStatus.ACCEPTED, "headers": LOCATION}
_REF: Final = {"job_id": examples.JOB_ID, "run_id": examples.RUN.run_id}

OPERATIONS: Final[Mapping[str, Operation]] = {
    "create_job": Operation(
        "jobs",
        "Submit a job",
        answers.Submitted,
        examples.submitted,
        status=HTTPStatus.CREATED,
        headers=LOCATION,
        problems=_WRITES,
        description="Repeated under the same Idempotency-Key it answers as the first time, and makes no second job.",
        request=examples.REQUEST,
    ),
    "create_jobs": Operation(
        "jobs",
        "Submit up to 100 jobs",
        answers.BatchAnswer,
        lambda: {"items": [{"status_code": 201, "job": examples.submitted(), "problem": None}]},
        problems=_WRITES,
        description="Each is judged as `POST /jobs` would judge it, and has an outcome of its own.",
        request={"jobs": [examples.REQUEST]},
    ),
    "change_jobs": Operation(
        "jobs",
        "Pause, resume or cancel what a filter finds",
        answers.BulkAnswer,
        lambda: {"changed": [examples.JOB_ID], "unchanged": [], "next_page_token": None},
        problems=_WRITES,
        description="One page at a time: go on with `next_page_token` until it is null.",
        request={"action": "pause", "filter": {"tag": "payments"}},
    ),
    "list_jobs": Operation(
        "jobs",
        "Find jobs, newest first",
        answers.JobPage,
        lambda: examples.page(examples.summary()),
        description=(
            "`status` takes the job's own (SCHEDULED, PAUSED, CANCELLED, COMPLETED) and what people mean: pending "
            "(waits for its time), running, completed (ended well), failed (its last run failed). "
            "`user_id` is for admins."
        ),
    ),
    "get_job": Operation(
        "jobs", "Read a job", answers.JobWithStatistics, examples.job_with_statistics, headers=ETAG
    ),
    "update_job": _change(
        "Change a job: only the fields to change",
        request={"cron_expression": "30 2 * * *"},
        description="null takes a field back to its default.",
    ),
    "pause_job": _change("Pause a job"),
    "resume_job": _change("Resume a job"),
    "cancel_job": _change("Cancel a job, and what of it is running"),
    "run_job_now": _runs("Run a job now", problems=_WRITES, **_RUN_MADE),
    "get_status": Operation("runs", "Read a job's latest run", answers.Status, examples.status),
    "list_runs": Operation(
        "runs",
        "List a job's runs, the latest due first",
        answers.RunPage,
        lambda: examples.page(examples.run()),
    ),
    "get_run": _runs("Read a run"),
    "cancel_run": _runs("Cancel a run", problems=_WRITES, **_RUN_MADE),
    "redrive_run": _runs("Give a dead letter more attempts", problems=_WRITES, **_RUN_MADE),
    "get_logs": Operation("runs", "Read what a run logged", answers.Log, examples.log),
    "get_upcoming": Operation("jobs", "Read a job's next times", answers.UpcomingTimes, examples.upcoming),
    "list_events": Operation("jobs", "Who did what to a job", answers.EventPage, examples.events),
    "explain": Operation(
        "jobs",
        "Why did it run, or not run, at a moment?",
        answers.Explanation,
        examples.explanation,
        description="A whole minute stands for the minute, anything else for the second.",
    ),
    "list_executions": Operation(
        "runs",
        "What is running, on a worker or on all",
        answers.RunPage,
        lambda: examples.page(examples.run()),
    ),
    "list_dead_letters": Operation(
        "runs",
        "List runs that failed for good",
        answers.RunPage,
        lambda: examples.page(examples.run()),
        problems=(HTTPStatus.NOT_FOUND,),
    ),
    "redrive_many": Operation(
        "runs",
        "Give many dead letters more attempts",
        answers.Redriven,
        lambda: {"redriven": [_REF], "refused": [], "next_page_token": None},
        problems=(HTTPStatus.NOT_FOUND, *_WRITES),
        request={"job_id": examples.JOB_ID},
    ),
    "create_subscription": Operation(
        "subscriptions",
        "Hear of what becomes of jobs",
        answers.NewSubscription,
        examples.new_subscription,
        status=HTTPStatus.CREATED,
        headers=LOCATION,
        problems=(HTTPStatus.NOT_FOUND, *_WRITES),
        request={
            "protocol": "https",
            "endpoint": "https://hooks.example.com/duetime",
            "events": ["dead_lettered"],
            "tag": "payments",
        },
    ),
    "list_subscriptions": Operation(
        "subscriptions",
        "List subscriptions",
        answers.Subscriptions,
        lambda: {"items": [examples.subscription()]},
    ),
    "delete_subscription": Operation(
        "subscriptions",
        "End a subscription",
        answers.Subscription,
        examples.subscription,
        problems=_WRITES,
    ),
    "report_heartbeat": _report(
        "Say that an attempt's work goes on",
        answers.HeartbeatAnswer,
        {"cancel_requested": False, "deadline_at": "2026-11-18T07:10:00.000Z"},
        {"checkpoint": {"row": 4200}},
    ),
    "report_completion": _report(
        "Say that an attempt's work is done",
        answers.RunStatusAnswer,
        {"status": "SUCCEEDED"},
        {"result": {"paid": 3}},
    ),
    "report_failure": _report(
        "Say that an attempt's work failed",
        answers.RunStatusAnswer,
        {"status": "RETRYING"},
        {"error": "the bank did not answer", "retry": True, "retry_after_seconds": 60},
    ),
    "preview_times": Operation(
        "schedules",
        "The next times of a schedule that is not a job yet",
        answers.UpcomingTimes,
        examples.upcoming,
        request={
            "schedule_type": "CRON",
            "cron_expression": "0 2 * * *",
            "timezone": "America/New_York",
            "count": 2,
        },
    ),
    "get_health": Operation(
        "service",
        "How far behind is Duetime?",
        answers.Health,
        examples.health,
        description="The age of the oldest undone work at each stage of a job's path. `behind`: more than a minute.",
    ),
    "get_contract": Operation("service", "This document", answers.Contract, lambda: {"openapi": "3.1.0"}),
}
