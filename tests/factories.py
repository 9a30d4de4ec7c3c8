"""Jobs and runs for tests: valid, and different only in what a test says."""

import uuid
from datetime import UTC, datetime
from typing import Any

from duetime.claiming import claimed
from duetime.job import Job, JobSpec, ScheduleType
from duetime.run import Run, planned_run
from duetime.store import JobRun

NOW = datetime(2026, 11, 18, 7, 0, 0, 123000, tzinfo=UTC)
OWNER = "arn:aws:iam::123456789012:role/payments"
GREET = {"type": "python", "function": "duetime_examples.greetings:greet"}


def a_spec(**changes: Any) -> JobSpec:
    values: dict[str, Any] = {"name": "Daily payout", "schedule_type": ScheduleType.IMMEDIATE, "task": GREET}
    return JobSpec(**values | changes)


def a_job(**changes: Any) -> Job:
    values: dict[str, Any] = {
        "job_id": str(uuid.uuid4()),
        "owner": OWNER,
        "spec": a_spec(),
        "created_at": NOW,
        "updated_at": NOW,
        "updated_by": OWNER,
        "changed_at": NOW,
    }
    return Job(**values | changes)


def a_run(job: Job, **changes: Any) -> Run:
    return planned_run(job, changes.pop("at", NOW), NOW).evolve(**changes)


def a_pair(**job_changes: Any) -> JobRun:
    job = a_job(**job_changes)
    return JobRun(job, a_run(job))


def claimed_pair(seen: JobRun, executor_id: str = "worker-1") -> JobRun:
    return JobRun(*claimed(seen.job, seen.run, executor_id, NOW))
