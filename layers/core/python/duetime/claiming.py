"""The claim arbitrates: nothing is executed unless these rules held at the moment of the conditional write.

`judge` is the rule. The store writes the claim only if nothing that was judged has changed since. Everything
before the claim (planning, hinting) may therefore be doubled, late, or out of date.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import Final

from duetime.job import Job, Overlap
from duetime.leases import lease_end
from duetime.pair import JobRun
from duetime.run import Run, expected_from
from duetime.status import CLAIMABLE, JobStatus, RunStatus

JUDGED: Final = frozenset({"version", "status", "fence", "running"})
"""What `judge` looks at in the job, beyond what never changes without one of these."""


class Verdict(Enum):
    CLAIMABLE = auto()
    NOT_OPEN = auto()  # somebody runs it, or it has ended: the hint was a double
    UNWANTED = auto()  # its job no longer wants it
    NO_PLACE = auto()  # its job runs as many at once as its owner allowed


@dataclass(frozen=True, slots=True)
class Judgement:
    verdict: Verdict
    reason: str = ""


def judge(job: Job, run: Run) -> Judgement:
    if run.status not in CLAIMABLE:
        return Judgement(Verdict.NOT_OPEN, f"the run is {run.status}")
    if unwanted := _why_unwanted(job, run):
        return Judgement(Verdict.UNWANTED, unwanted)
    if not run.holds_place and job.running >= job.spec.max_concurrency:
        return Judgement(
            Verdict.NO_PLACE, f"{job.running} of at most {job.spec.max_concurrency} runs were under way"
        )
    return Judgement(Verdict.CLAIMABLE)


def waits_for_its_turn(job: Job, run: Run) -> bool:
    """Whether a run that finds no place stays QUEUED instead of being skipped."""
    return run.patient or job.spec.overlap is Overlap.QUEUE


def _why_unwanted(job: Job, run: Run) -> str | None:
    if job.status is JobStatus.CANCELLED:
        return "the job was cancelled"
    if run.cancel_requested:
        return f"it was cancelled by {run.cancel_requested}"
    if run.manual:
        return None
    if job.status is JobStatus.PAUSED:
        return "the job is paused"
    if not was_due_in_its_generation(job, run):
        return "the job was changed before the run was due"
    return None


def was_due_in_its_generation(job: Job, run: Run) -> bool:
    """What was due when the job changed still happens. Each generation has its own end: a second change must not make
    wanted again what the first one made void."""
    ended_at = job.end_of(run.generation)
    return ended_at is None or run.due_at <= ended_at


def claimed(seen: JobRun, executor_id: str, now: datetime, callback_digest: str | None = None) -> JobRun:
    """What the job and the run become. The task starts at `not_before` or now, whichever is later."""
    job, run = seen
    job_after = job.evolve(fence=job.fence + 1, running=job.running + (0 if run.holds_place else 1))
    if run.attempt == 0 and (expected_at := expected_from(run)) != run.due_at:
        run = run.evolve(expected_at=expected_at)
    run_after = run.evolve(
        status=RunStatus.RUNNING,
        attempt=run.attempt + 1,
        hints=0,
        fence=job_after.fence,
        executor_id=executor_id,
        claimed_at=now,
        start_time=max(now, run.not_before),
        end_time=None,
        modified_time=now,
        deadline_at=lease_end(now),
        callback_digest=callback_digest,
    )
    return JobRun(job_after, run_after)
