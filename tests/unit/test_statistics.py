"""How a job has been doing, from its recent runs."""

import json
from dataclasses import replace
from datetime import timedelta

from duetime.api.statistics import show_statistics
from duetime.claiming import claimed
from duetime.errors import TransientFailure
from duetime.finishing import dropped, failed, succeeded
from duetime.job import Job
from duetime.pair import JobRun
from duetime.run import Run
from duetime.statistics import RECENT, lateness_of, statistics
from duetime.status import RunStatus

from tests.factories import NOW, a_cron_job, a_run, claimed_pair

MS = timedelta(milliseconds=1)
MINUTE = timedelta(minutes=1)


def a_finished_run(job: Job, minute: int, *, late: int = 0, lasted: int = 100, fails: bool = False) -> Run:
    due_at = NOW + minute * MINUTE
    run = claimed_pair(JobRun(job, a_run(job, at=due_at))).run
    start, end = due_at + late * MS, due_at + (late + lasted) * MS
    if not fails:
        return succeeded(run, None, start, end)
    last = run.evolve(max_attempt=1)
    return failed(job, last, TransientFailure("no"), start, end, lambda: 0.0)


def test_a_job_without_runs_has_nothing_to_show() -> None:
    shown = show_statistics(a_cron_job(), [])
    assert shown == {
        "succeeded": 0,
        "failed": 0,
        "recent_runs": {"succeeded": 0, "failed": 0, "cancelled": 0, "skipped": 0},
        "duration_ms": None,
        "lateness_ms": None,
        "last_success_at": None,
        "last_failure_at": None,
        "streak": {"outcome": None, "runs": 0},
    }


def test_recent_runs_are_counted_and_measured() -> None:
    job = a_cron_job(succeeded=120, failed=7)
    runs = [a_finished_run(job, n, late=n, lasted=100 * n) for n in range(1, 21)]
    runs.append(a_finished_run(job, 21, late=30, lasted=50, fails=True))
    runs.append(dropped(a_run(job, at=NOW + 22 * MINUTE), RunStatus.SKIPPED, "busy", NOW + 22 * MINUTE))
    shown = show_statistics(job, runs[::-1])
    assert json.loads(json.dumps(shown)) == shown
    assert (shown["succeeded"], shown["failed"]) == (120, 7)
    assert shown["recent_runs"] == {"succeeded": 20, "failed": 1, "cancelled": 0, "skipped": 1}
    # 21 of each: the sum of 100 to 2000 and 50; of 1 to 20 and 30.
    assert shown["duration_ms"] == {"average": round(21050 / 21, 1), "p95": 1900.0}
    assert shown["lateness_ms"] == {"average": round(240 / 21, 1), "p95": 20.0}
    assert shown["last_success_at"] == "2026-11-18T07:20:02.143Z"
    assert shown["last_failure_at"] == "2026-11-18T07:21:00.203Z"
    assert shown["streak"] == {"outcome": "FAILED", "runs": 1}


def test_a_streak_is_not_broken_by_what_was_not_to_run() -> None:
    job = a_cron_job()
    runs = [
        a_finished_run(job, 1, fails=True),
        a_finished_run(job, 2),
        dropped(a_run(job, at=NOW + 3 * MINUTE), RunStatus.CANCELLED, "no", NOW),
        a_finished_run(job, 4),
        a_run(job, at=NOW + 5 * MINUTE),
    ]
    found = statistics(job, runs[::-1])
    assert (found.streak, found.streak_outcome) == (2, RunStatus.SUCCEEDED)


def test_a_dead_letter_is_a_failure() -> None:
    job = a_cron_job()
    buried = a_finished_run(job, 1, fails=True).evolve(status=RunStatus.DEAD_LETTERED)
    assert statistics(job, [buried]).recent == {RunStatus.FAILED: 1}


def test_only_the_latest_are_looked_at() -> None:
    job = a_cron_job()
    runs = [a_finished_run(job, n) for n in range(RECENT)] + [a_finished_run(job, 100, fails=True)]
    assert statistics(job, runs).recent == {RunStatus.SUCCEEDED: RECENT}


def test_a_run_is_as_late_as_its_first_attempt_was() -> None:
    job = a_cron_job()
    run = a_finished_run(job, 0, late=40)
    assert lateness_of(run) == 40 * MS
    assert lateness_of(run.evolve(attempt=2, not_before=NOW + MINUTE)) == 40 * MS
    assert lateness_of(a_run(job)) is None
    called = run.evolve(expected_at=NOW + 30 * MS)
    assert lateness_of(called) == 10 * MS


def test_a_run_after_a_pause_is_as_late_as_it_was_after_the_pause_whatever_came_then() -> None:
    waking = NOW + timedelta(hours=5)
    run = replace(a_run(a_cron_job()), not_before=waking)
    held = claimed(JobRun(a_cron_job(), run), "w", waking)
    later = failed(held.job, held.run, TransientFailure("x"), waking, waking, lambda: 0.5)
    assert later.status is RunStatus.RETRYING
    assert lateness_of(later) == timedelta()


def test_a_run_whose_first_attempt_is_no_longer_kept_has_no_lateness() -> None:
    run = a_finished_run(a_cron_job(), 0)
    kept = replace(run, attempts=tuple(replace(each, attempt=2) for each in run.attempts))
    assert lateness_of(kept) is None
