"""The queue of notices on SQS."""

from collections.abc import Sequence
from datetime import timedelta
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from duetime.batches import in_batches
from duetime.notice_messages import Message, Publication, write_message
from duetime.notices import Notice
from duetime.watch import spread

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

_BATCH: Final = 10
_LONGEST_DELAY_SECONDS: Final = 900
_GROUPS: Final = 1_000_000_007


class SqsNotices:
    def __init__(self, client: "SQSClient", queue_url: str) -> None:
        self._client = client
        self._queue_url = queue_url

    def send_notices(self, notices: Sequence[Notice]) -> Sequence[Notice]:
        unsent = self.send(notices)
        return [each for each in unsent if isinstance(each, Notice)]

    def send(self, messages: Sequence[Message], delay: timedelta = timedelta()) -> Sequence[Message]:
        seconds = min(ceil(delay.total_seconds()), _LONGEST_DELAY_SECONDS)
        unsent: list[Message] = []
        for batch in in_batches(messages, _BATCH):
            entries: Any = [_entry(message, seconds) | {"Id": str(i)} for i, message in enumerate(batch)]
            answer = self._client.send_message_batch(QueueUrl=self._queue_url, Entries=entries)
            unsent += [batch[int(failure["Id"])] for failure in answer.get("Failed", [])]
        return unsent


def _entry(message: Message, delay_seconds: int) -> dict[str, Any]:
    return {
        "MessageBody": write_message(message),
        "DelaySeconds": delay_seconds,
        # Fair queues: one owner's storm does not delay the others' notices.
        "MessageGroupId": f"owner-{spread(_owner_of(message), _GROUPS)}",
    }


def _owner_of(message: Message) -> str:
    return message.owner if isinstance(message, Notice | Publication) else message.recipient.owner
