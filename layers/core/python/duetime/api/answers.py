"""How jobs and runs look to a caller: snake_case, RFC 3339 times in UTC, null where there is nothing."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, Final

from duetime.api.problems import describe_error
from duetime.blobs import Blobs
from duetime.errors import RequestError
from duetime.health import Health
from duetime.instants import format_instant
from duetime.job import Job
from duetime.logbook import LogPiece
from duetime.notify import Notify
from duetime.run import Attempt, Run
from duetime.schedules import Upcoming
from duetime.searching import next_due
from duetime.submission import Submission
from duetime.version import VERSION

Json = dict[str, Any]

SUMMARY: Final = (
    "job_id",
    "name",
    "owner",
    "status",
    "schedule_type",
    "cron_expression",
    "timezone",
    "interval_seconds",
    "priority",
    "tags",
    "next_run_at",
    "version",
    "running",
    "succeeded",
    "failed",
    "last_outcome",
    "created_at",
    "updated_at",
    "updated_by",
)


def show_submission(submission: Submission, now: datetime, notify_secret: str | None = None) -> Json:
    """With the secret to verify what its `notify` block sends, if there is one."""
    job = submission.job
    return {
        "job_id": job.job_id,
        "status": job.status,
        "next_run_at": show_time(next_due(job, now)),
        "notify_secret": notify_secret,
    }


def show_outcome(outcome: Submission | RequestError, now: datetime, notify_secret: str | None = None) -> Json:
    """Of one job in a batch, as if it had been submitted alone."""
    if isinstance(outcome, RequestError):
        problem = describe_error(outcome)
        return {"status_code": problem["status"], "job": None, "problem": problem}
    return {
        "status_code": HTTPStatus.CREATED,
        "job": show_submission(outcome, now, notify_secret),
        "problem": None,
    }


def show_job(job: Job, now: datetime) -> Json:
    spec, timing = job.spec, job.spec.timing
    return {
        "job_id": job.job_id,
        "name": spec.name,
        "owner": job.owner,
        "status": job.status,
        "schedule_type": timing.schedule_type,
        "schedule_time": show_time(timing.schedule_time),
        "cron_expression": timing.cron_expression,
        "timezone": timing.timezone,
        "interval_seconds": timing.interval_seconds,
        "start_at": show_time(timing.start_at),
        "end_at": show_time(timing.end_at),
        "jitter_seconds": timing.jitter_seconds,
        "dst_gap": timing.dst_gap,
        "dst_overlap": timing.dst_overlap,
        "catch_up": timing.catch_up,
        "task": spec.task,
        "payload": spec.payload,
        "priority": spec.priority,
        "max_retries": spec.max_retries,
        "retry": {
            "kind": spec.retry.kind,
            "base_seconds": spec.retry.base_seconds,
            "cap_seconds": spec.retry.cap_seconds,
        },
        "timeout_seconds": spec.timeout_seconds,
        "max_concurrency": spec.max_concurrency,
        "overlap": spec.overlap,
        "tags": list(spec.tags),
        "notify": spec.notify and show_notify(spec.notify),
        "next_run_at": show_time(next_due(job, now)),
        "version": job.version,
        "running": job.running,
        "succeeded": job.succeeded,
        "failed": job.failed,
        "last_outcome": job.last_outcome,
        "created_at": show_time(job.created_at),
        "updated_at": show_time(job.updated_at),
        "updated_by": job.updated_by,
    }


def show_summary(job: Job, now: datetime) -> Json:
    """A job in a list: what tells it from the others, without what may be large."""
    whole = show_job(job, now)
    return {name: whole[name] for name in SUMMARY}


def show_notify(notify: Notify) -> Json:
    return {
        "events": [event.value for event in notify.events],
        "protocol": notify.protocol.value,
        "endpoint": notify.endpoint,
    }


def show_upcoming(lines: Iterable[Upcoming], jitter: timedelta = timedelta()) -> list[Json]:
    """`due_at` is when a run would start, `nominal_at` what the schedule says, `local_time` the same in its zone."""
    return [
        {
            "due_at": None if line.flag == "dropped" else show_time(line.nominal_at + jitter),
            "nominal_at": show_time(line.nominal_at),
            "local_time": line.local_at.isoformat(),
            "flag": line.flag,
            "wall_time": line.wall_at and line.wall_at.isoformat(),
        }
        for line in lines
    ]


def show_status(job: Job, latest: Run | None, blobs: Blobs) -> Json:
    return {"job_id": job.job_id, "status": job.status, "latest_run": latest and show_run(latest, blobs)}


def show_health(health: Health, environment: str) -> Json:
    return {
        "status": "behind" if health.is_behind else "ok",
        "environment": environment,
        "version": VERSION,
        "checked_at": show_time(health.checked_at),
        "stages": {
            stage.value: {"oldest_age_seconds": round(age.total_seconds(), 3)}
            for stage, age in health.oldest.items()
        },
    }


def show_run(run: Run, blobs: Blobs) -> Json:
    return {
        "job_id": run.job_id,
        "run_id": run.run_id,
        "status": run.status,
        "attempt": run.attempt,
        "max_attempt": run.max_attempt,
        "due_at": show_time(run.due_at),
        "nominal_at": show_time(run.nominal_at or run.due_at),
        "missed_from": show_time(run.missed_from),
        "manual": run.manual,
        "not_before": show_time(run.not_before),
        "claimed_at": show_time(run.claimed_at),
        "start_time": show_time(run.start_time),
        "end_time": show_time(run.end_time),
        "modified_time": show_time(run.modified_time),
        "deadline_at": show_time(run.deadline_at),
        "executor_id": run.executor_id,
        "fence": run.fence,
        "cancel_requested": run.cancel_requested,
        "checkpoint": run.checkpoint,
        "error_message": run.error_message,
        "result": run.result,
        "result_url": run.result_key and blobs.url(run.result_key),
        "log_url": run.log_key and blobs.url(run.log_key),
        "attempts": [_show_attempt(attempt) for attempt in run.attempts],
        # Ended before those, and no longer on record: a run has bounds.
        "earlier_attempts": run.attempts[0].attempt - 1 if run.attempts else 0,
    }


def _show_attempt(attempt: Attempt) -> Json:
    return {
        "attempt": attempt.attempt,
        "executor_id": attempt.executor_id,
        "claimed_at": show_time(attempt.claimed_at),
        "start_time": show_time(attempt.start_time),
        "end_time": show_time(attempt.end_time),
        "outcome": attempt.outcome,
        "error": attempt.error,
    }


def show_time(instant: datetime | None) -> str | None:
    return None if instant is None else format_instant(instant)


def show_log(
    pieces: Iterable[LogPiece], *, attempt: int | None, since: datetime | None, tail: int
) -> list[Json]:
    """The last so many lines, in order."""
    lines = [
        {"at": show_time(line.at), "attempt": piece.attempt, "text": line.text}
        for piece in pieces
        if attempt in (None, piece.attempt)
        for line in piece.lines
        if since is None or line.at >= since
    ]
    return lines[-tail:]
