"""One job of the demo as the table shows it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from local.demo.jobs import task_label

SUCCEEDED = "SUCCEEDED"
FINISHED = {SUCCEEDED, "FAILED", "DEAD_LETTERED", "CANCELLED", "SKIPPED"}


@dataclass(frozen=True)
class Row:
    job_id: str
    name: str
    task: str
    priority: str
    status: str = "SUBMITTED"
    attempt: int = 0
    late_ms: float | None = None
    took_ms: float | None = None
    error: str | None = None

    @property
    def finished(self) -> bool:
        return self.status in FINISHED

    @property
    def succeeded(self) -> bool:
        return self.status == SUCCEEDED


def submitted(job: dict[str, Any], job_id: str) -> Row:
    return Row(job_id, job["name"], task_label(job), job["priority"])


def updated(row: Row, status: Mapping[str, Any]) -> Row:
    run = status.get("latest_run")
    if not run:
        return row
    return replace(
        row,
        status=run["status"],
        attempt=run.get("attempt") or 0,
        late_ms=milliseconds_between(run.get("due_at"), run.get("start_time")),
        took_ms=milliseconds_between(run.get("start_time"), run.get("end_time")),
        error=run.get("error_message"),
    )


def milliseconds_between(earlier: str | None, later: str | None) -> float | None:
    if not earlier or not later:
        return None
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds() * 1000
