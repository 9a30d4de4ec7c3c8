"""What the watcher's reports add to the metrics."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from duetime.job import Priority
from duetime.metrics import Measurement, Metric
from duetime.patrolling import PatrolReport
from duetime.sweeping import SweepReport

if TYPE_CHECKING:
    from duetime.auditing import AuditReport


def of_sweep(report: SweepReport) -> list[Measurement]:
    if report.lasted is None:
        return []
    return [
        Measurement(Metric.SWEEP_TIME, report.lasted.total_seconds() * 1000),
        Measurement(Metric.SWEEP_SIZE, report.jobs),
    ]


def of_patrol(report: PatrolReport) -> list[Measurement]:
    """Nothing, if some slots could not be read: a number that is too low would silence an alarm just when DynamoDB is
    in trouble."""
    if report.unread:
        return []
    return [Measurement(Metric.WAITING_LATE, report.waiting_late)]


def of_audit(report: "AuditReport") -> list[Measurement]:
    """Nothing found is a number too: an alarm must be able to tell it from nobody having looked. So if jobs could not
    be read, and nothing was found among the others, nothing is said."""
    if report.unread and not report.missed and not report.duplicated:
        return [Measurement(Metric.AUDITED_FIRES, report.matched)]
    return [
        Measurement(Metric.AUDITED_FIRES, report.matched),
        Measurement(Metric.MISSED_FIRES, report.missed),
        Measurement(Metric.DUPLICATED_FIRES, report.duplicated),
    ]


def of_queues(lengths: Mapping[Priority, int]) -> list[Measurement]:
    return [Measurement(Metric.QUEUE_LENGTH, length, priority) for priority, length in lengths.items()]
