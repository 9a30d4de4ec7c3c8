"""The contract tier: one suite over every store. It proves that what is true of the store in memory, which the
fast tests use, is true of DynamoDB with its conditions and transactions, here in MiniStack."""

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from duetime.dynamo_store import DynamoStore
from duetime.memory_store import MemoryStore
from duetime.store import Store

from local.bare import bare_emulator
from tests.tables import JOBS, RECORDS, RUNS, create_tables


@pytest.fixture(scope="session")
def dynamo_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with bare_emulator(tmp_path_factory.mktemp("emulator")) as endpoint_url:
        client = boto3.client(
            "dynamodb",
            endpoint_url=endpoint_url,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )
        create_tables(client)
        yield client


@pytest.fixture(scope="session")
def dynamo_store(dynamo_client: Any) -> DynamoStore:
    return DynamoStore(dynamo_client, jobs_table=JOBS, runs_table=RUNS, records_table=RECORDS)


@pytest.fixture(params=["memory", "dynamo"])
def store(request: pytest.FixtureRequest) -> Store:
    if request.param == "memory":
        return MemoryStore()
    store: Store = request.getfixturevalue("dynamo_store")
    return store
