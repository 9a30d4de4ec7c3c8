from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from duetime.claimant import LEAD, Contended
from duetime.claiming import JUDGED
from duetime.clock import ManualClock
from duetime.errors import PermanentFailure, TaskError, TransientFailure
from duetime.memory_store import MemoryStore
from duetime.pair import JobRun
from duetime.retry import BackoffKind, RetryPolicy
from duetime.run import Run
from duetime.status import JobStatus, RunStatus
from duetime.tasks import AttemptContext

from tests.factories import NOW, a_job, a_pair, a_run, a_spec, claimed_pair
from tests.workers import a_worker


class Scene:
    """A job with a run, a clock, and a worker whose task does as the test says."""

    def __init__(self, seen: JobRun, task: Callable[[AttemptContext], Any] = lambda _: "done") -> None:
        self.clock = ManualClock(NOW)
        self.store = MemoryStore()
        self.store.create(seen.job, [seen.run])
        self.seen = seen
        self.attempts: list[AttemptContext] = []
        self.started_at: list[Any] = []
        self._task = task
        self.worker = a_worker(self.store, self.clock, self._execute)

    def work(self) -> Run | None:
        return self.worker.work(self.now_stored())

    def now_stored(self) -> JobRun:
        return self.store.load([self.seen.run.key])[self.seen.run.key]

    def _execute(self, context: AttemptContext) -> Any:
        self.attempts.append(context)
        self.started_at.append(self.clock.now())
        self.clock.advance(timedelta(milliseconds=250))
        return self._task(context)


def raising(error: TaskError) -> Callable[[AttemptContext], Any]:
    def task(_: AttemptContext) -> Any:
        raise error

    return task


def test_a_run_that_works_is_succeeded_with_its_result_and_its_attempt_on_record() -> None:
    scene = Scene(a_pair())
    run = scene.work()
    assert run is not None
    assert (run.status, run.result, run.attempt) == (RunStatus.SUCCEEDED, "done", 1)
    assert [(a.executor_id, a.start_time, a.end_time) for a in run.attempts] == [
        ("worker-1", NOW, NOW + timedelta(milliseconds=250))
    ]
    assert scene.now_stored().run == run
    assert scene.now_stored().job.status is JobStatus.COMPLETED


def test_every_attempt_is_told_its_key_number_due_time_and_fence() -> None:
    scene = Scene(a_pair())
    scene.work()
    assert scene.attempts[0].as_headers() == {
        "Idempotency-Key": scene.seen.run.run_id,
        "Duetime-Job-Id": scene.seen.job.job_id,
        "Duetime-Attempt": "1",
        "Duetime-Due-At": "2026-11-18T07:00:00.123Z",
        "Duetime-Fence": "1",
        "Duetime-Deadline": "2026-11-18T07:01:00.123Z",
    }


def test_a_run_is_claimed_a_little_early_and_starts_at_its_due_millisecond() -> None:
    job = a_job()
    due = NOW + timedelta(milliseconds=777)
    scene = Scene(JobRun(job, a_run(job, at=due)))
    run = scene.work()
    assert run is not None
    assert scene.started_at == [due]
    assert (run.claimed_at, run.start_time) == (due - LEAD, due)


def test_a_doubled_hint_runs_nothing() -> None:
    scene = Scene(a_pair())
    scene.work()
    assert scene.work() is None
    assert len(scene.attempts) == 1


def test_a_transient_failure_is_retried_after_its_backoff() -> None:
    policy = RetryPolicy(BackoffKind.FIXED, base_seconds=5)
    scene = Scene(a_pair(spec=a_spec(retry=policy)), raising(TransientFailure("503")))
    run = scene.work()
    assert run is not None
    assert (run.status, run.error_message) == (RunStatus.RETRYING, "503")
    assert run.not_before == NOW + timedelta(milliseconds=5250)
    assert scene.now_stored().job.running == 1


def test_a_target_names_its_own_delay() -> None:
    error = TransientFailure("429", retry_after=timedelta(seconds=40))
    run = Scene(a_pair(), raising(error)).work()
    assert run is not None
    assert run.not_before == NOW + timedelta(milliseconds=40250)


def test_the_last_attempt_ends_in_failed() -> None:
    scene = Scene(
        a_pair(spec=a_spec(max_retries=1, retry=RetryPolicy(BackoffKind.FIXED, 1))),
        raising(TransientFailure("503")),
    )
    scene.work()
    run = scene.work()
    assert run is not None
    assert (run.status, run.attempt, [a.error for a in run.attempts]) == (RunStatus.FAILED, 2, ["503", "503"])
    job = scene.now_stored().job
    assert (job.status, job.running, job.failed) == (JobStatus.COMPLETED, 0, 1)
    assert [attempt.fence for attempt in scene.attempts] == [1, 2]


def test_a_permanent_failure_is_not_retried() -> None:
    run = Scene(a_pair(), raising(PermanentFailure("400"))).work()
    assert run is not None
    assert (run.status, run.attempt) == (RunStatus.FAILED, 1)


def test_a_run_that_its_job_no_longer_wants_is_cancelled_with_the_reason() -> None:
    scene = Scene(a_pair(status=JobStatus.PAUSED))
    assert scene.work() is None
    run = scene.now_stored().run
    assert (run.status, run.error_message) == (RunStatus.CANCELLED, "the job is paused")
    assert scene.attempts == []


def test_a_worker_that_lost_its_lease_records_nothing() -> None:
    def lose_the_lease(_: AttemptContext) -> None:
        there = scene.now_stored()
        scene.store._runs[there.run.key] = there.run.evolve(fence=99)

    scene = Scene(a_pair(), lose_the_lease)
    assert scene.work() is None
    assert scene.now_stored().run.status is RunStatus.RUNNING


def test_a_claim_is_judged_anew_after_a_lost_race() -> None:
    scene = Scene(a_pair())
    outdated = scene.now_stored()
    scene.store.exchange(outdated, claimed_pair(outdated, "another"), JUDGED)
    assert scene.worker.work(outdated) is None
    assert scene.now_stored().run.executor_id == "another"


def test_a_claim_that_never_wins_gives_the_hint_back(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(a_pair())
    monkeypatch.setattr(scene.store, "exchange", lambda seen, after, judged: seen)
    with pytest.raises(Contended):
        scene.work()


def test_a_cancellation_in_the_last_second_wins() -> None:
    job = a_job()
    due = NOW + timedelta(seconds=1)
    scene = Scene(JobRun(job, a_run(job, at=due)))
    seen = scene.now_stored()
    scene.store.change(seen.job, seen.job.evolve(status=JobStatus.CANCELLED, version=2))
    assert scene.worker.work(seen) is None
    assert scene.now_stored().run.error_message == "the job was cancelled"
    assert scene.attempts == []


def test_a_job_that_changed_while_its_run_went_on_goes_on_and_the_outcome_counts() -> None:
    def reschedule(_: AttemptContext) -> None:
        job = scene.now_stored().job
        later = NOW + timedelta(hours=1)
        after = job.evolve(generation=2, version=2, next_run_at=later, final_run_id=None)
        scene.store.change(job, after)

    scene = Scene(a_pair(), reschedule)
    assert scene.work() is not None
    job = scene.now_stored().job
    assert (job.status, job.succeeded, job.running) == (JobStatus.SCHEDULED, 1, 0)
