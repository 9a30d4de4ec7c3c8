"""From the worker on: running, done, dead, and who was told."""

from aws_cdk import aws_cloudwatch as cloudwatch

from infra.aws_metrics import queue_metric
from infra.dashboard.arrival import spread
from infra.dashboard.section import Section, graph
from infra.environments import PRIORITIES, AlarmSettings
from infra.metrics import FIVE_MINUTES, duetime_metric
from infra.parts import Parts


def outcome_sections(parts: Parts, settings: AlarmSettings) -> list[Section]:
    name = parts.environment
    return [_running(name, settings), _done(name), _dead(parts), _told(name)]


def _running(name: str, settings: AlarmSettings) -> Section:
    by_priority = [
        duetime_metric(name, "Lateness", "p99", label=f"{priority}, 99 % within", priority=priority)
        for priority in PRIORITIES
    ]
    return Section(
        "5. Running",
        "Lateness is the promise: start of the first attempt minus due time, under 2 s. Use near 100 %: raise the "
        "worker's scaling.",
        [
            graph("Lateness", spread(name, "Lateness"), unit="ms", width=6, limit=settings.lateness_p99_ms),
            graph("Lateness by priority", by_priority, unit="ms", width=6, limit=settings.lateness_p99_ms),
            graph("Time an attempt takes", spread(name, "Duration"), unit="ms", width=6),
            graph(
                "Use of the workers",
                [
                    _use(name),
                    duetime_metric(name, "WorkerUtilisation", "Average", label="mean of invocations"),
                ],
                unit="%",
                width=6,
            ),
        ],
    )


def _use(name: str) -> cloudwatch.MathExpression:
    # Of all the seconds there were: the mean of invocations counts a short one as much as a long one.
    return cloudwatch.MathExpression(
        expression="100 * busy / capacity",
        using_metrics={
            "busy": duetime_metric(name, "BusySeconds", "Sum"),
            "capacity": duetime_metric(name, "CapacitySeconds", "Sum"),
        },
        period=FIVE_MINUTES,
        label="of all capacity",
    )


def _done(name: str) -> Section:
    counted = [("RunsStarted", "started"), ("RunsEnded", "ended"), ("Retries", "retries")]
    passed = [("RunsSkipped", "skipped"), ("RunsCancelled", "cancelled")]
    rates = [("SuccessRate", "succeeded"), ("FailureRate", "failed after all retries")]
    return Section(
        "6. Done",
        "Runs that ended. Rates are shares of the runs that ended: 1 is all of them.",
        [
            graph(
                "Runs",
                [duetime_metric(name, metric, "Sum", label=label) for metric, label in counted],
                unit="per 5 min",
                width=6,
            ),
            graph(
                "How they ended",
                [duetime_metric(name, metric, "Average", label=label) for metric, label in rates],
                unit="share",
                width=6,
            ),
            graph("Due time to end", spread(name, "Latency"), unit="ms", width=6),
            graph(
                "Runs that never started",
                [duetime_metric(name, metric, "Sum", label=label) for metric, label in passed],
                unit="per 5 min",
                width=6,
            ),
        ],
    )


def _dead(parts: Parts) -> Section:
    name = parts.environment
    audited = [("MissedFires", "missed"), ("DuplicatedFires", "duplicated"), ("AuditedFires", "matched")]
    visible = "ApproximateNumberOfMessagesVisible"
    return Section(
        "7. Dead",
        "What ended badly: runs that failed for good, messages of Duetime's own that nobody could deal with, and times "
        "that an audit found with no run or with two.",
        [
            graph(
                "Runs that became dead letters",
                [duetime_metric(name, "RunsDeadLettered", "Sum", label="runs")],
                unit="per 5 min",
                width=6,
            ),
            graph(
                "Dead letters",
                [queue_metric(q, visible, "Maximum", label=each) for each, q in parts.dead_letters.items()],
                unit="messages",
                width=6,
            ),
            graph(
                "Messages of Duetime's own that were given up",
                [queue_metric(q, visible, "Maximum", label=each) for each, q in parts.undelivered.items()],
                unit="messages",
                width=6,
            ),
            graph(
                "Times of recurring jobs, as audited",
                [duetime_metric(name, metric, "Sum", label=label) for metric, label in audited],
                unit="per 5 min",
                width=6,
            ),
        ],
    )


def _told(name: str) -> Section:
    notices = [
        ("NoticesSent", "sent"),
        ("NoticesSuppressed", "summarised instead"),
        ("NoticesFailed", "given up"),
    ]
    return Section(
        "8. Told",
        "Notifications to those who subscribed to what becomes of jobs.",
        [
            graph(
                "Notifications",
                [duetime_metric(name, metric, "Sum", label=label) for metric, label in notices],
                unit="per 5 min",
                width=24,
            )
        ],
    )
