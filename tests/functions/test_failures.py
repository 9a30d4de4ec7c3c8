"""What the handlers do when AWS does not."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from duetime.errors import ConfigurationError

from tests.factories import NOW, a_job, a_pair, a_run, claimed_pair
from tests.functions.conftest import Context, sample

Load = Callable[[str], ModuleType]


def failing(*_: Any, **__: Any) -> Any:
    raise ClientError({"Error": {"Code": "InternalServerError", "Message": "secret insides"}}, "Anything")


def test_a_message_that_sqs_refused_is_reported_from_its_record_on(
    load_function: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueuer = load_function("enqueuer")
    refused = {"Successful": [], "Failed": [{"Id": "0", "SenderFault": False, "Code": "InternalError"}]}
    monkeypatch.setattr(enqueuer.sqs, "send_message_batch", lambda **_: refused)
    assert enqueuer.handle(sample("stream_run_queued"), Context()) == {
        "batchItemFailures": [{"itemIdentifier": "100"}]
    }


def test_a_dead_letter_that_could_not_be_sent_is_not_marked(
    load_function: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueuer = load_function("enqueuer")
    event = sample("stream_run_failed")
    boto3.client("dynamodb").put_item(TableName="runs", Item=event["Records"][0]["dynamodb"]["NewImage"])
    refused = {"Successful": [], "Failed": [{"Id": "0", "SenderFault": False, "Code": "InternalError"}]}
    monkeypatch.setattr(enqueuer.sqs, "send_message_batch", lambda **_: refused)
    assert enqueuer.handle(event, Context()) == {"batchItemFailures": [{"itemIdentifier": "200"}]}
    assert boto3.client("dynamodb").scan(TableName="runs")["Items"][0]["status"]["S"] == "FAILED"


def test_a_run_whose_claim_fails_gives_its_message_back(
    load_function: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = load_function("worker")
    job = a_job(job_id="3f1f7c52-9d5c-4a44-8f1b-6d1a2c9f0b11")
    worker.store.create(job, [a_run(job)])
    monkeypatch.setattr(worker.client, "transact_write_items", failing)
    assert worker.handle(sample("sqs_hint"), Context()) == {
        "batchItemFailures": [{"itemIdentifier": "message-1"}]
    }


def test_no_call_of_the_hearts_outlasts_a_lease(load_function: Load) -> None:
    """With botocore's own settings one renewal may take minutes: 60 s to wait for an answer, ten times over."""
    worker = load_function("worker")
    config = worker.heart_client.meta.config
    assert worker.heart_client is not worker.client
    assert worker.heart._store._client is worker.heart_client
    assert (config.connect_timeout, config.read_timeout, config.retries["total_max_attempts"]) == (1, 1, 1)


def test_a_renewal_is_not_repeated_behind_the_hearts_back(
    load_function: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = load_function("worker")
    asked: list[Any] = []

    def busy(**request: Any) -> Any:
        asked.append(request)
        raise ClientError({"Error": {"Code": "TransactionConflictException", "Message": ""}}, "UpdateItem")

    monkeypatch.setattr(worker.heart_client, "update_item", busy)
    with pytest.raises(ClientError):
        worker.heart._store.renew(claimed_pair(a_pair()).run, NOW)
    assert len(asked) == 1


def test_a_blob_is_waited_for_seconds_and_not_minutes(load_function: Load) -> None:
    config = load_function("worker").shelf.blobs._blobs._client.meta.config
    assert (config.connect_timeout, config.read_timeout, config.retries["total_max_attempts"]) == (2, 5, 2)


def test_a_failing_table_is_a_500_that_tells_nothing(
    load_function: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = load_function("job_service")
    monkeypatch.setattr(service.store, "create", failing)
    answer = service.handle(sample("http_post_jobs_immediate"), Context())
    assert answer["statusCode"] == 500
    assert answer["headers"]["Content-Type"] == "application/problem+json"
    assert "secret" not in answer["body"]


@pytest.mark.parametrize("name", ["DUETIME_JOBS_TABLE", "DUETIME_ALLOWED_TARGETS", "DUETIME_ADMINS"])
def test_a_missing_setting_names_itself_at_the_start(
    name: str, load_function: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(name)
    with pytest.raises(ConfigurationError, match=name):
        load_function("job_service")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DUETIME_RUN_QUEUE_URLS", "{"),
        ("DUETIME_RUN_QUEUE_URLS", '{"high": "x"}'),
        ("DUETIME_DEAD_LETTER_QUEUE_URLS", "[]"),
    ],
)
def test_a_malformed_setting_names_itself_at_the_start(
    name: str, value: str, load_function: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=name):
        load_function("enqueuer")


@pytest.mark.parametrize(
    "value",
    [
        '[{"principals": [], "http_private_addresses": ["nonsense"], "python": [], "arns": []}]',
        '[{"principals": ["*"]}]',
        "[7]",
        "{}",
        "7",
    ],
)
def test_malformed_targets_name_themselves_at_the_start(
    value: str, load_function: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUETIME_ALLOWED_TARGETS", value)
    with pytest.raises(ConfigurationError, match="DUETIME_ALLOWED_TARGETS"):
        load_function("worker")
