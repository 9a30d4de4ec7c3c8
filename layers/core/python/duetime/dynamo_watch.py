"""What stands on the watch index: open runs by their deadline, those among them that hold a place, and dead letters."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from duetime.dynamo_items import run_key
from duetime.dynamo_values import END_OF_TIME, Item, to_value
from duetime.instants import parse_instant
from duetime.listing import UnderWay, UnderWayPage
from duetime.run import RunKey
from duetime.status import RunStatus
from duetime.store import LateRuns, WatchedRun
from duetime.watch import open_key

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_INDEX: Final = "watch"


def read_open(
    client: "DynamoDBClient", runs_table: str, slot: int, *, limit: int, after: WatchedRun | None = None
) -> Sequence[WatchedRun]:
    key = open_key(slot)
    answer = client.query(
        TableName=runs_table,
        IndexName=_INDEX,
        KeyConditionExpression="watch_key = :key",
        ExpressionAttributeValues={":key": to_value(key)},
        Limit=limit,
        **_behind(after, key),
    )
    return [_watched(item) for item in answer["Items"]]


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
    key = open_key(slot)
    values = {":slot": to_value(key)}
    wanted: dict[str, Any] = {}
    if owner is not None:
        values[":owner"] = to_value(owner)
        wanted = {"FilterExpression": "#owner = :owner", "ExpressionAttributeNames": {"#owner": "owner"}}
    answer = client.query(
        TableName=runs_table,
        IndexName=_INDEX,
        KeyConditionExpression="watch_key = :slot",
        ExpressionAttributeValues=values,
        Limit=limit,
        **wanted,
        **_behind(after, key),
    )
    last = answer.get("LastEvaluatedKey")
    until = WatchedRun(parse_instant(last["watch_at"]["S"]), _key(last)) if last else None
    return UnderWayPage([_under_way(item) for item in answer["Items"]], answer["ScannedCount"], until)


def read_dead(
    client: "DynamoDBClient", runs_table: str, watch_key: str, *, limit: int, before: WatchedRun | None
) -> Iterable[WatchedRun]:
    """The latest first. Letters of the same millisecond are in any order, so a page cannot begin behind one of another
    slot: it begins at the time, and leaves out what came before."""
    values = {":key": to_value(watch_key), ":at": to_value(before.at if before else END_OF_TIME)}
    pages = client.get_paginator("query").paginate(
        TableName=runs_table,
        IndexName=_INDEX,
        KeyConditionExpression="watch_key = :key AND watch_at <= :at",
        ExpressionAttributeValues=values,
        ScanIndexForward=False,
        PaginationConfig={"PageSize": limit + 1},
    )
    places = (_watched(item) for page in pages for item in page["Items"])
    return islice((place for place in places if before is None or place < before), limit)


def read_late(
    client: "DynamoDBClient", runs_table: str, slot: int, *, due_before: datetime, limit: int
) -> LateRuns:
    answer = client.query(
        TableName=runs_table,
        IndexName=_INDEX,
        KeyConditionExpression="watch_key = :key",
        FilterExpression="#status = :queued AND not_before < :before AND attribute_not_exists(put_off_at)",
        ExpressionAttributeNames={"#status": "status"},
        ExpressionAttributeValues={
            ":key": to_value(open_key(slot)),
            ":queued": to_value(RunStatus.QUEUED),
            ":before": to_value(due_before),
        },
        Limit=limit,
    )
    late = answer["Items"]
    return LateRuns(len(late), [_key(item) for item in late if "late_at" not in item])


def _behind(after: WatchedRun | None, watch_key: str) -> dict[str, Any]:
    if after is None:
        return {}
    position: Item = {"watch_key": to_value(watch_key), "watch_at": to_value(after.at)}
    return {"ExclusiveStartKey": run_key(after.key) | position}


def _watched(item: Any) -> WatchedRun:
    waits = item["status"]["S"] == RunStatus.QUEUED and "put_off_at" not in item
    waits_since = parse_instant(item["not_before"]["S"]) if waits else None
    return WatchedRun(parse_instant(item["watch_at"]["S"]), _key(item), waits_since)


def _under_way(item: Any) -> UnderWay:
    executor = item.get("executor_id")
    at = parse_instant(item["watch_at"]["S"])
    return UnderWay(_key(item), item["owner"]["S"], executor and executor["S"], at)


def _key(item: Any) -> RunKey:
    return RunKey(item["job_id"]["S"], item["run_id"]["S"])
