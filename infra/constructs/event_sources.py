"""What wakes the functions that no caller wakes.

These are the bare CloudFormation resources, because CDK's event source classes also grant, and more than is needed
(GetQueueUrl, ListStreams on every stream of the account).
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.environments import Concurrency, Pollers

Patterns = Sequence[Mapping[str, Any]]

# Each write that leaves a run in a status which the queues must be told of.
HINTED: Patterns = [{"NewImage": {"status": {"S": ["QUEUED", "RETRYING", "FAILED"]}}}]
# Each write that can be an attempt's end or a run's, a first start, or a mark that it is late. Not the heartbeats of
# what is RUNNING, nor planning: together more than all the others.
COUNTED: Patterns = [
    {
        "NewImage": {
            "status": {"S": ["RETRYING", "SUCCEEDED", "FAILED", "DEAD_LETTERED", "CANCELLED", "SKIPPED"]}
        }
    },
    {"NewImage": {"status": {"S": ["RUNNING"]}}, "OldImage": {"status": {"S": ["QUEUED"]}}},
    {"NewImage": {"status": {"S": ["QUEUED"]}, "late_at": {"S": [{"exists": True}]}}},
]

_Mapping = lambda_.CfnEventSourceMapping


class RunStreamSource(_Mapping):
    """Each write to the table of runs that one of the patterns matches."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        function: lambda_.Function,
        stream_arn: str,
        patterns: Patterns,
        parallelization: int,
        failures: sqs.Queue,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            function_name=function.function_name,
            event_source_arn=stream_arn,
            # Not LATEST: it would miss what is written between the table's creation and the mapping's.
            starting_position="TRIM_HORIZON",
            filter_criteria=_filters(patterns),
            batch_size=100,
            maximum_batching_window_in_seconds=0,
            parallelization_factor=parallelization,
            function_response_types=["ReportBatchItemFailures"],
            bisect_batch_on_function_error=True,
            # Bounded, since a whole shard waits behind its oldest record.
            maximum_retry_attempts=10,
            maximum_record_age_in_seconds=900,
            destination_config=_Mapping.DestinationConfigProperty(
                on_failure=_Mapping.OnFailureProperty(destination=failures.queue_arn)
            ),
        )


class DueQueueSource(_Mapping):
    """Reasons to look. One at a time, so that a large shard has a watcher to itself."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        function: lambda_.Function,
        queue: sqs.Queue,
        max_concurrency: int,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            function_name=function.function_name,
            event_source_arn=queue.queue_arn,
            batch_size=1,
            scaling_config=_Mapping.ScalingConfigProperty(maximum_concurrency=max_concurrency),
        )


class RunQueueSource(_Mapping):
    """The hints of one priority."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        function: lambda_.Function,
        queue: sqs.Queue,
        scaling: Concurrency | Pollers,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            function_name=function.function_name,
            event_source_arn=queue.queue_arn,
            # More than 10 would force a batching window of at least a second.
            batch_size=10,
            maximum_batching_window_in_seconds=0,
            function_response_types=["ReportBatchItemFailures"],
            scaling_config=_concurrency(scaling),
            provisioned_poller_config=_pollers(scaling),
        )


class NoticesSource(_Mapping):
    """News, what is to be delivered, and what is to be summed up. By the batch: a storm's notices are then counted
    with one write, and a notice has a second's time."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        function: lambda_.Function,
        queue: sqs.Queue,
        max_concurrency: int,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            function_name=function.function_name,
            event_source_arn=queue.queue_arn,
            batch_size=50,
            maximum_batching_window_in_seconds=1,
            function_response_types=["ReportBatchItemFailures"],
            scaling_config=_Mapping.ScalingConfigProperty(maximum_concurrency=max_concurrency),
        )


def _filters(patterns: Patterns) -> _Mapping.FilterCriteriaProperty:
    texts = [json.dumps({"dynamodb": pattern}) for pattern in patterns]
    return _Mapping.FilterCriteriaProperty(filters=[_Mapping.FilterProperty(pattern=text) for text in texts])


def _concurrency(scaling: Concurrency | Pollers) -> _Mapping.ScalingConfigProperty | None:
    if not isinstance(scaling, Concurrency):
        return None
    return _Mapping.ScalingConfigProperty(maximum_concurrency=scaling.max_concurrency)


def _pollers(scaling: Concurrency | Pollers) -> _Mapping.ProvisionedPollerConfigProperty | None:
    if not isinstance(scaling, Pollers):
        return None
    return _Mapping.ProvisionedPollerConfigProperty(
        minimum_pollers=scaling.min_pollers, maximum_pollers=scaling.max_pollers
    )
