"""The runs that hold a place in their job, on the watch index."""

from typing import TYPE_CHECKING, Any

from duetime.dynamo_items import run_key
from duetime.dynamo_values import to_value
from duetime.instants import parse_instant
from duetime.listing import UnderWay, UnderWayPage
from duetime.run import RunKey
from duetime.store import WatchedRun
from duetime.watch import open_key

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def read_held(
    client: "DynamoDBClient",
    runs_table: str,
    slot: int,
    *,
    owner: str | None,
    limit: int,
    after: WatchedRun | None = None,
) -> UnderWayPage:
    """Others' entries are read and left out: an owner has no key of its own, or a patrol could not know all keys."""
    key = to_value(open_key(slot))
    values = {":slot": key}
    request: dict[str, Any] = {}
    if owner is not None:
        values[":owner"] = to_value(owner)
        request = {"FilterExpression": "#owner = :owner", "ExpressionAttributeNames": {"#owner": "owner"}}
    if after:
        position = run_key(after.key) | {"watch_key": key, "watch_at": to_value(after.at)}
        request["ExclusiveStartKey"] = position
    answer = client.query(
        TableName=runs_table,
        IndexName="watch",
        KeyConditionExpression="watch_key = :slot",
        ExpressionAttributeValues=values,
        Limit=limit,
        **request,
    )
    last = answer.get("LastEvaluatedKey")
    until = WatchedRun(parse_instant(last["watch_at"]["S"]), _key(last)) if last else None
    return UnderWayPage([_under_way(item) for item in answer["Items"]], answer["ScannedCount"], until)


def _under_way(item: Any) -> UnderWay:
    executor = item.get("executor_id")
    at = parse_instant(item["watch_at"]["S"])
    return UnderWay(_key(item), item["owner"]["S"], executor and executor["S"], at)


def _key(item: Any) -> RunKey:
    return RunKey(item["job_id"]["S"], item["run_id"]["S"])
