"""How jobs and runs look to a caller: snake_case, RFC 3339 times in UTC, null where there is nothing."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from duetime.instants import format_instant
from duetime.job import Job
from duetime.planning import Agenda
from duetime.run import Attempt, Run
from duetime.schedules import Upcoming
from duetime.status import JobStatus
from duetime.submission import Submission

Json = dict[str, Any]


def show_submission(submission: Submission, now: datetime) -> Json:
    job = submission.job
    return {"job_id": job.job_id, "status": job.status, "next_run_at": _next_time(job, now)}


def show_job(job: Job, now: datetime) -> Json:
    spec, timing = job.spec, job.spec.timing
    return {
        "job_id": job.job_id,
        "name": spec.name,
        "owner": job.owner,
        "status": job.status,
        "schedule_type": timing.schedule_type,
        "schedule_time": _time(timing.schedule_time),
        "cron_expression": timing.cron_expression,
        "timezone": timing.timezone,
        "interval_seconds": timing.interval_seconds,
        "start_at": _time(timing.start_at),
        "end_at": _time(timing.end_at),
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
        "next_run_at": _next_time(job, now),
        "version": job.version,
        "running": job.running,
        "succeeded": job.succeeded,
        "failed": job.failed,
        "last_outcome": job.last_outcome,
        "created_at": _time(job.created_at),
        "updated_at": _time(job.updated_at),
        "updated_by": job.updated_by,
    }


def show_upcoming(lines: Iterable[Upcoming], jitter: timedelta = timedelta()) -> list[Json]:
    """`due_at` is when a run would start, `nominal_at` what the schedule says, `local_time` the same in its zone."""
    return [
        {
            "due_at": None if line.flag == "dropped" else _time(line.nominal_at + jitter),
            "nominal_at": _time(line.nominal_at),
            "local_time": line.local_at.isoformat(),
            "flag": line.flag,
            "wall_time": line.wall_at and line.wall_at.isoformat(),
        }
        for line in lines
    ]


def _next_time(job: Job, now: datetime) -> str | None:
    """The next time that the job is due, whether or not it is planned already."""
    if job.status is not JobStatus.SCHEDULED:
        return None
    return _time(Agenda.of(job).next_due(now))


def show_status(job: Job, latest: Run | None) -> Json:
    return {"job_id": job.job_id, "status": job.status, "latest_run": latest and show_run(latest)}


def show_run(run: Run) -> Json:
    return {
        "job_id": run.job_id,
        "run_id": run.run_id,
        "status": run.status,
        "attempt": run.attempt,
        "max_attempt": run.max_attempt,
        "due_at": _time(run.due_at),
        "nominal_at": _time(run.nominal_at or run.due_at),
        "missed_from": _time(run.missed_from),
        "manual": run.manual,
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
