"""How jobs and runs look to a caller: snake_case, RFC 3339 times in UTC, null where there is nothing."""

from datetime import datetime
from typing import Any

from duetime.instants import format_instant
from duetime.job import Job
from duetime.run import Attempt, Run
from duetime.submission import Submission

Json = dict[str, Any]


def show_submission(submission: Submission) -> Json:
    job = submission.job
    # An IMMEDIATE job is due from the moment it was accepted.
    return {
        "job_id": job.job_id,
        "status": job.status,
        "next_run_at": _time(job.next_run_at or job.created_at),
    }


def show_job(job: Job) -> Json:
    spec = job.spec
    return {
        "job_id": job.job_id,
        "name": spec.name,
        "owner": job.owner,
        "status": job.status,
        "schedule_type": spec.schedule_type,
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
        "tags": list(spec.tags),
        "next_run_at": _time(job.next_run_at),
        "version": job.version,
        "running": job.running,
        "succeeded": job.succeeded,
        "failed": job.failed,
        "last_outcome": job.last_outcome,
        "created_at": _time(job.created_at),
        "updated_at": _time(job.updated_at),
        "updated_by": job.updated_by,
    }


def show_status(job: Job, latest: Run | None) -> Json:
    return {"job_id": job.job_id, "status": job.status, "latest_run": latest and show_run(latest)}


def show_run(run: Run) -> Json:
    return {
        "run_id": run.run_id,
        "status": run.status,
        "attempt": run.attempt,
        "max_attempt": run.max_attempt,
        "due_at": _time(run.due_at),
        "not_before": _time(run.not_before),
        "claimed_at": _time(run.claimed_at),
        "start_time": _time(run.start_time),
        "end_time": _time(run.end_time),
        "modified_time": _time(run.modified_time),
        "deadline_at": _time(run.deadline_at),
        "executor_id": run.executor_id,
        "fence": run.fence,
        "error_message": run.error_message,
        "result": run.result,
        "log_url": None,
        "attempts": [_show_attempt(attempt) for attempt in run.attempts],
    }


def _show_attempt(attempt: Attempt) -> Json:
    return {
        "attempt": attempt.attempt,
        "executor_id": attempt.executor_id,
        "claimed_at": _time(attempt.claimed_at),
        "start_time": _time(attempt.start_time),
        "end_time": _time(attempt.end_time),
        "outcome": attempt.outcome,
        "error": attempt.error,
    }


def _time(instant: datetime | None) -> str | None:
    return None if instant is None else format_instant(instant)
