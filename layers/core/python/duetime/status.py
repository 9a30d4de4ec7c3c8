"""Every status, who moves it on, and the one table of transitions. docs/states.md draws the same table."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class JobStatus(StrEnum):
    SCHEDULED = "SCHEDULED"  # runs are planned or will be; the watcher and the worker move it on
    PAUSED = "PAUSED"  # its owner asked for silence; its owner moves it on
    CANCELLED = "CANCELLED"  # its owner ended it; final
    COMPLETED = "COMPLETED"  # every run it will ever have has ended; final


class RunStatus(StrEnum):
    QUEUED = "QUEUED"  # planned or hinted, or waiting for its turn; a worker's claim moves it on
    RUNNING = "RUNNING"  # a worker holds its lease; that worker moves it on
    RETRYING = (
        "RETRYING"  # an attempt failed and another is due at `not_before`; a worker's claim moves it on
    )
    SUCCEEDED = "SUCCEEDED"  # final
    FAILED = (
        "FAILED"  # no attempts left, or never delivered; the enqueuer moves it on, once it is a dead letter
    )
    DEAD_LETTERED = "DEAD_LETTERED"  # on the dead-letter queue; a redrive moves it on
    CANCELLED = "CANCELLED"  # no longer wanted; final
    SKIPPED = "SKIPPED"  # the overlap policy said no; final


JOB_TRANSITIONS: Final[Mapping[JobStatus, frozenset[JobStatus]]] = {
    JobStatus.SCHEDULED: frozenset({JobStatus.PAUSED, JobStatus.CANCELLED, JobStatus.COMPLETED}),
    JobStatus.PAUSED: frozenset({JobStatus.SCHEDULED, JobStatus.CANCELLED, JobStatus.COMPLETED}),
    JobStatus.CANCELLED: frozenset(),
    JobStatus.COMPLETED: frozenset(),
}

RUN_TRANSITIONS: Final[Mapping[RunStatus, frozenset[RunStatus]]] = {
    RunStatus.QUEUED: frozenset(
        {RunStatus.RUNNING, RunStatus.CANCELLED, RunStatus.SKIPPED, RunStatus.FAILED},
    ),
    RunStatus.RUNNING: frozenset(
        {RunStatus.SUCCEEDED, RunStatus.RETRYING, RunStatus.FAILED, RunStatus.CANCELLED},
    ),
    RunStatus.RETRYING: frozenset({RunStatus.RUNNING, RunStatus.CANCELLED, RunStatus.FAILED}),
    RunStatus.SUCCEEDED: frozenset(),
    RunStatus.FAILED: frozenset({RunStatus.DEAD_LETTERED}),
    RunStatus.DEAD_LETTERED: frozenset({RunStatus.QUEUED}),
    RunStatus.CANCELLED: frozenset(),
    RunStatus.SKIPPED: frozenset(),
}

CLAIMABLE: Final = frozenset({RunStatus.QUEUED, RunStatus.RETRYING})
"""A claim finds a run in one of these, or it does not claim."""

FINAL: Final = frozenset({RunStatus.SUCCEEDED, RunStatus.CANCELLED, RunStatus.SKIPPED})
"""Nobody moves these on any more."""

OPEN: Final = frozenset({RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.RETRYING, RunStatus.FAILED})
"""Somebody has yet to move these on, so each has a deadline on the watch index."""
