"""Jobs and runs for tests: valid, and different only in what a test says."""

import uuid
from datetime import UTC, datetime
from typing import Any

from duetime.audit import Actor, Source
from duetime.claiming import claimed
from duetime.job import Job, JobSpec
from duetime.pair import JobRun
from duetime.run import Run, planned_run
from duetime.timing import ScheduleType, Timing

NOW = datetime(2026, 11, 18, 7, 0, 0, 123000, tzinfo=UTC)
OWNER = "arn:aws:iam::123456789012:role/payments"
ME = Actor(OWNER, Source("203.0.113.7", "tests", "request-1"))
GREET = {"type": "python", "function": "duetime_examples.greetings:greet"}


def a_timing(schedule_type: str = "IMMEDIATE", **changes: Any) -> Timing:
    return Timing(schedule_type=ScheduleType(schedule_type), **changes)


def a_spec(**changes: Any) -> JobSpec:
    values: dict[str, Any] = {"name": "Daily payout", "timing": a_timing(), "task": GREET}
    return JobSpec(**values | changes)


def a_job(**changes: Any) -> Job:
    values: dict[str, Any] = {
        "job_id": str(uuid.uuid4()),
        "owner": OWNER,
        "spec": a_spec(),
        "created_at": NOW,
        "updated_at": NOW,
        "updated_by": OWNER,
        "anchor_at": NOW,
    }
    return Job(**values | changes)


def a_cron_job(expression: str = "* * * * *", **changes: Any) -> Job:
    """A recurring job that waits."""
    timing = a_timing("CRON", cron_expression=expression, **changes.pop("timing", {}))
    spec = a_spec(timing=timing, **changes.pop("spec", {}))
    return a_job(**{"spec": spec, "next_run_at": NOW} | changes)


def a_run(job: Job, **changes: Any) -> Run:
    return planned_run(job, changes.pop("at", NOW), NOW).evolve(**changes)


def a_pair(**job_changes: Any) -> JobRun:
    """A job that runs once, and its run."""
    job = a_job(**job_changes)
    run = a_run(job)
    return JobRun(job.evolve(final_run_id=run.run_id), run)


def claimed_pair(seen: JobRun, executor_id: str = "worker-1") -> JobRun:
    return claimed(seen, executor_id, NOW)
