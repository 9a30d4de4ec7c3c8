"""Subscriptions, in the table of records."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from duetime.dynamo_values import INSTANT, TEXT, Item, enum, enums, read_fields, to_value, write_fields
from duetime.dynamo_writes import ConditionFailed, put, put_new
from duetime.notify import NoticeEvent, Protocol
from duetime.subscriptions import Subscription

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_log: Final = logging.getLogger(__name__)
_SUBSCRIPTION: Final = {
    "subscription_id": TEXT,
    "owner": TEXT,
    "protocol": enum(Protocol),
    "endpoint": TEXT,
    "events": enums(NoticeEvent),
    "created_at": INSTANT,
    "created_by": TEXT,
    "job_id": TEXT,
    "tag": TEXT,
    "sns_arn": TEXT,
    "request_digest": TEXT,
}


class DynamoSubscriptions:
    def __init__(self, client: "DynamoDBClient", *, records_table: str) -> None:
        self._client = client
        self._table = records_table

    def add(self, subscription: Subscription) -> Subscription | None:
        item = write_fields(subscription, _SUBSCRIPTION)
        item |= _subscription_key(subscription.owner, subscription.subscription_id)
        try:
            put(self._client, put_new(self._table, item, "subject"))
        except ConditionFailed as failure:
            there = failure.items[0]
            assert there is not None
            return _subscription(there)
        return None

    def get(self, owner: str, subscription_id: str) -> Subscription | None:
        answer = self._client.get_item(
            TableName=self._table, Key=_subscription_key(owner, subscription_id), ConsistentRead=True
        )
        return _subscription(answer["Item"]) if "Item" in answer else None

    def of_owner(self, owner: str) -> Sequence[Subscription]:
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression="subject = :subject",
            ExpressionAttributeValues={":subject": to_value(_subject(owner))},
            ConsistentRead=True,
        )
        found = [read for page in pages for item in page["Items"] if (read := _readable(item))]
        return sorted(found, key=lambda each: (each.created_at, each.subscription_id))

    def remove(self, owner: str, subscription_id: str) -> Subscription | None:
        answer = self._client.delete_item(
            TableName=self._table, Key=_subscription_key(owner, subscription_id), ReturnValues="ALL_OLD"
        )
        return _subscription(answer["Attributes"]) if answer.get("Attributes") else None


def _subject(owner: str) -> str:
    return f"subscriptions#{owner}"


def _subscription_key(owner: str, subscription_id: str) -> Item:
    return {"subject": to_value(_subject(owner)), "entry": to_value(subscription_id)}


def _readable(item: Any) -> Subscription | None:
    """One that cannot be read, as a newer version may write them, must not silence its owner's others."""
    try:
        return _subscription(item)
    except (KeyError, TypeError, ValueError):
        _log.exception("a subscription cannot be read: %s %s", item.get("subject"), item.get("entry"))
        return None


def _subscription(item: Any) -> Subscription:
    return Subscription(**read_fields(item, _SUBSCRIPTION))
