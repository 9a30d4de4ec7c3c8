"""Underneath all stations: functions and tables."""

from aws_cdk import aws_cloudwatch as cloudwatch

from infra.alarms.functions import QUEUE_READERS
from infra.aws_metrics import function_metric, table_throttles
from infra.dashboard.section import Section, graph
from infra.parts import INDEXES, Parts


def machinery_section(parts: Parts) -> Section:
    dropped = [
        function_metric(
            parts.functions[name], "RecursiveInvocationsDropped", "Sum", label=f"{name}, stopped as a loop"
        )
        for name in QUEUE_READERS
        if name in parts.functions
    ]
    tables = [table_throttles(name, table, INDEXES[name]) for name, table in parts.tables.items()]
    return Section(
        "9. Underneath",
        "Functions and tables. Throttled functions: the account's concurrency is used up. Throttled tables: more at "
        "once, or more on one key, than DynamoDB takes.",
        [
            graph("Function errors", _each(parts, "Errors", "Sum"), unit="per 5 min", width=6),
            graph(
                "Invocations that Lambda refused",
                [*_each(parts, "Throttles", "Sum"), *dropped],
                unit="per 5 min",
                width=6,
            ),
            graph(
                "Functions at work at once",
                _each(parts, "ConcurrentExecutions", "Maximum"),
                unit="invocations",
                width=6,
            ),
            graph("Throttled requests to tables", tables, unit="per 5 min", width=6),
        ],
    )


def _each(parts: Parts, metric: str, statistic: str) -> list[cloudwatch.IMetric]:
    return [
        function_metric(function, metric, statistic, label=name) for name, function in parts.functions.items()
    ]
