"""How a job's statistics look to a caller: milliseconds, RFC 3339 times, null where there is nothing."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from duetime.instants import format_instant
from duetime.job import Job
from duetime.run import Run
from duetime.statistics import Spread, statistics
from duetime.status import RunStatus

_SHOWN = (RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.SKIPPED)


def show_statistics(job: Job, recent_runs: Sequence[Run]) -> dict[str, Any]:
    """`recent_runs`: the latest, the newest first, `statistics.RECENT` of them."""
    found = statistics(job, recent_runs)
    return {
        "succeeded": found.succeeded,
        "failed": found.failed,
        "recent_runs": {status.value.lower(): found.recent.get(status, 0) for status in _SHOWN},
        "duration_ms": _show_spread(found.duration),
        "lateness_ms": _show_spread(found.lateness),
        "last_success_at": _show_time(found.last_success_at),
        "last_failure_at": _show_time(found.last_failure_at),
        "streak": {
            "outcome": found.streak_outcome and found.streak_outcome.value,
            "runs": found.streak,
        },
    }


def _show_spread(spread: Spread | None) -> dict[str, float] | None:
    if spread is None:
        return None
    return {"average": _milliseconds(spread.average), "p95": _milliseconds(spread.p95)}


def _milliseconds(duration: timedelta) -> float:
    return round(duration.total_seconds() * 1000, 1)


def _show_time(instant: datetime | None) -> str | None:
    return format_instant(instant) if instant else None
