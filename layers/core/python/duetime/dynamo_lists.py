"""What can be found without knowing an id, on DynamoDB's indexes."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from duetime.dynamo_items import job_key
from duetime.dynamo_values import END_OF_TIME, Value, to_value
from duetime.dynamo_watch import read_held
from duetime.instants import parse_instant
from duetime.job import Priority
from duetime.listing import Criteria, Listed, ListedPage, Part, UnderWayPage
from duetime.store import WatchedRun

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_BY_OWNER: Final = "by_owner"
_OWNERS: Final = "owners"


class DynamoLists:
    def __init__(
        self, client: "DynamoDBClient", *, jobs_table: str, runs_table: str, records_table: str
    ) -> None:
        self._client = client
        self._jobs = jobs_table
        self._runs = runs_table
        self._records = records_table

    def listed(
        self,
        part: Part,
        criteria: Criteria,
        *,
        limit: int,
        newest: datetime | None = None,
        behind: Listed | None = None,
    ) -> ListedPage:
        start: dict[str, Any] = {}
        if behind:
            start["ExclusiveStartKey"] = job_key(behind.job_id) | {
                "listing": to_value(part.key),
                "created_at": to_value(behind.created_at),
            }
        answer = self._client.query(
            TableName=self._jobs,
            IndexName=_BY_OWNER,
            KeyConditionExpression="listing = :listing AND created_at <= :newest",
            ScanIndexForward=False,
            Limit=limit,
            **_filter(criteria, {":listing": to_value(part.key), ":newest": to_value(newest or END_OF_TIME)}),
            **start,
        )
        found = [Listed(parse_instant(i["created_at"]["S"]), i["job_id"]["S"]) for i in answer["Items"]]
        last = answer.get("LastEvaluatedKey")
        until = Listed(parse_instant(last["created_at"]["S"]), last["job_id"]["S"]) if last else None
        return ListedPage(found, answer["ScannedCount"], until)

    def count_listed(self, part: Part, *, limit: int) -> int:
        pages = self._client.get_paginator("query").paginate(
            TableName=self._jobs,
            IndexName=_BY_OWNER,
            KeyConditionExpression="listing = :listing",
            ExpressionAttributeValues={":listing": to_value(part.key)},
            Select="COUNT",
            PaginationConfig={"PageSize": limit},
        )
        counted = 0
        for page in pages:
            counted += page["Count"]
            if counted >= limit:
                return limit
        return counted

    def under_way(
        self, slot: int, *, limit: int, owner: str | None = None, after: WatchedRun | None = None
    ) -> UnderWayPage:
        return read_held(self._client, self._runs, slot, owner=owner, limit=limit, after=after)

    def know_owner(self, owner: str) -> None:
        self._client.put_item(
            TableName=self._records, Item={"subject": to_value(_OWNERS), "entry": to_value(owner)}
        )

    def owners(self) -> Sequence[str]:
        pages = self._client.get_paginator("query").paginate(
            TableName=self._records,
            KeyConditionExpression="subject = :owners",
            ExpressionAttributeValues={":owners": to_value(_OWNERS)},
        )
        return [item["entry"]["S"] for page in pages for item in page["Items"]]


def _filter(criteria: Criteria, values: dict[str, Value]) -> dict[str, Any]:
    clauses: list[str] = []
    names: dict[str, str] = {}
    for name in ("status", "last_outcome", "schedule_type", "priority"):
        wanted = getattr(criteria, name)
        if wanted is None:
            continue
        names[f"#{name}"] = name
        if wanted is Priority.MEDIUM:
            # The default is not written: see dynamo_items.py.
            clauses.append(f"attribute_not_exists(#{name})")
            continue
        values[f":{name}"] = to_value(wanted)
        clauses.append(f"#{name} = :{name}")
    if criteria.tag is not None:
        names["#tags"], values[":tag"] = "tags", to_value(criteria.tag)
        clauses.append("contains(#tags, :tag)")
    if criteria.name_prefix is not None:
        names["#name"], values[":prefix"] = "name", to_value(criteria.name_prefix)
        clauses.append("begins_with(#name, :prefix)")
    request: dict[str, Any] = {"ExpressionAttributeValues": values}
    if clauses:
        request |= {"FilterExpression": " AND ".join(clauses), "ExpressionAttributeNames": names}
    return request
