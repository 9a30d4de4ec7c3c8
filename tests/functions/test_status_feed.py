"""The status feed, as Lambda calls it."""

import copy
import json
import time
from collections.abc import Callable
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from duetime.dynamo_subscriptions import DynamoSubscriptions

from tests.functions.conftest import Context, sample
from tests.tables import RECORDS
from tests.unit.test_notices import a_subscription

Call = Callable[[str, dict[str, Any]], Any]


def an_event(*images: tuple[str | None, str]) -> dict[str, Any]:
    """The sample run as it went from one status to another, record by record."""
    event = sample("stream_run_failed")
    (pattern,) = event["Records"]
    records = []
    for number, (before, after) in enumerate(images):
        record = copy.deepcopy(pattern)
        body = record["dynamodb"]
        new = body["NewImage"]
        body["SequenceNumber"] = str(100 + number)
        body["OldImage"] = {**copy.deepcopy(new), "status": {"S": before}} if before else None
        new["status"] = {"S": after}
        if body["OldImage"] is None:
            del body["OldImage"]
        records.append(record)
    return {"Records": records}


def metrics_in(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    return [line for line in lines if "_aws" in line]


def test_it_counts_a_failure_from_its_record(call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("status_feed", an_event(("RUNNING", "FAILED"))) == {"batchItemFailures": []}
    (line,) = metrics_in(capsys)
    assert (line["environment"], line["priority"]) == ("test", "medium")
    assert (line["RunsEnded"], line["SuccessRate"], line["FailureRate"]) == ([1], [0], [1])


def test_a_whole_batch_makes_one_line(call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    call("status_feed", an_event(*[("RUNNING", "FAILED")] * 3, ("FAILED", "DEAD_LETTERED")))
    (line,) = metrics_in(capsys)
    assert (line["RunsEnded"], line["RunsDeadLettered"]) == ([1, 1, 1], [1])


def test_a_record_that_comes_again_says_the_same(call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        call("status_feed", an_event(("RUNNING", "FAILED")))
    first, second = (line | {"_aws": None} for line in metrics_in(capsys))
    assert first == second


def test_what_stands_before_a_bad_record_counts_and_what_stands_behind_comes_again(
    call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    event = an_event(*[("RUNNING", "FAILED")] * 4)
    event["Records"][2]["dynamodb"]["NewImage"]["status"] = {"S": "NONSENSE"}
    assert call("status_feed", event) == {"batchItemFailures": [{"itemIdentifier": "102"}]}
    (line,) = metrics_in(capsys)
    assert line["RunsEnded"] == [1, 1]


def test_a_bad_record_at_the_head_makes_lambda_halve_the_batch(
    call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    event = an_event(*[("RUNNING", "FAILED")] * 2)
    event["Records"][0]["dynamodb"]["NewImage"]["status"] = {"S": "NONSENSE"}
    with pytest.raises(Exception, match="100 cannot be read"):
        call("status_feed", event)
    assert metrics_in(capsys) == []


def test_a_bad_record_alone_is_reported_alone(call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    event = an_event(("RUNNING", "FAILED"))
    del event["Records"][0]["dynamodb"]["NewImage"]
    assert call("status_feed", event) == {"batchItemFailures": [{"itemIdentifier": "100"}]}
    assert metrics_in(capsys) == []


def test_no_records_are_no_work(call: Call) -> None:
    assert call("status_feed", {"Records": []}) == {"batchItemFailures": []}


def listened_to(event: dict[str, Any]) -> dict[str, Any]:
    owner = event["Records"][0]["dynamodb"]["NewImage"]["owner"]["S"]
    subscriptions = DynamoSubscriptions(boto3.client("dynamodb"), records_table=RECORDS)
    subscriptions.add(a_subscription(owner=owner))
    return event


def written(event: dict[str, Any], seconds_ago: float) -> dict[str, Any]:
    for record in event["Records"]:
        record["dynamodb"]["ApproximateCreationDateTime"] = time.time() - seconds_ago
    return event


def refuse(*_: Any, **__: Any) -> None:
    raise ClientError({"Error": {"Code": "ServiceUnavailable"}}, "SendMessageBatch")


@pytest.mark.parametrize(("seconds_ago", "failed", "ended"), [(0, ["101"], 0), (3600, [], 2)])
def test_metrics_wait_for_notices_but_not_for_ever(
    load_function: Callable[[str], Any],
    queue_urls: dict[str, str],
    capsys: pytest.CaptureFixture[str],
    seconds_ago: float,
    failed: list[str],
    ended: int,
) -> None:
    module = load_function("status_feed")
    module.notices.send_notices = refuse
    # Nobody listens for what succeeded, but while the queue is in trouble nobody knows.
    event = an_event(("RUNNING", "FAILED"), ("RUNNING", "FAILED"), ("RUNNING", "SUCCEEDED"))
    event["Records"][0]["dynamodb"]["OldImage"]["status"] = {"S": "QUEUED"}
    event["Records"][0]["dynamodb"]["NewImage"]["status"] = {"S": "CANCELLED"}
    answer = module.handle(listened_to(written(event, seconds_ago)), Context())
    assert [each["itemIdentifier"] for each in answer["batchItemFailures"]] == failed
    lines = metrics_in(capsys)
    assert any("RunsCancelled" in line for line in lines)
    counted = [value for line in lines for value in line.get("RunsEnded", [])]
    assert len(counted) == ended


def test_a_subscription_that_cannot_be_read_silences_no_other(
    load_function: Callable[[str], Any], queue_urls: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    event = listened_to(an_event(("RUNNING", "FAILED")))
    owner = event["Records"][0]["dynamodb"]["NewImage"]["owner"]["S"]
    dynamodb = boto3.client("dynamodb")
    subscriptions = DynamoSubscriptions(dynamodb, records_table=RECORDS)
    subscriptions.add(a_subscription(owner=owner, subscription_id="spoilt"))
    dynamodb.update_item(
        TableName=RECORDS,
        Key={"subject": {"S": f"subscriptions#{owner}"}, "entry": {"S": "spoilt"}},
        UpdateExpression="SET protocol = :chat",
        ExpressionAttributeValues={":chat": {"S": "chat"}},
    )
    assert load_function("status_feed").handle(event, Context()) == {"batchItemFailures": []}
    assert metrics_in(capsys)
    assert boto3.client("sqs").receive_message(QueueUrl=queue_urls["notices"])["Messages"]
