"""What lies in queues: too long, or where nobody takes it away."""

from collections.abc import Iterator

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sqs as sqs

from infra.alarms.rule import Rule
from infra.aws_metrics import queue_metric
from infra.environments import AlarmSettings
from infra.parts import Parts

# SQS stops counting for a queue that nobody has touched for six hours, whatever lies in it.
UNTIL_SOMEBODY_LOOKED = cloudwatch.TreatMissingData.IGNORE
# An empty queue has no oldest message.
EMPTY_IS_WELL = cloudwatch.TreatMissingData.NOT_BREACHING


def queue_rules(parts: Parts, settings: AlarmSettings) -> Iterator[Rule]:
    for name, queue in parts.dead_letters.items():
        what = f"runs of priority {name} have failed for good"
        yield _present("dead-letters", name, queue, what, settings.dead_letters)
    for name, queue in parts.undelivered.items():
        what = f"messages of Duetime's own ({name}) could not be dealt with"
        yield _present("undelivered", name, queue, what, settings.undelivered_messages)
    for name, queue in parts.run_queues.items():
        yield _too_old(name, queue, settings.oldest_hint_seconds)
    for name, queue in parts.inner_queues.items():
        yield _too_old(name, queue, settings.oldest_inner_message_seconds)


def _present(entry: str, name: str, queue: sqs.Queue, what: str, most: int) -> Rule:
    return Rule(
        name=f"{entry}-{name}",
        entry=entry,
        means=f"More than {most} {what}.",
        metric=queue_metric(queue, "ApproximateNumberOfMessagesVisible", "Maximum"),
        threshold=most,
        missing=UNTIL_SOMEBODY_LOOKED,
    )


def _too_old(name: str, queue: sqs.Queue, seconds: int) -> Rule:
    return Rule(
        name=f"old-messages-{name}",
        entry="old-messages",
        means=f"A message has been on the queue {name} for over {seconds} seconds.",
        metric=queue_metric(queue, "ApproximateAgeOfOldestMessage", "Maximum"),
        threshold=seconds,
        missing=EMPTY_IS_WELL,
    )
