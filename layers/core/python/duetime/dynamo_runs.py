"""The runs of one job, by their ids, which sort by time."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from duetime.dynamo_items import item_to_run
from duetime.dynamo_values import to_value
from duetime.run import Run
from duetime.status import RunStatus
from duetime.store import ALL_RUNS, MOST_RUNS_READ, RunPage, WhichRuns

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_FILTERED_PAGE: Final = 500
# Every run's id begins with a digit.
_LOWEST: Final = "0"
_HIGHEST: Final = "~"
_IN_RANGE: Final = "job_id = :job_id AND run_id BETWEEN :since AND :until"


def read_latest(
    client: "DynamoDBClient",
    runs_table: str,
    job_id: str,
    *,
    limit: int,
    before: str | None,
    since: str | None,
    which: WhichRuns,
) -> RunPage:
    """The latest first."""
    lowest, highest = since or _LOWEST, before or _HIGHEST
    if lowest > highest:
        # DynamoDB refuses a range that ends before it begins.
        return RunPage([], None)
    # Both ends are included: what is at `before` itself is one more, and left out below.
    most = MOST_RUNS_READ + 1 if which != ALL_RUNS else limit + 2
    found: list[Run] = []
    start: dict[str, Any] = {}
    while True:
        answer = client.query(
            TableName=runs_table,
            KeyConditionExpression=_IN_RANGE,
            **_filtered(which, {":job_id": job_id, ":since": lowest, ":until": highest}),
            ScanIndexForward=False,
            ConsistentRead=True,
            Limit=min(most, max(limit + 2, _FILTERED_PAGE)) if which != ALL_RUNS else most,
            **start,
        )
        found += [item_to_run(item) for item in answer["Items"] if item["run_id"]["S"] != before]
        # One more than asked for tells whether there is another page.
        if len(found) > limit:
            return RunPage(found[:limit], found[limit - 1].run_id)
        most -= answer["ScannedCount"]
        if not (last := answer.get("LastEvaluatedKey")):
            return RunPage(found, None)
        if most <= 0:
            return RunPage(found, last["run_id"]["S"])
        start = {"ExclusiveStartKey": last}


def read_earliest(
    client: "DynamoDBClient",
    runs_table: str,
    job_id: str,
    *,
    since: str,
    until: str,
    at_once: int,
    status: RunStatus | None = None,
) -> Iterator[Run]:
    """The earliest first, read as far as they are taken, so many at a time."""
    if since > until:
        return
    pages = client.get_paginator("query").paginate(
        TableName=runs_table,
        KeyConditionExpression=_IN_RANGE,
        **_filtered(WhichRuns(status), {":job_id": job_id, ":since": since, ":until": until}),
        ConsistentRead=True,
        PaginationConfig={"PageSize": at_once},
    )
    for page in pages:
        yield from map(item_to_run, page["Items"])


def _filtered(which: WhichRuns, values: dict[str, Any]) -> dict[str, Any]:
    clauses = []
    names = {}
    for clause, value in (
        ("#status = :status", which.status),
        ("#due_at >= :due_from", which.due_from),
        ("#due_at < :due_before", which.due_before),
    ):
        if value is not None:
            name, _, placeholder = clause.split()
            names[name] = name.removeprefix("#")
            values = values | {placeholder: value}
            clauses.append(clause)
    request: dict[str, Any] = {
        "ExpressionAttributeValues": {name: to_value(value) for name, value in values.items()}
    }
    if clauses:
        request |= {"FilterExpression": " AND ".join(clauses), "ExpressionAttributeNames": names}
    return request
