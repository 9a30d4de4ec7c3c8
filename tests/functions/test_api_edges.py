"""What a hostile reader of the API tried."""

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import boto3
import pytest

from tests.functions.conftest import Context, sample
from tests.functions.http import Call, send

GREET = {"type": "python", "function": "duetime_examples.greetings:greet"}
OTHER = "arn:aws:iam::123456789012:role/somebody-else"


def a_request(**changes: Any) -> dict[str, Any]:
    return {"name": "a", "schedule_type": "CRON", "frequency": "yearly", "task": GREET} | changes


def test_thousands_of_unknown_fields_are_told_of_in_a_bounded_answer(call: Call) -> None:
    body = a_request() | {f"field-{n}" * 30: n for n in range(5000)}
    answer = send(call, "POST", "/jobs", body)
    assert answer.status == 400
    assert len(answer.body["errors"]) == 20
    assert len(json.dumps(answer.body)) < 20_000


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:sts::123456789012:federated-user/alice",
        "arn:aws:iam::123456789012:mfa/alice",
        "arn:aws:sts::123456789012:assumed-role/role",
        "arn:aws:iam::12:user/alice",
        "arn:",
    ],
)
def test_who_is_neither_role_nor_user_is_nobody(call: Call, arn: str) -> None:
    answer = send(call, "POST", "/jobs", a_request(), user_arn=arn)
    assert (answer.status, answer.body["type"]) == (403, "urn:duetime:problem:not-identified")


@pytest.mark.parametrize(
    ("arn", "owner"),
    [
        ("arn:aws:sts::123456789012:assumed-role/pay/session-1", "arn:aws:iam::123456789012:role/pay"),
        ("arn:aws-cn:sts::123456789012:assumed-role/pay/x@y.z", "arn:aws-cn:iam::123456789012:role/pay"),
        ("arn:aws:iam::123456789012:user/team/ann", "arn:aws:iam::123456789012:user/team/ann"),
        ("arn:aws:iam::123456789012:root", "arn:aws:iam::123456789012:root"),
    ],
)
def test_a_role_whatever_its_session_and_a_user_are_owners(call: Call, arn: str, owner: str) -> None:
    made = send(call, "POST", "/jobs", a_request(), user_arn=arn)
    job = send(call, "GET", f"/jobs/{made.body['job_id']}", user_arn=arn)
    assert job.body["owner"] == owner


def test_a_stranger_hears_the_same_of_a_run_that_is_there_and_one_that_is_not(call: Call) -> None:
    job_id = send(call, "POST", "/jobs", a_request()).body["job_id"]
    run_id = send(call, "POST", f"/jobs/{job_id}/runNow").body["run_id"]
    answers = [
        send(
            call,
            "POST",
            f"/jobs/{job_id}/runs/{run}/complete",
            {"result": 1},
            headers={"Duetime-Callback-Token": "guess"},
            user_arn=OTHER,
        )
        for run in (run_id, run_id.replace("2", "3"))
    ]
    assert answers[0][:2] == answers[1][:2]
    assert answers[0].status == 404


def test_another_batch_is_refused_whatever_stands_first_in_it(call: Call) -> None:
    key = {"Idempotency-Key": "k"}
    first = send(call, "POST", "/jobs/batch", {"jobs": [a_request()]}, headers=key)
    assert first.body["items"][0]["status_code"] == 201
    second = send(
        call, "POST", "/jobs/batch", {"jobs": [{"name": "invalid"}, a_request(name="b")]}, headers=key
    )
    assert second.status == 409
    assert len(send(call, "GET", "/jobs").body["items"]) == 1


def test_a_result_that_is_too_deep_to_show_does_not_break_the_list(call: Call) -> None:
    job_id = send(call, "POST", "/jobs", a_request()).body["job_id"]
    run_id = send(call, "POST", f"/jobs/{job_id}/runNow").body["run_id"]
    path = f"/jobs/{job_id}/runs"
    # As a kind of task would return it.
    from duetime.blobs import MemoryBlobs
    from duetime.results import with_result

    deep: Any = None
    for _ in range(300):
        deep = [deep]
    from duetime.dynamo_items import item_to_run

    key = {"job_id": {"S": job_id}, "run_id": {"S": run_id}}
    run = item_to_run(boto3.client("dynamodb").get_item(TableName="runs", Key=key)["Item"])
    kept = with_result(run, deep, MemoryBlobs())
    assert (kept.result, kept.result_key is None) == (None, False)
    assert send(call, "GET", path).status == 200


def test_without_its_key_a_keyed_request_is_put_off(
    load_function: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "DUETIME_SIGNING_SECRET_ARN", "arn:aws:secretsmanager:us-east-1:123456789012:secret:no"
    )
    service = load_function("job_service")
    event = sample("http_post_jobs_immediate")
    event["headers"] = event["headers"] | {"idempotency-key": "k"}
    answer = service.handle(event, Context())
    assert (answer["statusCode"], answer["headers"]["Retry-After"]) == (503, "5")


def test_the_same_key_of_another_owner_is_another_job(call: Call) -> None:
    key = {"Idempotency-Key": "k"}
    mine = send(call, "POST", "/jobs", a_request(), headers=key).body["job_id"]
    theirs = send(call, "POST", "/jobs", a_request(), headers=key, user_arn=OTHER).body["job_id"]
    assert mine != theirs
    assert send(call, "POST", "/jobs", a_request(), headers=key).body["job_id"] == mine


@pytest.mark.parametrize("user_id", ["ann", "arn:aws:iam::1:user/ß", "arn:" + "x" * 300])
def test_a_user_id_is_an_arn(call: Call, user_id: str) -> None:
    answer = send(call, "GET", "/jobs", query={"user_id": user_id})
    assert (answer.status, answer.fields) == (400, ["user_id"])
