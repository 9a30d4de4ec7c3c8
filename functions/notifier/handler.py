"""Tells people and systems what they asked to hear of."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import boto3
from aws_lambda_powertools import Logger
from botocore.config import Config
from botocore.exceptions import ClientError
from duetime.clock import SystemClock
from duetime.delivering import MOST_TRIES, Deliverer, pause_before
from duetime.dynamo_store import DynamoStore
from duetime.dynamo_storms import DynamoStorms
from duetime.dynamo_subscriptions import DynamoSubscriptions
from duetime.emf import MetricLog
from duetime.errors import PermanentFailure, TaskError
from duetime.interests import KnownSubscriptions
from duetime.metrics import Metric
from duetime.notice_messages import (
    Delivery,
    Message,
    NoticeForOne,
    Publication,
    RecipientRef,
    SummaryDue,
    read_message,
)
from duetime.notices import Notice
from duetime.notify import NoticeEvent
from duetime.notifying import Notifier
from duetime.settings import Settings
from duetime.signing import key_in_secrets_manager
from duetime.sns_topics import SnsTopics
from duetime.sqs_notices import SqsNotices
from duetime.tallying import Tally

# Whoever does not answer holds up nobody else.
THREADS = 10
# For the answer: what is not done by then comes back, instead of everything.
RESERVED_MS = 10_000

settings = Settings.from_environment()
clock = SystemClock()
metrics = MetricLog(settings.environment)
tally = Tally()
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
    tally.count,
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
def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
    # Threads of its own: one that hangs (a name that is looked up cannot be hurried) is lost to this invocation only.
    threads = ThreadPoolExecutor(max_workers=THREADS)
    works = [(work, threads.submit(_attempt, work)) for work in _works(event["Records"])]
    seconds = max(0, context.get_remaining_time_in_millis() - RESERVED_MS) / 1000
    done, _ = wait([future for _, future in works], timeout=seconds)
    threads.shutdown(wait=False, cancel_futures=True)
    unfinished = [
        record for work, future in works for record in (future.result() if future in done else _late(work))
    ]
    metrics.emit(tally.take())
    return {"batchItemFailures": [{"itemIdentifier": record["messageId"]} for record in unfinished]}


def _works(records: Sequence[Record]) -> list[Work]:
    """What befalls one recipient, or one owner's notices, befalls only those. What waits for somebody else's server
    comes last."""
    news: dict[str, list[tuple[Record, Notice]]] = defaultdict(list)
    for_one: dict[tuple[RecipientRef, NoticeEvent], list[tuple[Record, Notice]]] = defaultdict(list)
    works: list[Work] = []
    deliveries: list[Work] = []
    for record in records:
        match _read(record):
            case Notice() as notice:
                news[notice.owner].append((record, notice))
            case NoticeForOne(recipient, notice):
                for_one[recipient, notice.event].append((record, notice))
            case Delivery() as delivery:
                deliveries.append(Work([record], partial(_deliver, delivery, _tries(record))))
            case Publication() as publication:
                works.append(Work([record], partial(_publish, publication)))
            case SummaryDue() as due:
                works.append(Work([record], partial(notifier.sum_up, due)))
            case None:
                works.append(Work([record], partial(read_message, record["body"])))
    for owned in news.values():
        told, notices = zip(*owned, strict=True)
        works.append(Work(told, partial(notifier.tell, notices)))
    for (recipient, kind), owned in for_one.items():
        told, notices = zip(*owned, strict=True)
        works.append(Work(told, partial(notifier.tell_one, recipient, kind, notices)))
    return works + deliveries


def _read(record: Record) -> Message | None:
    try:
        return read_message(record["body"])
    except (ValueError, KeyError, TypeError):
        return None


def _deliver(delivery: Delivery, tries: int) -> None:
    """A recipient who cannot be told is the owner's affair: only what Duetime itself fails at becomes a dead letter."""
    try:
        is_wanted = deliverer.deliver(delivery)
    except TaskError as error:
        if tries < MOST_TRIES and not isinstance(error, PermanentFailure):
            raise
        _give_up(delivery.recipient.key, delivery.told.message_id, error)
        return
    if is_wanted:
        tally.count(Metric.NOTICES_SENT)
    else:
        logger.info("nobody wants this any more", recipient=delivery.recipient.key)


def _publish(publication: Publication) -> None:
    try:
        notifier.publish(publication)
    except PermanentFailure as error:
        _give_up(f"topic of {publication.owner}", publication.wording.message_id, error)


def _give_up(recipient: str, message_id: str, error: TaskError) -> None:
    logger.warning("a notice was given up", recipient=recipient, notice=message_id, reason=str(error))
    tally.count(Metric.NOTICES_FAILED)


def _tries(record: Record) -> int:
    return int(record["attributes"]["ApproximateReceiveCount"])


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


def _late(work: Work) -> Sequence[Record]:
    logger.warning("there was no time left", message_ids=[record["messageId"] for record in work.records])
    return work.records


def _put_off(record: Record) -> None:
    pause = pause_before(_tries(record))
    # A courtesy: without it the message comes back when its visibility timeout is over.
    with suppress(ClientError):
        sqs.change_message_visibility(
            QueueUrl=settings.notices_queue_url,
            ReceiptHandle=record["receiptHandle"],
            VisibilityTimeout=int(pause.total_seconds()),
        )
