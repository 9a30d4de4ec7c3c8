"""Every metric that Duetime itself emits, once: alarms and dashboard take theirs from here, and docs/operations.md is
checked against it. What AWS counts (queues, functions, tables, the API) is in infra/aws_metrics.py."""

from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

NAMESPACE = "Duetime"
FIVE_MINUTES = Duration.minutes(5)

PRIORITY = "priority"
TASK_TYPE = "task_type"


@dataclass(frozen=True)
class Emitted:
    """`split_by` says which second dimension there is besides `environment`; never the job or its owner."""

    unit: str
    emitted_by: str
    split_by: tuple[str, ...] = ()
    # Whether there is a total besides: with the dimension `environment` alone.
    has_total: bool = True


_RUN = (PRIORITY, TASK_TYPE)

METRICS = {
    "RunsStarted": Emitted("Count", "status_feed", _RUN),
    "RunsEnded": Emitted("Count", "status_feed", _RUN),
    "SuccessRate": Emitted("None", "status_feed", _RUN),
    "FailureRate": Emitted("None", "status_feed", _RUN),
    "Lateness": Emitted("Milliseconds", "status_feed", _RUN),
    "Latency": Emitted("Milliseconds", "status_feed", _RUN),
    "Duration": Emitted("Milliseconds", "status_feed", _RUN),
    "Retries": Emitted("Count", "status_feed", _RUN),
    "RunsDeadLettered": Emitted("Count", "status_feed", _RUN),
    "RunsSkipped": Emitted("Count", "status_feed"),
    "RunsCancelled": Emitted("Count", "status_feed"),
    "RunsLate": Emitted("Count", "status_feed", (PRIORITY,)),
    "WaitingLate": Emitted("Count", "watcher"),
    "MissedFires": Emitted("Count", "watcher"),
    "DuplicatedFires": Emitted("Count", "watcher"),
    "AuditedFires": Emitted("Count", "watcher"),
    "QueueLength": Emitted("Count", "watcher", (PRIORITY,), has_total=False),
    "SweepTime": Emitted("Milliseconds", "watcher"),
    "SweepSize": Emitted("Count", "watcher"),
    "WorkerUtilisation": Emitted("Percent", "worker"),
    "BusySeconds": Emitted("Seconds", "worker"),
    "CapacitySeconds": Emitted("Seconds", "worker"),
    "NoticesSent": Emitted("Count", "notifier"),
    "NoticesSuppressed": Emitted("Count", "notifier"),
    "NoticesFailed": Emitted("Count", "notifier"),
}


def duetime_metric(
    environment: str,
    name: str,
    statistic: str,
    *,
    period: Duration = FIVE_MINUTES,
    label: str | None = None,
    priority: str | None = None,
) -> cloudwatch.Metric:
    """Refuses what nobody emits: CloudWatch would show an empty graph, and an alarm that never rings."""
    emitted = METRICS[name]
    if priority is not None and PRIORITY not in emitted.split_by:
        raise ValueError(f"{name} is not emitted by priority")
    if priority is None and not emitted.has_total:
        raise ValueError(f"{name} is emitted by {emitted.split_by} only")
    split = {} if priority is None else {PRIORITY: priority}
    return cloudwatch.Metric(
        namespace=NAMESPACE,
        metric_name=name,
        dimensions_map={"environment": environment, **split},
        statistic=statistic,
        period=period,
        label=label,
    )
