from datetime import timedelta

import pytest
from duetime.claiming import Verdict, claimed, judge
from duetime.pair import JobRun
from duetime.status import JobStatus, RunStatus

from tests.factories import NOW, a_job, a_pair, a_run

EARLIER, LATER = NOW - timedelta(seconds=1), NOW + timedelta(seconds=1)


def test_a_queued_run_of_a_scheduled_job_is_claimable() -> None:
    assert judge(*a_pair()).verdict is Verdict.CLAIMABLE


@pytest.mark.parametrize("status", set(RunStatus) - {RunStatus.QUEUED, RunStatus.RETRYING})
def test_a_run_that_is_not_open_is_left_alone(status: RunStatus) -> None:
    job = a_job()
    run = a_run(job)
    object.__setattr__(run, "status", status)
    assert judge(job, run).verdict is Verdict.NOT_OPEN


@pytest.mark.parametrize(
    ("status", "reason"),
    [(JobStatus.PAUSED, "the job is paused"), (JobStatus.CANCELLED, "the job was cancelled")],
)
def test_a_paused_or_cancelled_job_starts_nothing(status: JobStatus, reason: str) -> None:
    judgement = judge(*a_pair(status=status))
    assert (judgement.verdict, judgement.reason) == (Verdict.UNWANTED, reason)


def test_a_run_that_was_planned_when_its_job_completed_still_happens() -> None:
    assert judge(*a_pair(status=JobStatus.COMPLETED)).verdict is Verdict.CLAIMABLE


def test_a_run_asked_for_by_hand_needs_neither_schedule_nor_generation() -> None:
    job = a_job(status=JobStatus.PAUSED, generation=7, changed_at=NOW)
    assert judge(job, a_run(a_job(), at=LATER, manual=True)).verdict is Verdict.CLAIMABLE


def test_a_run_due_at_the_very_moment_of_a_change_still_happens() -> None:
    job = a_job()
    run = a_run(job)
    assert judge(job.evolve(generation=2, changed_at=run.due_at), run).verdict is Verdict.CLAIMABLE


def test_a_run_planned_before_the_job_changed_is_unwanted() -> None:
    job = a_job()
    run = a_run(job, at=LATER)
    assert judge(job.evolve(generation=2, changed_at=NOW), run).verdict is Verdict.UNWANTED


def test_a_run_that_was_due_before_the_job_changed_still_happens() -> None:
    job = a_job()
    run = a_run(job, at=EARLIER)
    assert judge(job.evolve(generation=2, changed_at=NOW), run).verdict is Verdict.CLAIMABLE


def test_a_run_without_a_free_place_is_told_how_many_are_running() -> None:
    judgement = judge(*a_pair(running=1))
    assert (judgement.verdict, judgement.reason) == (Verdict.NO_PLACE, "1 of at most 1 runs were under way")


def test_a_retrying_run_needs_no_new_place() -> None:
    job = a_job(running=1)
    run = a_run(job).evolve(status=RunStatus.RUNNING).evolve(status=RunStatus.RETRYING)
    assert judge(job, run).verdict is Verdict.CLAIMABLE


def test_an_early_claim_promises_the_start_at_the_due_time() -> None:
    job = a_job()
    _, run = claimed(JobRun(job, a_run(job, at=LATER)), "worker-1", NOW)
    assert (run.claimed_at, run.start_time) == (NOW, LATER)


def test_a_late_claim_starts_at_once() -> None:
    job = a_job()
    _, run = claimed(JobRun(job, a_run(job, at=EARLIER)), "worker-1", NOW)
    assert run.start_time == NOW
