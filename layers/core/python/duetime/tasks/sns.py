"""The `sns` task: a message is published to a topic."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from duetime.arns import Arn
from duetime.targets import Reach
from duetime.tasks.aws import call, client
from duetime.tasks.fields import content_of, parse_arn, parse_text, refuse_unknown
from duetime.tasks.interface import AttemptContext


@dataclass(frozen=True, slots=True)
class SnsTask:
    topic: Arn
    subject: str | None = None
    input: Any = None

    outlives_worker: ClassVar[bool] = False

    @classmethod
    def parse(cls, settings: Mapping[str, Any]) -> "SnsTask":
        refuse_unknown(settings, {"topic_arn", "subject", "input"})
        topic = parse_arn(settings, "topic_arn", "sns")
        return cls(topic, parse_text(settings, "subject", longest=100), settings.get("input"))

    def check(self, reach: Reach) -> None:
        reach.check_arn(self.topic)

    def execute(self, context: AttemptContext, reach: Reach) -> Any:  # noqa: ARG002
        is_fifo = self.topic.resource.endswith(".fifo")
        answer = call(
            client("sns", self.topic.region).publish,
            TopicArn=self.topic.text,
            Message=context.as_message(content_of(self.input, context.payload)),
            MessageAttributes={
                "duetime_job_id": {"DataType": "String", "StringValue": context.job_id},
                "duetime_run_id": {"DataType": "String", "StringValue": context.run_id},
            },
            **({"Subject": self.subject} if self.subject else {}),
            **({"MessageGroupId": context.job_id} if is_fifo else {}),
            **({"MessageDeduplicationId": context.idempotency_key} if is_fifo else {}),
        )
        return {"message_id": answer["MessageId"]}
