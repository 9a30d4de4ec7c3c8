"""How long the run queues are."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from duetime.job import Priority

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType

# Waiting, in flight, and not to be seen yet: a run planned ahead is a delayed message.
_PARTS: "Final[tuple[QueueAttributeNameType, ...]]" = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


def queue_lengths(client: "SQSClient", urls: Mapping[Priority, str]) -> Mapping[Priority, int]:
    """As SQS estimates them."""
    return {priority: _length(client, url) for priority, url in urls.items()}


def _length(client: "SQSClient", url: str) -> int:
    attributes = client.get_queue_attributes(QueueUrl=url, AttributeNames=list(_PARTS))["Attributes"]
    return sum(int(attributes[part]) for part in _PARTS)
