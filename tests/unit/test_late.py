"""Runs that wait though their time has come are known as late while they still wait."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from duetime import changing
from duetime.errors import TransientFailure
from duetime.finishing import failed
from duetime.measuring import LATE
from duetime.pair import JobRun
from duetime.patrolling import MOST_MARKS
from duetime.run import PATIENCE
from duetime.status import JobStatus, RunStatus
from duetime.timing import CatchUp

from tests.factories import NOW, OWNER, a_cron_job, a_pair, a_run, claimed_pair
from tests.unit.test_patrolling import Scene

MOMENT = timedelta(milliseconds=1)
MINUTE = timedelta(minutes=1)


def test_a_run_is_marked_once_two_seconds_after_its_time_and_not_before() -> None:
    seen = a_pair()
    scene = Scene(seen)
    scene.clock.advance(LATE)
    assert (scene.patrol().waiting_late, scene.pair(seen).run.late_at) == (0, None)
    scene.clock.advance(MOMENT)
    report = scene.patrol()
    marked_at = NOW + LATE + MOMENT
    assert (report.waiting_late, len(report.marked_late)) == (1, 1)
    assert scene.pair(seen).run == replace(seen.run, late_at=marked_at)
    scene.clock.advance(timedelta(seconds=10))
    again = scene.patrol()
    assert (again.waiting_late, again.marked_late) == (1, [])
    assert scene.pair(seen).run.late_at == marked_at


def test_a_run_that_is_hinted_again_and_again_is_still_counted_as_waiting() -> None:
    seen = a_pair()
    scene = Scene(seen)
    for _ in range(4):
        scene.clock.advance(4 * PATIENCE)
        assert scene.patrol().waiting_late == 1
    assert scene.pair(seen).run.hints > 1


def test_what_was_marked_can_be_claimed_as_if_nothing_had_been() -> None:
    seen = a_pair()
    scene = Scene(seen)
    scene.clock.advance(5 * LATE)
    scene.patrol()
    after = claimed_pair(seen)
    assert scene.store.exchange(seen, after, {"running"}) is None
    assert scene.pair(seen).run.late_at is not None


def _under_way(seen: JobRun) -> JobRun:
    return claimed_pair(seen)


def _between_attempts(seen: JobRun) -> JobRun:
    job, run = claimed_pair(seen)
    return JobRun(job, failed(job, run, TransientFailure("no"), NOW, NOW, lambda: 0.0))


def _waiting_for_its_turn(seen: JobRun) -> JobRun:
    return JobRun(seen.job, replace(seen.run, put_off_at=NOW, deadline_at=NOW + 5 * MINUTE))


@pytest.mark.parametrize("standing", [_under_way, _between_attempts, _waiting_for_its_turn])
def test_what_does_not_wait_for_us_is_not_late(standing: Callable[[JobRun], JobRun]) -> None:
    seen = standing(a_pair())
    scene = Scene(seen)
    scene.clock.advance(3 * LATE)
    report = scene.patrol()
    assert (report.waiting_late, report.marked_late, scene.pair(seen).run.late_at) == (0, [], None)


def test_a_run_that_its_paused_job_does_not_want_is_not_marked() -> None:
    seen = a_pair()
    scene = Scene(JobRun(replace(seen.job, status=JobStatus.PAUSED), seen.run))
    scene.clock.advance(3 * LATE)
    assert (scene.patrol().marked_late, scene.pair(seen).run.late_at) == ([], None)


def test_what_a_pause_made_late_is_expected_from_when_it_ended() -> None:
    job = a_cron_job("* * * * *", timing={"catch_up": CatchUp.ONE}, next_run_at=NOW + MINUTE)
    paused = changing.pause(job, OWNER, NOW).job
    resumed_at = NOW + 10 * MINUTE
    made = changing.resume(paused, OWNER, resumed_at)
    run = made.runs[0]
    assert (run.due_at < resumed_at, run.not_before) == (True, resumed_at)
    scene = Scene(JobRun(made.job, run))
    scene.clock.wait_until(resumed_at + LATE)
    assert scene.patrol().marked_late == []
    scene.clock.advance(MOMENT)
    assert len(scene.patrol().marked_late) == 1


def test_an_overload_is_counted_whole_and_marked_in_steps() -> None:
    job = a_cron_job()
    runs = [a_run(job, at=NOW + number * MOMENT) for number in range(MOST_MARKS + 30)]
    scene = Scene()
    scene.store.create(job, runs)
    scene.clock.advance(2 * LATE)
    first, second, third = scene.patrol(), scene.patrol(), scene.patrol()
    assert [each.waiting_late for each in (first, second, third)] == [MOST_MARKS + 30] * 3
    assert [len(each.marked_late) for each in (first, second, third)] == [MOST_MARKS, 30, 0]


def test_a_mark_is_lost_to_a_claim_and_does_not_undo_it() -> None:
    seen = a_pair()
    scene = Scene(seen)
    claimed = claimed_pair(seen)
    assert scene.store.exchange(seen, claimed, {"running"}) is None
    assert not scene.store.advance(seen.run, replace(seen.run, late_at=NOW))
    assert scene.pair(seen).run.status is RunStatus.RUNNING
