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
    job = a_job(status=JobStatus.PAUSED, generation=7, generation_ends=(NOW,))
    assert judge(job, a_run(a_job(), at=LATER, manual=True)).verdict is Verdict.CLAIMABLE


def test_a_run_due_at_the_very_moment_of_a_change_still_happens() -> None:
    job = a_job()
    run = a_run(job)
    assert judge(job.evolve(generation=2, generation_ends=(run.due_at,)), run).verdict is Verdict.CLAIMABLE


def test_a_run_planned_before_the_job_changed_is_unwanted() -> None:
    job = a_job()
    run = a_run(job, at=LATER)
    assert judge(job.evolve(generation=2, generation_ends=(NOW,)), run).verdict is Verdict.UNWANTED


def test_a_run_that_was_due_before_the_job_changed_still_happens() -> None:
    job = a_job()
    run = a_run(job, at=EARLIER)
    assert judge(job.evolve(generation=2, generation_ends=(NOW,)), run).verdict is Verdict.CLAIMABLE


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


def test_a_second_change_does_not_make_wanted_what_the_first_made_void() -> None:
    job = a_job()
    run = a_run(job, at=LATER)
    twice = job.evolve(generation=3, generation_ends=(NOW, LATER + timedelta(seconds=1)))
    assert judge(twice, run).verdict is Verdict.UNWANTED
    assert judge(twice, a_run(twice.evolve(generation=2), at=LATER)).verdict is Verdict.CLAIMABLE


def test_a_generation_too_long_ago_to_be_remembered_ended_when_the_oldest_that_is_did() -> None:
    job = a_job(generation=9, generation_ends=(NOW, LATER))
    assert [job.end_of(generation) for generation in (1, 6, 7, 8, 9)] == [NOW, NOW, NOW, LATER, None]


def test_a_run_whose_cancellation_was_asked_for_is_not_tried_again() -> None:
    job = a_job(running=1)
    run = (
        a_run(job).evolve(status=RunStatus.RUNNING).evolve(status=RunStatus.RETRYING, cancel_requested="ann")
    )
    assert judge(job, run).reason == "it was cancelled by ann"
