"""The dead-letter queues on SQS, as their keeper reads them."""

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from duetime.letters import DeadMessage
from duetime.run import RunKey

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

_RECEIVES: Final = 10
_HIDDEN_SECONDS: Final = 60


class _Receipt(NamedTuple):
    queue_url: str
    handle: str


class SqsDeadLetters:
    def __init__(self, client: "SQSClient", queue_urls: Iterable[str]) -> None:
        self._client = client
        self._queue_urls = list(queue_urls)

    def receive(self) -> Sequence[DeadMessage]:
        return [message for url in self._queue_urls for message in self._receive(url)]

    def _receive(self, queue_url: str) -> list[DeadMessage]:
        found: list[DeadMessage] = []
        for _ in range(_RECEIVES):
            answer = self._client.receive_message(
                QueueUrl=queue_url, MaxNumberOfMessages=10, VisibilityTimeout=_HIDDEN_SECONDS
            )
            messages = answer.get("Messages", [])
            found += [parsed for message in messages if (parsed := _parse(message, queue_url))]
            if not messages:
                break
        return found

    def delete(self, messages: Sequence[DeadMessage]) -> None:
        for message in messages:
            assert isinstance(message.receipt, _Receipt)
            self._client.delete_message(
                QueueUrl=message.receipt.queue_url, ReceiptHandle=message.receipt.handle
            )


def _parse(message: Any, queue_url: str) -> DeadMessage | None:
    """What is neither a letter nor a hint is left for people to look at."""
    try:
        body = json.loads(message["Body"])
        key = RunKey(str(body["job_id"]), str(body["run_id"]))
    except (ValueError, KeyError, TypeError):
        return None
    # A hint has a time and no story.
    return DeadMessage(key, "not_before" in body, _Receipt(queue_url, message["ReceiptHandle"]))
