"""Tells people and systems what they asked to hear of."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import boto3
from aws_lambda_powertools import Logger
from botocore.config import Config
from botocore.exceptions import ClientError
from duetime.clock import SystemClock
from duetime.delivering import Deliverer, pause_before
from duetime.dynamo_store import DynamoStore
from duetime.dynamo_storms import DynamoStorms
from duetime.dynamo_subscriptions import DynamoSubscriptions
from duetime.interests import KnownSubscriptions
from duetime.notice_messages import Delivery, Message, SummaryDue, read_message
from duetime.notices import Notice
from duetime.notifying import Notifier
from duetime.settings import Settings
from duetime.signing import key_in_secrets_manager
from duetime.sns_topics import SnsTopics
from duetime.sqs_notices import SqsNotices

# Whoever does not answer holds up nobody else.
THREADS = 10

settings = Settings.from_environment()
clock = SystemClock()
threads = ThreadPoolExecutor(max_workers=THREADS)
dynamodb = boto3.client("dynamodb", config=Config(max_pool_connections=THREADS))
sqs = boto3.client("sqs")
# It reads jobs and never a run.
store = DynamoStore(dynamodb, jobs_table=settings.jobs_table, runs_table="")
subscriptions = DynamoSubscriptions(dynamodb, records_table=settings.records_table)
notifier = Notifier(
    store,
    KnownSubscriptions(subscriptions, clock),
    subscriptions,
    DynamoStorms(dynamodb, records_table=settings.records_table),
    SnsTopics(lambda: boto3.client("sns"), settings.notice_topics),
    SqsNotices(sqs, settings.notices_queue_url),
    clock,
)
deliverer = Deliverer(
    store,
    subscriptions,
    settings.allowed_targets,
    key_in_secrets_manager(lambda: boto3.client("secretsmanager"), settings.signing_secret_arn),
    clock,
)
logger = Logger()

Record = dict[str, Any]


class Work(NamedTuple):
    """Some messages, and what is to be done about them."""

    records: Sequence[Record]
    do: Callable[[], object]


@logger.inject_lambda_context
def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ARG001
    unfinished = [record for records in threads.map(_attempt, _works(event["Records"])) for record in records]
    return {"batchItemFailures": [{"itemIdentifier": record["messageId"]} for record in unfinished]}


def _works(records: Sequence[Record]) -> list[Work]:
    """What befalls one recipient, or one owner's notices, befalls only those."""
    news: dict[str, list[tuple[Record, Notice]]] = defaultdict(list)
    works: list[Work] = []
    for record in records:
        match _read(record):
            case Notice() as notice:
                news[notice.owner].append((record, notice))
            case Delivery() as delivery:
                works.append(Work([record], partial(_deliver, delivery)))
            case SummaryDue() as due:
                works.append(Work([record], partial(notifier.sum_up, due, record["messageId"])))
            case None:
                works.append(Work([record], partial(read_message, record["body"])))
    for owned in news.values():
        told, notices = zip(*owned, strict=True)
        works.append(Work(told, partial(notifier.tell, notices)))
    return works


def _read(record: Record) -> Message | None:
    try:
        return read_message(record["body"])
    except (ValueError, KeyError, TypeError):
        return None


def _deliver(delivery: Delivery) -> None:
    if not deliverer.deliver(delivery):
        logger.info("nobody wants this any more", recipient=delivery.recipient.key)


def _attempt(work: Work) -> Sequence[Record]:
    """The messages that must come back."""
    try:
        work.do()
    except Exception as error:
        # Whatever is wrong with one message must not take the others with it.
        for record in work.records:
            logger.warning(
                "a message about a notice will come back",
                message_id=record["messageId"],
                reason=f"{type(error).__name__}: {error}",
            )
            _put_off(record)
        return work.records
    return ()


def _put_off(record: Record) -> None:
    pause = pause_before(int(record["attributes"]["ApproximateReceiveCount"]))
    # A courtesy: without it the message comes back when its visibility timeout is over.
    with suppress(ClientError):
        sqs.change_message_visibility(
            QueueUrl=settings.notices_queue_url,
            ReceiptHandle=record["receiptHandle"],
            VisibilityTimeout=int(pause.total_seconds()),
        )
