"""The due queue on SQS."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from duetime.batches import in_batches
from duetime.due_messages import Delayed

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

_BATCH: Final = 10


class SqsDueQueue:
    def __init__(self, client: "SQSClient", queue_url: str) -> None:
        self._client = client
        self._queue_url = queue_url

    def send(self, messages: Sequence[Delayed]) -> None:
        for batch in in_batches(messages, _BATCH):
            answer = self._client.send_message_batch(
                QueueUrl=self._queue_url,
                Entries=[
                    {
                        "Id": str(position),
                        "MessageBody": json.dumps(delayed.message.to_body()),
                        "DelaySeconds": delayed.delay_seconds,
                    }
                    for position, delayed in enumerate(batch)
                ],
            )
            if failed := answer.get("Failed"):
                raise RuntimeError(
                    f"the due queue refused {len(failed)} messages: {failed[0].get('Message')}"
                )
