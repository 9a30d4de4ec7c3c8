"""The windows of storms, in the table of records."""

from typing import TYPE_CHECKING, Any, Final

from duetime.dynamo_values import (
    FLAG,
    INSTANT,
    JSON,
    NUMBER,
    TEXT,
    TEXTS,
    Item,
    read_fields,
    to_value,
    write_fields,
)
from duetime.dynamo_writes import ConditionFailed, put
from duetime.instants import format_instant
from duetime.storms import KEPT_FOR, Window, WindowKey

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_WINDOW: Final = {
    "told": TEXTS,
    "held": NUMBER,
    "jobs": JSON,
    "more_jobs": FLAG,
    "first_at": INSTANT,
    "last_at": INSTANT,
    "last_error": TEXT,
    "claimed_by": TEXT,
    "version": NUMBER,
}


class DynamoStorms:
    def __init__(self, client: "DynamoDBClient", *, records_table: str) -> None:
        self._client = client
        self._table = records_table

    def window(self, key: WindowKey) -> Window:
        answer = self._client.get_item(TableName=self._table, Key=_window_key(key), ConsistentRead=True)
        item: Any = answer.get("Item", {})
        return Window(key, **read_fields(item, _WINDOW))

    def exchange(self, seen: Window, after: Window) -> bool:
        written = write_fields(after, _WINDOW) | {"version": to_value(seen.version + 1)}
        expires_at = int((after.key.ends_at + KEPT_FOR).timestamp())
        item = _window_key(after.key) | written | {"expires_at": to_value(expires_at)}
        try:
            put(self._client, {"TableName": self._table, "Item": item, **_if_still(seen.version)})
        except ConditionFailed:
            return False
        return True


def _if_still(version: int) -> dict[str, Any]:
    names = {"#version": "version"}
    if version == 0:
        return {
            "ConditionExpression": "attribute_not_exists(#version)",
            "ExpressionAttributeNames": names,
        }
    return {
        "ConditionExpression": "#version = :seen",
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": {":seen": to_value(version)},
    }


def _window_key(key: WindowKey) -> Item:
    entry = f"{key.event}#{format_instant(key.starts_at)}"
    return {"subject": to_value(f"storm#{key.recipient}"), "entry": to_value(entry)}
