"""A store in a dictionary: for Duetime's own tests, and for those of people who build on it."""

import threading
from collections.abc import Iterable, Mapping, Sequence

from duetime.finishing import JobEffect
from duetime.job import Job
from duetime.run import Run, RunKey
from duetime.status import JobStatus, RunStatus
from duetime.store import JobRun, RunPage


class MemoryStore:
    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._runs: dict[RunKey, Run] = {}
        # Each verb is atomic, as DynamoDB's conditional writes and transactions are.
        self._lock = threading.RLock()

    def create(self, job: Job, runs: Sequence[Run]) -> Job | None:
        with self._lock:
            if existing := self._jobs.get(job.job_id):
                return existing
            self._jobs[job.job_id] = job
            self._runs.update({run.key: run for run in runs})
            return None

    def get_job(self, job_id: str) -> Job | None:
        return self._jobs.get(job_id)

    def list_runs(self, job_id: str, *, limit: int, before: str | None = None) -> RunPage:
        with self._lock:
            runs = [run for run in self._runs.values() if run.job_id == job_id]
        earlier = sorted(
            (run for run in runs if before is None or run.run_id < before),
            key=lambda run: run.run_id,
            reverse=True,
        )
        page = earlier[:limit]
        return RunPage(page, page[-1].run_id if len(earlier) > limit else None)

    def load(self, keys: Iterable[RunKey]) -> Mapping[RunKey, JobRun]:
        with self._lock:
            return {
                key: JobRun(self._jobs[key.job_id], self._runs[key])
                for key in keys
                if key in self._runs and key.job_id in self._jobs
            }

    def claim(self, seen: JobRun, after: JobRun) -> JobRun | None:
        with self._lock:
            there = JobRun(self._jobs[seen.job.job_id], self._runs[seen.run.key])
            if not _claim_guard_holds(seen, there):
                return there
            self._jobs[seen.job.job_id] = there.job.evolve(
                fence=after.job.fence, running=there.job.running + after.job.running - seen.job.running
            )
            self._runs[seen.run.key] = after.run
            return None

    def finish(self, after: Run, effect: JobEffect, *, completes_job: bool) -> bool:
        with self._lock:
            there = self._runs[after.key]
            if there.status is not RunStatus.RUNNING or there.fence != after.fence:
                return False
            self._runs[after.key] = after
            job = _with_effect(self._jobs[after.job_id], effect)
            if completes_job and _may_complete(job, after):
                job = job.evolve(status=JobStatus.COMPLETED)
            self._jobs[after.job_id] = job
            return True

    def drop(self, seen: Run, after: Run) -> bool:
        with self._lock:
            there = self._runs[seen.key]
            if (there.status, there.attempt) != (seen.status, seen.attempt):
                return False
            self._runs[seen.key] = after
            job = self._jobs[seen.job_id]
            self._jobs[seen.job_id] = job.evolve(running=job.running - int(seen.holds_place))
            return True

    def mark_dead_lettered(self, after: Run) -> bool:
        with self._lock:
            if self._runs[after.key].status is not RunStatus.FAILED:
                return False
            self._runs[after.key] = after
            return True


def _claim_guard_holds(seen: JobRun, there: JobRun) -> bool:
    takes_place = not seen.run.holds_place
    return (
        (there.run.status, there.run.attempt) == (seen.run.status, seen.run.attempt)
        and (there.job.version, there.job.fence) == (seen.job.version, seen.job.fence)
        and (not takes_place or there.job.running < there.job.spec.max_concurrency)
    )


def _with_effect(job: Job, effect: JobEffect) -> Job:
    return job.evolve(
        running=job.running - int(effect.frees_place),
        succeeded=job.succeeded + effect.succeeded,
        failed=job.failed + effect.failed,
        last_outcome=effect.outcome or job.last_outcome,
    )


def _may_complete(job: Job, run: Run) -> bool:
    return job.status is JobStatus.SCHEDULED and job.generation == run.generation and job.next_run_at is None
