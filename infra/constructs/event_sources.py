"""What wakes the enqueuer, the watcher, the worker and the notifier.

These are the bare CloudFormation resources, because CDK's event source classes also grant, and more than is needed
(GetQueueUrl, ListStreams on every stream of the account).
"""

import json

from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.environments import Concurrency, Pollers

HINTED_STATUSES = ["QUEUED", "RETRYING", "FAILED"]

_Mapping = lambda_.CfnEventSourceMapping


class RunStreamSource(_Mapping):
    """Each write that leaves a run in a status which somebody must be told of."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        function: lambda_.Function,
        stream_arn: str,
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
            filter_criteria=_status_is(HINTED_STATUSES),
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


def _status_is(statuses: list[str]) -> _Mapping.FilterCriteriaProperty:
    pattern = json.dumps({"dynamodb": {"NewImage": {"status": {"S": statuses}}}})
    return _Mapping.FilterCriteriaProperty(filters=[_Mapping.FilterProperty(pattern=pattern)])


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
