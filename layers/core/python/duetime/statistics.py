"""How a job has been doing lately, from its recent runs. Pure: whoever asks has read the runs."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from duetime.job import Job
from duetime.run import Run
from duetime.status import RunStatus

RECENT: Final = 50
"""So many of the latest runs are looked at."""

# A dead letter is a failure that has been filed.
_OUTCOMES: Final = {
    RunStatus.SUCCEEDED: RunStatus.SUCCEEDED,
    RunStatus.FAILED: RunStatus.FAILED,
    RunStatus.DEAD_LETTERED: RunStatus.FAILED,
    RunStatus.CANCELLED: RunStatus.CANCELLED,
    RunStatus.SKIPPED: RunStatus.SKIPPED,
}
_DECIDED: Final = (RunStatus.SUCCEEDED, RunStatus.FAILED)


@dataclass(frozen=True, slots=True)
class Spread:
    """Of some durations."""

    average: timedelta
    p95: timedelta


@dataclass(frozen=True, slots=True)
class Statistics:
    # Since the job was made.
    succeeded: int
    failed: int
    # Among the recent runs, those that ended so.
    recent: Mapping[RunStatus, int]
    # Of every attempt at a recent run that ended; of every recent run that started.
    duration: Spread | None
    lateness: Spread | None
    last_success_at: datetime | None
    last_failure_at: datetime | None
    # How many runs in a row, up to the latest, had the same outcome; those that were not to run do not count.
    streak: int
    streak_outcome: RunStatus | None


def statistics(job: Job, recent_runs: Sequence[Run]) -> Statistics:
    """`recent_runs` are the job's latest, the newest first; those that have not ended, or not begun, count where they
    can."""
    runs = recent_runs[:RECENT]
    outcomes = [(run, _OUTCOMES[run.status]) for run in runs if run.status in _OUTCOMES]
    decided = [outcome for _, outcome in outcomes if outcome in _DECIDED]
    return Statistics(
        succeeded=job.succeeded,
        failed=job.failed,
        recent=Counter(outcome for _, outcome in outcomes),
        duration=_spread(each.end_time - each.start_time for run in runs for each in run.attempts),
        lateness=_spread(late for run in runs if (late := lateness_of(run)) is not None),
        last_success_at=_latest_end(run for run, outcome in outcomes if outcome is RunStatus.SUCCEEDED),
        last_failure_at=_latest_end(run for run, outcome in outcomes if outcome is RunStatus.FAILED),
        streak=_streak(decided),
        streak_outcome=decided[0] if decided else None,
    )


def lateness_of(run: Run) -> timedelta | None:
    """From when its first attempt was to start until it did; None: it has not, or is no longer on record."""
    started_at = run.attempts[0].start_time if run.attempts else run.start_time
    if started_at is None or (run.attempts and run.attempts[0].attempt > 1):
        return None
    return max(started_at - (run.expected_at or run.due_at), timedelta())


def _spread(durations: Iterable[timedelta]) -> Spread | None:
    ordered = sorted(durations)
    if not ordered:
        return None
    # The nearest rank: the smallest that no more than a twentieth exceed.
    return Spread(sum(ordered, timedelta()) / len(ordered), ordered[-(-95 * len(ordered) // 100) - 1])


def _latest_end(runs: Iterable[Run]) -> datetime | None:
    return max((run.end_time for run in runs if run.end_time), default=None)


def _streak(decided: Sequence[RunStatus]) -> int:
    return next((n for n, outcome in enumerate(decided) if outcome is not decided[0]), len(decided))
