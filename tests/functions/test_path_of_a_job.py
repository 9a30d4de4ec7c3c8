"""One job through all four handlers, with the test in the place of the stream and the queue."""

import json
from collections.abc import Callable
from typing import Any

import boto3
from boto3.dynamodb.types import TypeDeserializer

from tests.functions.conftest import sample
from tests.tables import RUNS

Call = Callable[[str, dict[str, Any]], Any]


def submit(call: Call, **changes: Any) -> str:
    event = sample("http_post_jobs_immediate")
    event["body"] = json.dumps(json.loads(event["body"]) | changes)
    answer = call("job_service", event)
    assert answer["statusCode"] == 201, answer
    job_id: str = json.loads(answer["body"])["job_id"]
    return job_id


def read(call: Call, name: str, job_id: str) -> Any:
    event = sample(name)
    event["rawPath"] = event["rawPath"].replace(event["pathParameters"]["job_id"], job_id)
    event["requestContext"]["http"]["path"] = event["rawPath"]
    answer = call("job_search", event)
    assert answer["statusCode"] == 200, answer
    return json.loads(answer["body"])


def announce(call: Call, job_id: str) -> None:
    items = boto3.client("dynamodb").scan(TableName=RUNS)["Items"]
    event = sample("stream_run_queued")
    event["Records"][0]["dynamodb"]["NewImage"] = next(i for i in items if i["job_id"]["S"] == job_id)
    assert call("enqueuer", event) == {"batchItemFailures": []}


def deliver(call: Call, queue_url: str) -> Any:
    message = boto3.client("sqs").receive_message(QueueUrl=queue_url)["Messages"][0]
    event = sample("sqs_hint")
    event["Records"][0] |= {"messageId": message["MessageId"], "body": message["Body"]}
    return call("worker", event)


def test_a_job_goes_from_submitted_to_succeeded(call: Call, queue_urls: dict[str, str]) -> None:
    job_id = submit(call)
    assert read(call, "http_get_job_status", job_id)["latest_run"]["status"] == "QUEUED"
    announce(call, job_id)
    assert deliver(call, queue_urls["high"]) == {"batchItemFailures": []}
    status = read(call, "http_get_job_status", job_id)
    assert (status["status"], status["latest_run"]["status"]) == ("COMPLETED", "SUCCEEDED")
    assert status["latest_run"]["result"] == {"greeting": "Hello, Ada!", "attempt": 1}
    assert status["latest_run"]["executor_id"] == "2026/11/18/[$LATEST]0123456789abcdef"
    runs = read(call, "http_get_job_runs", job_id)
    assert (runs["items"], runs["next_page_token"]) == ([status["latest_run"]], None)
    job = read(call, "http_get_job", job_id)
    assert (job["name"], job["succeeded"], job["payload"]) == ("Daily payout", 1, {"name": "Ada"})


def test_a_hint_goes_to_the_queue_of_the_jobs_priority(call: Call, queue_urls: dict[str, str]) -> None:
    job_id = submit(call, priority="low")
    announce(call, job_id)
    received = {
        name: boto3.client("sqs").receive_message(QueueUrl=url).get("Messages", [])
        for name, url in queue_urls.items()
    }
    assert [name for name, messages in received.items() if messages] == ["low"]


def test_a_failed_run_lands_on_its_dead_letter_queue_and_is_marked(
    call: Call, queue_urls: dict[str, str]
) -> None:
    event = sample("stream_run_failed")
    image = event["Records"][0]["dynamodb"]["NewImage"]
    dynamodb = boto3.client("dynamodb")
    dynamodb.put_item(TableName=RUNS, Item=image)
    assert call("enqueuer", event) == {"batchItemFailures": []}
    letter = boto3.client("sqs").receive_message(QueueUrl=queue_urls["medium-dead"])["Messages"][0]
    assert json.loads(letter["Body"])["error_message"] == "the target answered 400: no such account"
    stored = dynamodb.scan(TableName=RUNS)["Items"][0]
    values = {name: TypeDeserializer().deserialize(value) for name, value in stored.items()}
    assert values["status"] == "DEAD_LETTERED"
    assert values["watch_key"].startswith("dead#")


def test_a_run_that_stays_in_its_status_is_not_announced_again(
    call: Call, queue_urls: dict[str, str]
) -> None:
    event = sample("stream_run_queued")
    record = event["Records"][0]["dynamodb"]
    record["OldImage"] = record["NewImage"]
    call("enqueuer", event)
    assert "Messages" not in boto3.client("sqs").receive_message(QueueUrl=queue_urls["medium"])


def test_a_hint_for_a_run_that_is_gone_is_dropped(call: Call) -> None:
    assert call("worker", sample("sqs_hint")) == {"batchItemFailures": []}
