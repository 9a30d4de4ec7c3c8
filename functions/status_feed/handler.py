"""Counts and measures what the runs' stream says has become of runs, and passes on what somebody wants to hear of."""

from collections.abc import Sequence
from typing import Any

import boto3
from aws_lambda_powertools import Logger
from duetime.clock import SystemClock
from duetime.dynamo_items import item_to_run
from duetime.dynamo_subscriptions import DynamoSubscriptions
from duetime.emf import MetricLog
from duetime.enqueuing import Change
from duetime.interests import Interests, KnownSubscriptions, announce_notices
from duetime.measuring import measure
from duetime.metrics import Measurement
from duetime.notices import notices_for
from duetime.settings import Settings
from duetime.sqs_notices import SqsNotices

PATIENCE_SECONDS = 30

settings = Settings.from_environment()
clock = SystemClock()
metrics = MetricLog(settings.environment)
subscriptions = DynamoSubscriptions(boto3.client("dynamodb"), records_table=settings.records_table)
interests = Interests(KnownSubscriptions(subscriptions, clock))
notices = SqsNotices(boto3.client("sqs"), settings.notices_queue_url)
logger = Logger()


class Unreadable(Exception):
    """A record that cannot be read stands before others."""


@logger.inject_lambda_context
def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ARG001
    records = event["Records"]
    found: list[list[Measurement]] = []
    changes: list[Change] = []
    failed: list[str] = []
    for record in records:
        try:
            change = _change_in(record["dynamodb"])
            found.append(measure(change.was, change.run))
            changes.append(change)
        except Exception:
            # Nothing is known about what is wrong with it, but that it must not stop the others.
            logger.exception("a stream record cannot be read", keys=record.get("dynamodb", {}).get("Keys"))
            failed.append(record["dynamodb"]["SequenceNumber"])
            break
    if failed and record is records[0] and len(records) > 1:
        # Lambda goes on from the failure that is named, which would be the same batch again. An error makes it halve
        # the batch, until the record is alone.
        raise Unreadable(f"the stream record {failed[0]} cannot be read")
    # First: what is told twice has the same id, what is counted twice is wrong.
    stands = len(changes)
    for number in _untold(changes):
        if _is_waited_for(records[number]["dynamodb"]):
            stands = number
            failed = [records[number]["dynamodb"]["SequenceNumber"]]
            break
        logger.error("the notices of a change were given up", run_id=changes[number].run.run_id)
    metrics.emit([each for measured in found[:stands] for each in measured])
    # What comes behind the failure was not counted: it comes again.
    return {"batchItemFailures": [{"itemIdentifier": number} for number in failed]}


def _untold(changes: Sequence[Change]) -> list[int]:
    """Those of which somebody should have heard and the queue does not know, by where they stand."""
    try:
        unsent = {notice.notice_id for notice in announce_notices(changes, interests, notices)}
    except Exception:
        logger.exception("notices could not be announced")
        return [number for number, change in enumerate(changes) if any(notices_for(change))]
    return [
        number
        for number, change in enumerate(changes)
        if any(notice.notice_id in unsent for notice in notices_for(change))
    ]


def _is_waited_for(record: dict[str, Any]) -> bool:
    """Metrics, and the alarms on them, wait for notices only so long: the whole shard waits behind its oldest record,
    and Lambda gives up what has become too old without showing it to anybody."""
    written_at = float(record.get("ApproximateCreationDateTime", 0))
    return clock.now().timestamp() - written_at < PATIENCE_SECONDS


def _change_in(record: dict[str, Any]) -> Change:
    before = record.get("OldImage")
    return Change(item_to_run(record["NewImage"]), item_to_run(before) if before else None)
