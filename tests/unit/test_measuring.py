"""What the changes of a run add to the metrics."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from duetime.claiming import claimed
from duetime.errors import PermanentFailure, TransientFailure
from duetime.finishing import cancelled, dead_lettered, dropped, failed, lost, succeeded
from duetime.measuring import LATE, measure
from duetime.metrics import Metric
from duetime.pair import JobRun
from duetime.run import Attempt, AttemptOutcome, Run
from duetime.run_control import redriven
from duetime.status import RunStatus

from tests.factories import NOW, a_cron_job, a_job, a_pair, a_run

SECOND = timedelta(seconds=1)


def found(was: Run | None, run: Run) -> dict[str, float]:
    measured = measure(was, run)
    assert {(each.priority, each.task_type) for each in measured} <= {("medium", "python")}
    assert len({each.metric for each in measured}) == len(measured)
    return {each.metric.value: each.value for each in measured}


def started(run: Run, at: Any = NOW) -> Run:
    return claimed(JobRun(a_job(), run), "worker-1", at).run


def test_planning_a_run_and_hinting_it_again_add_nothing() -> None:
    run = a_pair().run
    assert found(None, run) == {}
    assert found(run, run.evolve(hints=1, deadline_at=NOW + SECOND)) == {}


def test_a_first_start_counts_with_how_late_it_was() -> None:
    run = a_pair().run
    assert found(run, started(run, NOW - timedelta(milliseconds=50))) == {"RunsStarted": 1, "Lateness": 0}
    assert found(run, started(run, NOW + timedelta(milliseconds=30))) == {"RunsStarted": 1, "Lateness": 30}
    assert found(run, started(run, NOW + LATE)) == {"RunsStarted": 1, "Lateness": 2000}


def test_a_late_start_that_no_patrol_saw_waiting_counts_as_late() -> None:
    run = a_pair().run
    at = NOW + LATE + timedelta(milliseconds=1)
    assert found(run, started(run, at)) == {"RunsStarted": 1, "Lateness": 2001, "RunsLate": 1}


def test_a_run_that_was_marked_late_is_counted_at_the_mark_and_not_again() -> None:
    run = a_pair().run
    marked = run.evolve(late_at=NOW + 5 * SECOND)
    assert found(run, marked) == {"RunsLate": 1}
    assert found(marked, marked.evolve(late_at=NOW + 6 * SECOND)) == {}
    assert found(marked, started(marked, NOW + 8 * SECOND)) == {"RunsStarted": 1, "Lateness": 8000}


def test_a_run_that_waited_for_its_turn_is_as_late_as_it_came_when_called() -> None:
    waiting = a_pair().run.evolve(put_off_at=NOW + SECOND)
    called = waiting.evolve(called_at=NOW + 60 * SECOND)
    assert found(waiting, called) == {}
    assert found(called, started(called, NOW + 61 * SECOND)) == {"RunsStarted": 1, "Lateness": 1000}


def test_a_heartbeat_adds_nothing() -> None:
    run = started(a_pair().run)
    assert found(run, run.evolve(deadline_at=NOW + 30 * SECOND)) == {}


def test_a_success_counts_with_its_times() -> None:
    run = started(a_pair().run)
    after = succeeded(run, None, NOW + timedelta(milliseconds=10), NOW + timedelta(milliseconds=250))
    assert found(run, after) == {
        "RunsEnded": 1,
        "SuccessRate": 1,
        "FailureRate": 0,
        "Latency": 250,
        "Retries": 0,
        "Duration": 240,
    }


def test_a_failure_with_attempts_left_counts_only_how_long_it_took() -> None:
    run = started(a_pair().run)
    after = failed(a_job(), run, TransientFailure("no"), NOW, NOW + SECOND, lambda: 0.0)
    assert after.status is RunStatus.RETRYING
    assert found(run, after) == {"Duration": 1000}
    again = started(after, NOW + 5 * SECOND)
    assert found(after, again) == {}


def test_a_failure_for_good_counts_with_its_retries_and_then_as_a_dead_letter() -> None:
    job, run = a_pair()
    first = failed(job, started(run), TransientFailure("no"), NOW, NOW + SECOND, lambda: 0.0)
    second = started(first, NOW + 5 * SECOND)
    after = failed(job, second, PermanentFailure("no"), NOW + 5 * SECOND, NOW + 6 * SECOND, lambda: 0.0)
    assert found(second, after) == {
        "RunsEnded": 1,
        "SuccessRate": 0,
        "FailureRate": 1,
        "Latency": 6000,
        "Retries": 1,
        "Duration": 1000,
    }
    buried = dead_lettered(after, NOW)
    assert found(after, buried) == {"RunsDeadLettered": 1}
    # Somebody asked for it again: that is no new run.
    again = redriven(JobRun(job, buried), NOW + 60 * SECOND)
    assert found(buried, again) == {}
    assert found(again, started(again, NOW + 60 * SECOND)) == {}


def test_a_run_that_was_never_delivered_failed_without_retries() -> None:
    run = a_pair().run
    after = dropped(run, RunStatus.FAILED, "undeliverable", NOW + SECOND)
    assert found(run, after)["Retries"] == 0
    assert "Duration" not in found(run, after)


def test_a_lost_attempt_lasted_until_it_was_given_up() -> None:
    job, run = a_pair()
    held = started(run)
    assert found(held, lost(job, held, NOW + 20 * SECOND, "gone")) == {"Duration": 20000}


@pytest.mark.parametrize(
    ("status", "metric"), [(RunStatus.SKIPPED, "RunsSkipped"), (RunStatus.CANCELLED, "RunsCancelled")]
)
def test_what_does_not_happen_is_neither_success_nor_failure(status: RunStatus, metric: str) -> None:
    run = a_run(a_job())
    assert found(run, dropped(run, status, "no", NOW)) == {metric: 1}
    # A time that was slept through is written down as skipped at once.
    assert found(None, dropped(run, status, "no", NOW)) == {metric: 1}


def test_a_cancelled_attempt_counts_its_time() -> None:
    run = started(a_pair().run)
    assert found(run, cancelled(run, NOW, NOW + SECOND, "asked")) == {"RunsCancelled": 1, "Duration": 1000}


def test_the_same_record_again_says_the_same_again() -> None:
    run = a_pair().run
    assert measure(run, started(run)) == measure(run, started(run))


def test_a_run_from_before_task_types_were_recorded_has_none() -> None:
    run = replace(a_pair().run, task_type=None)
    assert {each.task_type for each in measure(run, started(run))} == {None}
    assert Metric.RUNS_STARTED in {each.metric for each in measure(run, started(run))}


def test_the_twenty_first_attempt_is_measured_though_only_twenty_are_kept() -> None:
    def attempt(number: int) -> Attempt:
        return Attempt(
            attempt=number,
            executor_id="w",
            claimed_at=NOW,
            start_time=NOW,
            end_time=NOW + timedelta(seconds=number),
            outcome=AttemptOutcome.FAILED,
        )

    run = a_run(a_cron_job())
    was = replace(run, status=RunStatus.RUNNING, attempt=21, attempts=tuple(map(attempt, range(1, 21))))
    after = replace(was, status=RunStatus.SUCCEEDED, end_time=NOW, attempts=tuple(map(attempt, range(2, 22))))
    assert found(was, after)["Duration"] == 21_000
