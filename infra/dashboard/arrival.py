"""From the request until a run is on its queue: in, waiting, due, queued."""

from aws_cdk import aws_cloudwatch as cloudwatch

from infra.alarms.functions import STREAM_READERS
from infra.aws_metrics import api_metric, function_metric, queue_metric
from infra.dashboard.section import Section, graph
from infra.environments import AlarmSettings
from infra.metrics import duetime_metric
from infra.parts import Parts

STATISTICS = (("p50", "half within"), ("p99", "99 % within"), ("Maximum", "the longest"))


def arrival_sections(parts: Parts, settings: AlarmSettings) -> list[Section]:
    return [_in(parts), _waiting(parts), _due(parts, settings), _queued(parts, settings)]


def spread(environment: str, metric: str) -> list[cloudwatch.IMetric]:
    """How a duration is spread: an average would hide the few that matter."""
    return [duetime_metric(environment, metric, statistic, label=label) for statistic, label in STATISTICS]


def _in(parts: Parts) -> Section:
    latency = [
        api_metric(parts.api, "Latency", statistic, label=label) for statistic, label in STATISTICS[:2]
    ]
    return Section(
        "1. In",
        "Requests to the HTTP API. 4xx is the caller's mistake (or 429: too many at once), 5xx is ours.",
        [
            graph(
                "Requests", [api_metric(parts.api, "Count", "Sum", label="all")], unit="per 5 min", width=8
            ),
            graph(
                "Requests that were refused or failed",
                [api_metric(parts.api, name, "Sum", label=name) for name in ("4xx", "5xx")],
                unit="per 5 min",
                width=8,
            ),
            graph("Time to answer", latency, unit="ms", width=8),
        ],
    )


def _waiting(parts: Parts) -> Section:
    return Section(
        "2. Waiting",
        "Jobs whose time is to come. The watcher, called at least every 15 minutes, sweeps them up 4 minutes ahead and "
        "makes runs of them.",
        [
            graph(
                "Jobs that sweeps planned",
                [duetime_metric(parts.environment, "SweepSize", "Sum", label="jobs")],
                unit="per 5 min",
                width=8,
            ),
            graph("Time a sweep takes", spread(parts.environment, "SweepTime"), unit="ms", width=8),
            graph(
                "Calls of the watcher",
                [function_metric(parts.functions["watcher"], "Invocations", "Sum", label="calls")],
                unit="per 5 min",
                width=8,
            ),
        ],
    )


def _due(parts: Parts, settings: AlarmSettings) -> Section:
    inner = [
        queue_metric(queue, "ApproximateNumberOfMessagesVisible", "Maximum", label=name)
        for name, queue in parts.inner_queues.items()
    ]
    ages = [
        queue_metric(queue, "ApproximateAgeOfOldestMessage", "Maximum", label=name)
        for name, queue in parts.inner_queues.items()
    ]
    return Section(
        "3. Due",
        "Runs whose time has come. Above 0 for long: something on the way to a worker does not move.",
        [
            graph(
                "Runs waiting more than 2 s past their time",
                [
                    duetime_metric(parts.environment, "WaitingLate", "Maximum", label="right now"),
                    duetime_metric(parts.environment, "RunsLate", "Sum", label="became late, per 5 min"),
                ],
                unit="runs",
                width=8,
                limit=settings.waiting_late_runs,
            ),
            graph("Messages on the queues between functions", inner, unit="messages", width=8),
            graph(
                "Oldest message on the queues between functions",
                ages,
                unit="s",
                width=8,
                limit=settings.oldest_inner_message_seconds,
            ),
        ],
    )


def _queued(parts: Parts, settings: AlarmSettings) -> Section:
    lengths = [
        duetime_metric(parts.environment, "QueueLength", "Maximum", label=name, priority=name)
        for name in parts.run_queues
    ]
    ages = [
        queue_metric(queue, "ApproximateAgeOfOldestMessage", "Maximum", label=name)
        for name, queue in parts.run_queues.items()
    ]
    behind = [
        function_metric(parts.functions[name], "IteratorAge", "Maximum", label=name)
        for name in STREAM_READERS
        if name in parts.functions
    ]
    return Section(
        "4. Queued",
        "Hints on the run queues, by priority. Half an hour is well: a hint waits out a retry's delay there, and stays "
        "until its run has ended.",
        [
            graph("Hints on the run queues", lengths, unit="messages", width=8),
            graph("Oldest hint", ages, unit="s", width=8, limit=settings.oldest_hint_seconds),
            graph(
                "How far the readers of the runs' stream are behind",
                behind,
                unit="ms",
                width=8,
                limit=settings.stream_age_ms,
            ),
        ],
    )
