"""Counts and measures what the runs' stream says has become of runs."""

from typing import Any

from aws_lambda_powertools import Logger
from duetime.dynamo_items import item_to_run
from duetime.emf import MetricLog
from duetime.measuring import measure
from duetime.metrics import Measurement
from duetime.settings import Settings

settings = Settings.from_environment()
metrics = MetricLog(settings.environment)
logger = Logger()


class Unreadable(Exception):
    """A record that cannot be read stands before others."""


@logger.inject_lambda_context
def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ARG001
    records = event["Records"]
    found: list[Measurement] = []
    failed: list[str] = []
    for record in records:
        try:
            found += _measured(record["dynamodb"])
        except Exception:
            # Nothing is known about what is wrong with it, but that it must not stop the others.
            logger.exception("a stream record cannot be read", keys=record.get("dynamodb", {}).get("Keys"))
            failed.append(record["dynamodb"]["SequenceNumber"])
            break
    if failed and record is records[0] and len(records) > 1:
        # Lambda goes on from the failure that is named, which would be the same batch again. An error makes it halve
        # the batch, until the record is alone.
        raise Unreadable(f"the stream record {failed[0]} cannot be read")
    metrics.emit(found)
    # What comes behind the failure was not counted: it comes again.
    return {"batchItemFailures": [{"itemIdentifier": number} for number in failed]}


def _measured(record: dict[str, Any]) -> list[Measurement]:
    before = record.get("OldImage")
    return measure(item_to_run(before) if before else None, item_to_run(record["NewImage"]))
