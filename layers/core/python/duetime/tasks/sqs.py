"""The `sqs` task: a message is sent to a queue."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from duetime.arns import Arn
from duetime.targets import Reach
from duetime.tasks.aws import call, client
from duetime.tasks.fields import content_of, parse_arn, parse_text, refuse_unknown
from duetime.tasks.interface import AttemptContext


@dataclass(frozen=True, slots=True)
class SqsTask:
    queue: Arn
    message_group_id: str | None = None
    input: Any = None

    outlives_worker: ClassVar[bool] = False

    @classmethod
    def parse(cls, settings: Mapping[str, Any]) -> "SqsTask":
        refuse_unknown(settings, {"queue_arn", "message_group_id", "input"})
        queue = parse_arn(settings, "queue_arn", "sqs")
        return cls(queue, parse_text(settings, "message_group_id", longest=128), settings.get("input"))

    def check(self, reach: Reach) -> None:
        reach.check_arn(self.queue)

    def execute(self, context: AttemptContext, reach: Reach) -> Any:  # noqa: ARG002
        sqs = client("sqs", self.queue.region)
        is_fifo = self.queue.resource.endswith(".fifo")
        group = self.message_group_id or (context.job_id if is_fifo else None)
        answer = call(
            sqs.send_message,
            QueueUrl=f"{sqs.meta.endpoint_url}/{self.queue.account}/{self.queue.resource}",
            MessageBody=context.as_message(content_of(self.input, context.payload)),
            **({"MessageGroupId": group} if group else {}),
            # A retry within five minutes does not reach a FIFO queue's readers twice.
            **({"MessageDeduplicationId": context.idempotency_key} if is_fifo else {}),
        )
        return {"message_id": answer["MessageId"]}
