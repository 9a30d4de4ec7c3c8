"""What AWS counts about the parts of the stack, by the names that AWS gave it."""

from collections.abc import Iterable, Mapping

from aws_cdk import Duration
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs

from infra.metrics import FIVE_MINUTES


def function_metric(
    function: lambda_.Function,
    name: str,
    statistic: str,
    *,
    period: Duration = FIVE_MINUTES,
    label: str | None = None,
) -> cloudwatch.Metric:
    return function.metric(name, statistic=statistic, period=period, label=label)


def queue_metric(
    queue: sqs.Queue, name: str, statistic: str, *, label: str | None = None
) -> cloudwatch.Metric:
    return queue.metric(name, statistic=statistic, period=FIVE_MINUTES, label=label)


def api_metric(
    api: apigateway.HttpApi, name: str, statistic: str, *, label: str | None = None
) -> cloudwatch.Metric:
    return api.metric(name, statistic=statistic, period=FIVE_MINUTES, label=label)


def table_throttles(name: str, table: dynamodb.Table, indexes: Iterable[str]) -> cloudwatch.MathExpression:
    """Of the table and its indexes, each of which is throttled, and counted, on its own."""
    places: list[dict[str, str]] = [{}, *({"GlobalSecondaryIndexName": index} for index in indexes)]
    counted = [
        cloudwatch.Metric(
            namespace="AWS/DynamoDB",
            metric_name=f"{kind}ThrottleEvents",
            dimensions_map={"TableName": table.table_name, **place},
            statistic="Sum",
        )
        for place in places
        for kind in ("Read", "Write")
    ]
    return total({f"{name}_{number}": metric for number, metric in enumerate(counted)}, label=name)


def total(metrics: Mapping[str, cloudwatch.IMetric], label: str | None = None) -> cloudwatch.MathExpression:
    # Metrics such as these have no point where nothing happened, and a plain sum has none where one of them has none.
    filled = ", ".join(f"FILL({name}, 0)" for name in metrics)
    return cloudwatch.MathExpression(
        expression=f"SUM([{filled}])", using_metrics=dict(metrics), period=FIVE_MINUTES, label=label
    )
