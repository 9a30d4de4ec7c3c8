"""A sweep on DynamoDB itself, stopped at every request that it sends."""

import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from duetime.clock import ManualClock
from duetime.dynamo_store import DynamoStore
from duetime.job import Job
from duetime.sweeping import Sweeper
from duetime.tasks import AttemptContext

from tests.factories import a_cron_job, a_job, a_spec, a_timing
from tests.inline import DueMessages, Inline, Minutes
from tests.tables import create_tables
from tests.workers import a_worker

NOON = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)


class Stopped(BaseException):
    """The process is gone: no handler of ours may catch this."""


@pytest.fixture
def tables(dynamo_store: DynamoStore) -> Iterator[Callable[[], DynamoStore]]:
    """Stores on tables of their own, so that what one test left waiting is not swept by another."""
    client = boto3.client(
        "dynamodb",
        endpoint_url=dynamo_store._client.meta.endpoint_url,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )

    def make() -> DynamoStore:
        prefix = uuid.uuid4().hex[:8]
        jobs, runs = f"{prefix}-jobs", f"{prefix}-runs"
        create_tables(client, jobs, runs, f"{prefix}-records")
        return DynamoStore(client, jobs_table=jobs, runs_table=runs)

    yield make
    client.close()


class Interruption:
    """Counts the requests of a client, and stops before the n-th is sent, or once it was answered."""

    def __init__(self, store: DynamoStore, moment: str, stop_at: int | None = None) -> None:
        self._events, self._moment, self._stop_at = store._client.meta.events, moment, stop_at
        self.operations: list[str] = []

    def __enter__(self) -> "Interruption":
        self._events.register(f"{self._moment}.dynamodb", self._count, unique_id="interruption")
        return self

    def __exit__(self, *_: object) -> None:
        self._events.unregister(f"{self._moment}.dynamodb", unique_id="interruption")

    def _count(self, **context: Any) -> None:
        self.operations.append(context["event_name"].rsplit(".", 1)[1])
        if len(self.operations) == self._stop_at:
            raise Stopped


def sweep(store: DynamoStore) -> None:
    sweeper = Sweeper(store, Minutes(), DueMessages(), ManualClock(NOON), Inline())
    sweeper.sweep(sweeper.look())


def work_off(store: DynamoStore, jobs: list[Job]) -> list[tuple[str, datetime]]:
    started: list[tuple[str, datetime]] = []

    def execute(context: AttemptContext) -> None:
        started.append((context.job_id, context.due_at))

    for job in jobs:
        for run in list(store.list_runs(job.job_id, limit=100).runs)[::-1] * 2:
            worker = a_worker(store, ManualClock(max(NOON, run.due_at)), execute)
            worker.work(store.load([run.key])[run.key])
    return sorted(started)


def jobs_to_sweep() -> list[Job]:
    soon = NOON + timedelta(seconds=30)
    once = a_spec(timing=a_timing("FUTURE", schedule_time=soon))
    return [
        *(a_job(spec=once, next_run_at=soon) for _ in range(3)),
        a_cron_job(next_run_at=NOON),
        a_cron_job("0 * * * *", next_run_at=NOON - timedelta(hours=3)),
    ]


@pytest.mark.parametrize("moment", ["before-call", "after-call"])
def test_stopped_at_every_request_of_a_sweep_every_job_runs_exactly_once_all_the_same(
    tables: Callable[[], DynamoStore], moment: str
) -> None:
    jobs = jobs_to_sweep()
    store = tables()
    for job in jobs:
        store.create(job, [])
    with Interruption(store, moment) as counted:
        sweep(store)
    expected = work_off(store, jobs)
    assert len(expected) == 3 + 4 + 1
    operations = counted.operations
    assert operations.count("Query") == 64
    # One of the queries stands for all: none of them writes.
    stops = [1, *(n for n, operation in enumerate(operations, 1) if operation != "Query")]
    assert len(stops) == 1 + 1 + 8 + 1
    for stop_at in stops:
        store = tables()
        for job in jobs:
            store.create(job, [])
        with Interruption(store, moment, stop_at), pytest.raises(Stopped):
            sweep(store)
        sweep(store)
        assert work_off(store, jobs) == expected
