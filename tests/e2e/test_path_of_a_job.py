import json
from typing import Any

import pytest
from duetime_client import Client

from tests.e2e.conftest import Account, a_request, ended_run, wait_for
from tests.listener import Answer, Listener, Received, listening


def test_a_python_job_succeeds_and_reads_back_over_every_route(client: Client) -> None:
    created = client.create_job(a_request(tags=["e2e"]))
    assert created["status"] == "SCHEDULED"
    run = ended_run(client, created["job_id"])
    assert (run["status"], run["result"]) == ("SUCCEEDED", {"greeting": "Hello, Ada!", "attempt": 1})
    assert run["due_at"] <= run["claimed_at"] <= run["start_time"] <= run["end_time"]
    assert [(a["attempt"], a["outcome"], a["executor_id"]) for a in run["attempts"]] == [
        (1, "SUCCEEDED", run["executor_id"])
    ]
    assert client.list_runs(created["job_id"]) == {"items": [run], "next_page_token": None}
    job = client.get_job(created["job_id"])
    assert (job["status"], job["succeeded"], job["running"], job["tags"]) == ("COMPLETED", 1, 0, ["e2e"])


@pytest.mark.parametrize("priority", ["high", "medium", "low"])
def test_an_http_job_of_each_priority_calls_its_target_once(client: Client, priority: str) -> None:
    with listening() as target:
        task = {"type": "http", "url": f"{target.url}/hook", "headers": {"X-Team": "pay"}}
        job_id = client.create_job(a_request(task=task, priority=priority, payload={"batch": "eu"}))["job_id"]
        run = ended_run(client, job_id)
    assert (run["status"], run["result"]) == ("SUCCEEDED", {"status_code": 200, "body": "ok"})
    assert [(r.path, json.loads(r.body)) for r in target.received] == [("/hook", {"batch": "eu"})]
    headers = target.received[0].headers
    assert (headers["Idempotency-Key"], headers["Duetime-Attempt"], headers["X-Team"]) == (
        run["run_id"],
        "1",
        "pay",
    )
    assert (headers["Duetime-Due-At"], headers["Duetime-Fence"]) == (run["due_at"], "1")


def failing_job(client: Client, target: Listener, max_retries: int) -> Any:
    task = {"type": "http", "url": target.url}
    retry = {"kind": "fixed", "base_seconds": 1}
    job_id = client.create_job(a_request(task=task, max_retries=max_retries, retry=retry))["job_id"]
    return ended_run(client, job_id)


def test_a_target_that_fails_twice_is_called_three_times_with_a_growing_fence(client: Client) -> None:
    answers = iter([Answer(503), Answer(503), Answer(200)])

    def respond(_: Received) -> Answer:
        return next(answers)

    with listening(respond) as target:
        run = failing_job(client, target, max_retries=3)
    assert [attempt["outcome"] for attempt in run["attempts"]] == ["FAILED", "FAILED", "SUCCEEDED"]
    assert [request.headers["Duetime-Fence"] for request in target.received] == ["1", "2", "3"]
    assert len({request.headers["Idempotency-Key"] for request in target.received}) == 1


def test_a_target_that_always_fails_ends_on_the_dead_letter_queue(client: Client, account: Account) -> None:
    with listening(lambda _: Answer(503, b"out of order")) as target:
        run = failing_job(client, target, max_retries=1)
    assert (run["status"], len(run["attempts"])) == ("DEAD_LETTERED", 2)
    assert run["error_message"] == "the target answered 503: out of order"
    sqs = account.service("sqs")
    queue = sqs.get_queue_attributes(
        QueueUrl=account.output("RunQueueUrlMedium"), AttributeNames=["RedrivePolicy"]
    )
    name = json.loads(queue["Attributes"]["RedrivePolicy"])["deadLetterTargetArn"].rsplit(":", 1)[1]
    url = sqs.get_queue_url(QueueName=name)["QueueUrl"]

    def letter() -> Any:
        # Hidden for a moment, so that the next look shows others, if there are more than ten.
        messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=5).get(
            "Messages", []
        )
        bodies = [json.loads(message["Body"]) for message in messages]
        return next((body for body in bodies if body["run_id"] == run["run_id"]), None)

    assert wait_for(letter)["error_message"] == "the target answered 503: out of order"


def test_the_same_idempotency_key_makes_one_job(client: Client) -> None:
    key = "e2e-once"
    first = client.create_job(a_request(), idempotency_key=key)
    assert client.create_job(a_request(), idempotency_key=key)["job_id"] == first["job_id"]
