"""Audit entries in the table of records."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from duetime.audit import Event, EventPage, Source
from duetime.dynamo_values import INSTANT, JSON, TEXT, Item, read_fields, record, to_value, write_fields

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_SOURCE = {"address": TEXT, "agent": TEXT, "request_id": TEXT, "trace_id": TEXT}
_EVENT = {
    "job_id": TEXT,
    "at": INSTANT,
    "action": TEXT,
    "by": TEXT,
    "source": record(_SOURCE, Source),
    "run_id": TEXT,
    "changes": JSON,
    "detail": TEXT,
    "token": TEXT,
}


def event_to_item(event: Event, kept_for: timedelta | None) -> Item:
    item = write_fields(event, _EVENT)
    item |= {"subject": to_value(subject_of(event.job_id)), "entry": to_value(event.entry)}
    if kept_for:
        item["expires_at"] = to_value(int((event.at + kept_for).timestamp()))
    return item


def subject_of(job_id: str) -> str:
    return f"events#{job_id}"


def read_events(
    client: "DynamoDBClient", table: str, job_id: str, *, limit: int, before: str | None
) -> EventPage:
    bounds = {":subject": subject_of(job_id)} | ({":before": before} if before else {})
    answer = client.query(
        TableName=table,
        KeyConditionExpression="subject = :subject" + (" AND entry < :before" if before else ""),
        ExpressionAttributeValues={name: to_value(value) for name, value in bounds.items()},
        ScanIndexForward=False,
        ConsistentRead=True,
        Limit=limit + 1,
    )
    events = [_event(item) for item in answer["Items"]]
    page = events[:limit]
    more = len(events) > limit or "LastEvaluatedKey" in answer
    return EventPage(page, page[-1].entry if more else None)


def _event(item: Any) -> Event:
    return Event(**read_fields(item, _EVENT))
