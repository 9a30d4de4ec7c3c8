"""One at a time: what becomes of a run that finds no free place."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from duetime.clock import ManualClock
from duetime.job import Job, Overlap
from duetime.memory_store import MemoryStore
from duetime.pair import JobRun
from duetime.run import Run, manual_run
from duetime.status import JobStatus, RunStatus
from duetime.tasks import AttemptContext
from duetime.turns import LONGEST_QUEUE, TURN_PATIENCE

from tests.factories import NOW, a_cron_job, a_run
from tests.workers import a_worker


class Scene:
    """A recurring job, and workers whose tasks do as the test says."""

    def __init__(self, job: Job, *runs: Run) -> None:
        self.clock = ManualClock(NOW)
        self.store = MemoryStore()
        self.store.create(job, runs)
        self.job_id = job.job_id
        self.started: list[str] = []

    def work(self, run: Run, task: Callable[[], Any] = lambda: None) -> RunStatus:
        def execute(context: AttemptContext) -> Any:
            self.started.append(context.run_id)
            return task()

        a_worker(self.store, self.clock, execute).work(self.store.load([run.key])[run.key])
        return self.run(run).status

    def run(self, run: Run) -> Run:
        there = self.store.get_run(run.key)
        assert there is not None
        return there

    @property
    def job(self) -> Job:
        job = self.store.get_job(self.job_id)
        assert job is not None
        return job


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def two_runs(**spec: Any) -> tuple[Job, Run, Run]:
    job = a_cron_job("*/10 * * * * *", spec=spec)
    return job, a_run(job), a_run(job, at=NOW + seconds(10))


def test_a_run_that_overlaps_is_skipped_with_the_reason() -> None:
    job, first, second = two_runs()
    scene = Scene(job, first, second)
    scene.work(first, lambda: scene.work(second))
    assert scene.run(second).status is RunStatus.SKIPPED
    assert scene.run(second).error_message == "1 of at most 1 runs were under way"
    assert scene.started == [first.run_id]


@pytest.mark.parametrize("late_by", [0, 0.4, 1.4])
def test_a_task_of_nine_and_a_half_seconds_every_ten_never_skips(late_by: float) -> None:
    """Even if the run before started late: the next one looks again for a while before it gives way."""
    job, first, second = two_runs()
    scene = Scene(job, first, second)
    original = scene.store.load

    def end_in_time(keys: Any) -> Any:
        if scene.clock.now() >= NOW + seconds(9.5 + late_by):
            held = scene.job
            scene.store.adjust(held, held.evolve(running=0), set())
        return original(keys)

    scene.store.adjust(scene.job, scene.job.evolve(running=1), set())
    scene.clock.wait_until(second.due_at - seconds(1))
    scene.store.load = end_in_time  # type: ignore[method-assign]
    assert scene.work(second) is RunStatus.SUCCEEDED


def test_with_overlap_queue_it_waits_and_is_called_as_soon_as_a_place_is_free() -> None:
    job, first, second = two_runs(overlap=Overlap.QUEUE)
    scene = Scene(job, first, second)
    scene.work(first, lambda: scene.work(second))
    waiting = scene.run(second)
    assert (waiting.status, waiting.called_at) == (RunStatus.QUEUED, scene.clock.now())
    assert waiting.deadline_at == scene.clock.now() + TURN_PATIENCE
    assert scene.work(second) is RunStatus.SUCCEEDED
    assert (scene.job.waiters, scene.job.turn_from) == (0, None)
    assert scene.started == [first.run_id, second.run_id]


def test_the_oldest_is_called_first_and_only_as_many_as_there_are_places() -> None:
    job = a_cron_job("*/10 * * * * *", spec={"overlap": Overlap.QUEUE})
    first, *others = (a_run(job, at=NOW + seconds(10 * n)) for n in range(4))
    scene = Scene(job, first, *others)

    def all_others_come() -> None:
        for run in others[::-1]:
            scene.work(run)

    scene.work(first, all_others_come)
    assert [scene.run(run).called_at is not None for run in others] == [True, False, False]
    assert scene.job.waiters == 3
    scene.work(others[0])
    assert [scene.run(run).called_at is not None for run in others] == [True, True, False]
    scene.work(others[1])
    scene.work(others[2])
    assert scene.started == [run.run_id for run in (first, *others)]
    assert scene.job.waiters == 0


def test_a_place_that_became_free_in_the_meantime_is_taken() -> None:
    """The run saw no place, but by the time it wants to wait there is one, and nobody left to call it."""
    job, first, second = two_runs(overlap=Overlap.QUEUE)
    scene = Scene(job, first, second)
    outdated = JobRun(job.evolve(running=1), second)
    a_worker(scene.store, scene.clock).work(outdated)
    assert scene.run(second).status is RunStatus.SUCCEEDED


def test_a_queue_that_is_full_skips() -> None:
    job = a_cron_job("*/10 * * * * *", spec={"overlap": Overlap.QUEUE}, running=1)
    waiting = [a_run(job, at=NOW - seconds(10 * n)) for n in range(1, LONGEST_QUEUE + 1)]
    late = a_run(job)
    job = job.evolve(waiters=LONGEST_QUEUE, turn_from=min(run.run_id for run in waiting))
    scene = Scene(job, *waiting, late)
    assert scene.work(late) is RunStatus.SKIPPED
    assert f"{LONGEST_QUEUE} more were waiting" in (scene.run(late).error_message or "")


@pytest.mark.parametrize("kind", ["manual", "caught up"])
def test_a_patient_run_waits_whatever_the_policy(kind: str) -> None:
    job = a_cron_job(running=1)
    run = manual_run(job, NOW, "1") if kind == "manual" else a_run(job, patient=True)
    scene = Scene(job, run)
    assert scene.work(run) is RunStatus.QUEUED
    assert scene.job.waiters == 1


def test_a_run_that_waits_is_looked_after_and_not_given_up() -> None:
    job, _, second = two_runs(overlap=Overlap.QUEUE)
    scene = Scene(job.evolve(running=1), second.evolve(hints=5))
    scene.work(second)
    assert (scene.run(second).hints, scene.run(second).status) == (0, RunStatus.QUEUED)


def test_several_places_are_several_at_once() -> None:
    job, first, second = two_runs(max_concurrency=2)
    scene = Scene(job, first, second)
    scene.work(first, lambda: scene.work(second))
    assert [scene.run(run).status for run in (first, second)] == [RunStatus.SUCCEEDED] * 2


class TestCompletion:
    def last_two(self, **spec: Any) -> tuple[Job, Run, Run]:
        job, first, last = two_runs(**spec)
        return job.evolve(next_run_at=None, final_run_id=last.run_id), first, last

    def test_a_job_is_completed_by_its_last_run_and_not_before(self) -> None:
        job, first, last = self.last_two()
        scene = Scene(job, first, last)
        statuses = []
        for run in (first, last):
            scene.work(run)
            statuses.append(scene.job.status)
        assert statuses == [JobStatus.SCHEDULED, JobStatus.COMPLETED]

    def test_a_last_run_that_ends_before_another_leaves_it_to_that_one(self) -> None:
        job, first, last = self.last_two(max_concurrency=2)
        scene = Scene(job, first, last)
        seen: list[JobStatus] = []

        def last_comes_and_goes() -> None:
            scene.work(last)
            seen.append(scene.job.status)

        scene.work(first, last_comes_and_goes)
        assert (seen, scene.job.status) == ([JobStatus.SCHEDULED], JobStatus.COMPLETED)

    def test_a_last_run_that_is_skipped_leaves_it_to_the_one_before(self) -> None:
        job, first, last = self.last_two()
        scene = Scene(job, first, last)
        scene.work(first, lambda: scene.work(last))
        assert scene.run(last).status is RunStatus.SKIPPED
        assert scene.job.status is JobStatus.COMPLETED

    def test_a_last_run_planned_while_the_one_before_was_under_way(self) -> None:
        job, first, last = two_runs()
        scene = Scene(job, first, last)

        def the_sweep_comes_and_the_last_is_skipped() -> None:
            there = scene.job
            scene.store.adjust(there, there.evolve(next_run_at=None, final_run_id=last.run_id), set())
            scene.work(last)

        scene.work(first, the_sweep_comes_and_the_last_is_skipped)
        assert scene.job.status is JobStatus.COMPLETED
