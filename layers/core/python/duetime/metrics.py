"""Every metric that Duetime emits: its name, its unit, and by what it can be told apart. docs/metrics.md says what each
means, and a test fails when one is missing there.

Few dimensions, each with few values: CloudWatch charges for every combination, and a job's or an owner's own numbers
are in the table of runs.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

NAMESPACE: Final = "Duetime"

# Sets of dimensions, beside the environment that is in each of them.
Sets = tuple[tuple[str, ...], ...]
ALONE: Final[Sets] = ((),)
BY_PRIORITY: Final[Sets] = ((), ("priority",))
BY_PRIORITY_AND_TASK: Final[Sets] = ((), ("priority",), ("task_type",))
ONLY_BY_PRIORITY: Final[Sets] = (("priority",),)


class Unit(StrEnum):
    """As CloudWatch names them."""

    COUNT = "Count"
    MILLISECONDS = "Milliseconds"
    SECONDS = "Seconds"
    PERCENT = "Percent"
    NONE = "None"


class Metric(StrEnum):
    unit: Unit
    sets: Sets

    def __new__(cls, name: str, unit: Unit, sets: Sets = ALONE) -> "Metric":
        member = str.__new__(cls, name)
        member._value_ = name
        member.unit, member.sets = unit, sets
        return member

    # The status feed's, from what becomes of runs.
    RUNS_STARTED = "RunsStarted", Unit.COUNT, BY_PRIORITY_AND_TASK
    RUNS_ENDED = "RunsEnded", Unit.COUNT, BY_PRIORITY_AND_TASK
    SUCCESS_RATE = "SuccessRate", Unit.NONE, BY_PRIORITY_AND_TASK
    FAILURE_RATE = "FailureRate", Unit.NONE, BY_PRIORITY_AND_TASK
    LATENESS = "Lateness", Unit.MILLISECONDS, BY_PRIORITY_AND_TASK
    LATENCY = "Latency", Unit.MILLISECONDS, BY_PRIORITY_AND_TASK
    DURATION = "Duration", Unit.MILLISECONDS, BY_PRIORITY_AND_TASK
    RETRIES = "Retries", Unit.COUNT, BY_PRIORITY_AND_TASK
    RUNS_DEAD_LETTERED = "RunsDeadLettered", Unit.COUNT, BY_PRIORITY_AND_TASK
    RUNS_LATE = "RunsLate", Unit.COUNT, BY_PRIORITY
    RUNS_SKIPPED = "RunsSkipped", Unit.COUNT
    RUNS_CANCELLED = "RunsCancelled", Unit.COUNT

    # The watcher's, from what it looks at.
    WAITING_LATE = "WaitingLate", Unit.COUNT
    QUEUE_LENGTH = "QueueLength", Unit.COUNT, ONLY_BY_PRIORITY
    SWEEP_TIME = "SweepTime", Unit.MILLISECONDS
    SWEEP_SIZE = "SweepSize", Unit.COUNT
    AUDITED_FIRES = "AuditedFires", Unit.COUNT
    MISSED_FIRES = "MissedFires", Unit.COUNT
    DUPLICATED_FIRES = "DuplicatedFires", Unit.COUNT

    # The worker's, of each invocation.
    BUSY_SECONDS = "BusySeconds", Unit.SECONDS
    CAPACITY_SECONDS = "CapacitySeconds", Unit.SECONDS
    WORKER_UTILISATION = "WorkerUtilisation", Unit.PERCENT

    # The notifier's.
    NOTICES_SENT = "NoticesSent", Unit.COUNT
    NOTICES_SUPPRESSED = "NoticesSuppressed", Unit.COUNT
    NOTICES_FAILED = "NoticesFailed", Unit.COUNT


@dataclass(frozen=True, slots=True)
class Measurement:
    metric: Metric
    value: float
    priority: str | None = None
    task_type: str | None = None
