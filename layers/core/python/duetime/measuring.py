"""What a change of a run adds to the metrics. Pure, and from nothing but the run before and after: a stream record that
comes again says the same again."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from duetime.instants import milliseconds_between
from duetime.metrics import Measurement, Metric
from duetime.run import Run, expected_from
from duetime.status import RunStatus

LATE: Final = timedelta(seconds=2)
"""Duetime's promise: what has not started so long after its time is late."""

_COUNTED: Final = {
    RunStatus.DEAD_LETTERED: Metric.RUNS_DEAD_LETTERED,
    RunStatus.SKIPPED: Metric.RUNS_SKIPPED,
    RunStatus.CANCELLED: Metric.RUNS_CANCELLED,
}


def measure(was: Run | None, run: Run) -> list[Measurement]:
    """None: the run is new."""
    found = [*_late(was, run), *_attempts(was, run)]
    if was is None or was.status is not run.status:
        found += _entered(run)
    return [Measurement(metric, value, run.priority, run.task_type) for metric, value in found]


def is_late(run: Run, at: datetime) -> bool:
    return at - expected_from(run) > LATE


def _entered(run: Run) -> Iterator[tuple[Metric, float]]:
    match run.status:
        case RunStatus.RUNNING if run.attempt == 1:
            yield from _started(run)
        case RunStatus.SUCCEEDED | RunStatus.FAILED:
            yield from _ended(run)
        case RunStatus.DEAD_LETTERED | RunStatus.SKIPPED | RunStatus.CANCELLED:
            yield _COUNTED[run.status], 1


def _started(run: Run) -> Iterator[tuple[Metric, float]]:
    assert run.start_time is not None
    yield Metric.RUNS_STARTED, 1
    # Clocks differ: a worker may start a run a moment before, by its own, another function called it.
    yield Metric.LATENESS, max(milliseconds_between(expected_from(run), run.start_time), 0)
    # It was late, and no patrol came by while it waited, or had its hands full.
    if run.late_at is None and is_late(run, run.start_time):
        yield Metric.RUNS_LATE, 1


def _ended(run: Run) -> Iterator[tuple[Metric, float]]:
    assert run.end_time is not None
    succeeded = int(run.status is RunStatus.SUCCEEDED)
    yield Metric.RUNS_ENDED, 1
    yield Metric.SUCCESS_RATE, succeeded
    yield Metric.FAILURE_RATE, 1 - succeeded
    yield Metric.LATENCY, milliseconds_between(run.due_at, run.end_time)
    # None for a run that was never delivered.
    yield Metric.RETRIES, max(run.attempt - 1, 0)


def _attempts(was: Run | None, run: Run) -> Iterator[tuple[Metric, float]]:
    # By their numbers: only the latest are kept.
    seen = was.attempts[-1].attempt if was and was.attempts else 0
    for attempt in (each for each in run.attempts if each.attempt > seen):
        yield Metric.DURATION, milliseconds_between(attempt.start_time, attempt.end_time)


def _late(was: Run | None, run: Run) -> Iterator[tuple[Metric, float]]:
    if run.late_at and not (was and was.late_at):
        yield Metric.RUNS_LATE, 1
