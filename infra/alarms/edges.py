"""What callers and tables see: failing answers, and throttled requests."""

from collections.abc import Iterator

from aws_cdk import aws_cloudwatch as cloudwatch

from infra.alarms.rule import Rule
from infra.aws_metrics import api_metric, table_throttles
from infra.environments import AlarmSettings
from infra.parts import INDEXES, Parts

# Neither has a point where there was nothing to count.
NONE_IS_WELL = cloudwatch.TreatMissingData.NOT_BREACHING


def edge_rules(parts: Parts, settings: AlarmSettings) -> Iterator[Rule]:
    yield Rule(
        name="api-5xx",
        entry="api-5xx",
        means=f"The API answered more than {settings.api_5xx} requests in 5 minutes with a 5xx.",
        metric=api_metric(parts.api, "5xx", "Sum"),
        threshold=settings.api_5xx,
        missing=NONE_IS_WELL,
    )
    for name, table in parts.tables.items():
        yield Rule(
            name=f"throttled-table-{name}",
            entry="throttled-table",
            means=f"DynamoDB throttled the table {name} or an index of it more than {settings.throttles} times in "
            "5 minutes.",
            # Filled with zeros, because alarms on DynamoDB's own metrics ignore missing data whatever one asks for,
            # and a throttling that is over has no data: the alarm would ring for ever.
            metric=table_throttles(name, table, INDEXES[name]),
            threshold=settings.throttles,
            missing=NONE_IS_WELL,
        )
