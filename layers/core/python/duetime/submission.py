"""Accepting a job: from what a caller asked for to a job and its first run, in one write."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from duetime.clock import Clock
from duetime.errors import Conflict
from duetime.job import Job, JobSpec, digest_request, new_job_id
from duetime.run import planned_run
from duetime.store import Store
from duetime.targets import AllowedTargets
from duetime.tasks import check_task


@dataclass(frozen=True, slots=True)
class Submission:
    job: Job
    # A repeated request under the same Idempotency-Key: the job was there already.
    repeated: bool


def submit(
    spec: JobSpec,
    *,
    owner: str,
    request: Mapping[str, Any],
    idempotency_key: str | None,
    allowed: AllowedTargets,
    store: Store,
    clock: Clock,
) -> Submission:
    check_task(spec.task, allowed)
    now = clock.now()
    job = Job(
        job_id=new_job_id(owner, idempotency_key),
        owner=owner,
        spec=spec,
        created_at=now,
        updated_at=now,
        updated_by=owner,
        changed_at=now,
        request_digest=digest_request(request) if idempotency_key else None,
    )
    # An IMMEDIATE job is due when it is accepted.
    existing = store.create(job, [planned_run(job, now, now)])
    if existing is None:
        return Submission(job, repeated=False)
    if existing.request_digest != job.request_digest:
        raise Conflict(
            f"the Idempotency-Key was already used for another request, which made job {existing.job_id}: "
            "use a new key for a new job"
        )
    return Submission(existing, repeated=True)
