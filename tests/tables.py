"""The tables, for tests without a deployed stack. tests/infra asserts that the stack's have the same keys."""

from typing import Any

from infra.projections import LISTED, WATCHED

JOBS, RUNS, RECORDS = "jobs", "runs", "records"


def create_tables(client: Any, jobs: str = JOBS, runs: str = RUNS, records: str = RECORDS) -> None:
    client.create_table(
        TableName=jobs,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=_attributes(job_id="S", shard="N", next_run_at="S", listing="S", created_at="S"),
        KeySchema=_keys("job_id"),
        GlobalSecondaryIndexes=[
            _index("waiting", "shard", "next_run_at"),
            _index("by_owner", "listing", "created_at", holding=LISTED),
        ],
    )
    client.create_table(
        TableName=runs,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=_attributes(job_id="S", run_id="S", watch_key="S", watch_at="S"),
        KeySchema=_keys("job_id", "run_id"),
        GlobalSecondaryIndexes=[_index("watch", "watch_key", "watch_at", holding=WATCHED)],
    )
    client.create_table(
        TableName=records,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=_attributes(subject="S", entry="S"),
        KeySchema=_keys("subject", "entry"),
    )


def _attributes(**types: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()]


def _keys(*names: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": name, "KeyType": kind} for name, kind in zip(names, ("HASH", "RANGE"), strict=False)
    ]


def _index(name: str, *keys: str, holding: list[str] | None = None) -> dict[str, Any]:
    projection: dict[str, Any] = {"ProjectionType": "KEYS_ONLY"}
    if holding:
        projection = {"ProjectionType": "INCLUDE", "NonKeyAttributes": holding}
    return {"IndexName": name, "KeySchema": _keys(*keys), "Projection": projection}
