from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs

# An index is throttled, and counted, apart from its table.
INDEXES: Mapping[str, Sequence[str]] = {"jobs": ("waiting", "by_owner"), "runs": ("watch",), "records": ()}


@dataclass(frozen=True)
class Parts:
    """What alarms, dashboard and saved queries look at, by the names that docs/operations.md uses. A new function or
    queue is one more entry."""

    environment: str
    functions: Mapping[str, lambda_.Function]
    run_queues: Mapping[str, sqs.Queue]
    # Queues between functions, other than the run queues.
    inner_queues: Mapping[str, sqs.Queue]
    # Where runs end that failed for good, by priority.
    dead_letters: Mapping[str, sqs.Queue]
    # Where things end that Duetime itself could not deal with.
    undelivered: Mapping[str, sqs.Queue]
    tables: Mapping[str, dynamodb.Table]
    api: apigateway.HttpApi
    access_log: logs.ILogGroup

    @property
    def queues(self) -> dict[str, sqs.Queue]:
        return {**self.run_queues, **self.inner_queues}
