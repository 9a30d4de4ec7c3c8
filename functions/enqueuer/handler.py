"""Tells the queues what the runs' stream says: a hint for a run that waits, a dead letter for one that failed."""

from typing import Any

import boto3
from aws_lambda_powertools import Logger
from duetime.clock import SystemClock
from duetime.dynamo_items import item_to_run
from duetime.dynamo_store import DynamoStore
from duetime.enqueuing import Announcer, Change
from duetime.patrols import Patrols
from duetime.settings import Settings
from duetime.sqs_due_queue import SqsDueQueue
from duetime.sqs_run_queues import SqsRunQueues

settings = Settings.from_environment()
sqs = boto3.client("sqs")
announcer = Announcer(
    # It marks runs as dead-lettered and never touches a job.
    DynamoStore(boto3.client("dynamodb"), jobs_table="", runs_table=settings.runs_table),
    SqsRunQueues(
        sqs,
        run_queue_urls=settings.run_queue_urls,
        dead_letter_queue_urls=settings.dead_letter_queue_urls,
        lead=settings.hint_lead,
    ),
    Patrols(SqsDueQueue(sqs, settings.due_queue_url)),
    SystemClock(),
)
logger = Logger()


@logger.inject_lambda_context
def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ARG001
    records = event["Records"]
    changes = [_change_in(record["dynamodb"]) for record in records]
    untold = announcer.announce(changes)
    if not untold:
        return {"batchItemFailures": []}
    for run in (change.run for change in changes if change.run.key in untold):
        logger.warning(
            "a run could not be announced", job_id=run.job_id, run_id=run.run_id, attempt=run.attempt
        )
    # Lambda starts again from the first failure named; what comes after it is told again, which does no harm.
    first = next(i for i, change in enumerate(changes) if change.run.key in untold)
    return {"batchItemFailures": [{"itemIdentifier": records[first]["dynamodb"]["SequenceNumber"]}]}


def _change_in(record: dict[str, Any]) -> Change:
    before = record.get("OldImage")
    return Change(item_to_run(record["NewImage"]), item_to_run(before) if before else None)
