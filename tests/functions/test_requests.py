"""Bad input gets a clear error that names the field, and nothing is written."""

import json
from collections.abc import Callable
from typing import Any

import boto3
import pytest

from tests.functions.conftest import sample

Call = Callable[[str, dict[str, Any]], Any]
GREET = {"type": "python", "function": "duetime_examples.greetings:greet"}
HTTP = {"type": "http", "url": "https://example.com/"}


def post(call: Call, body: Any, **headers: str) -> tuple[int, dict[str, Any]]:
    event = sample("http_post_jobs_immediate")
    event["body"] = body if isinstance(body, str) else json.dumps(body)
    event["headers"] |= {name.replace("_", "-"): value for name, value in headers.items()}
    answer = call("job_service", event)
    return answer["statusCode"], json.loads(answer["body"])


def valid(**changes: Any) -> dict[str, Any]:
    return {"name": "a", "schedule_type": "IMMEDIATE", "task": GREET} | changes


def count_items() -> int:
    dynamodb = boto3.client("dynamodb")
    return sum(len(dynamodb.scan(TableName=table)["Items"]) for table in ("jobs", "runs"))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 129}, "name"),
        ({"name": "   "}, "name"),
        ({"name": "a\u0000b"}, "name"),
        ({"name": 7}, "name"),
        ({"schedule_type": "NEVER"}, "schedule_type"),
        ({"surprise": 1}, "surprise"),
        ({"owner": "arn:aws:iam::1:role/other"}, "owner"),
        ({"priority": "urgent"}, "priority"),
        ({"max_retries": 21}, "max_retries"),
        ({"max_retries": -1}, "max_retries"),
        ({"max_retries": "3"}, "max_retries"),
        ({"timeout_seconds": 0}, "timeout_seconds"),
        ({"timeout_seconds": 841}, "timeout_seconds"),
        ({"timeout_seconds": 604_801}, "timeout_seconds"),
        ({"jitter_seconds": 10**16}, "jitter_seconds"),
        ({"retry": {"kind": "never"}}, "retry.kind"),
        ({"retry": {"base_seconds": 901}}, "retry.base_seconds"),
        ({"tags": ["a", "a"]}, "tags"),
        ({"tags": ["t"] * 21}, "tags"),
        ({"tags": [""]}, "tags.0"),
        ({"payload": "x" * 70_000}, "payload"),
        ({"task": "http"}, "task"),
        ({"task": {}}, "task.type"),
        ({"task": {"type": ["http"]}}, "task.type"),
        ({"task": {"type": "rocket"}}, "task.type"),
        ({"task": GREET | {"extra": 1}}, "task.extra"),
        ({"task": {"type": "python", "function": "os.system"}}, "task.function"),
        ({"task": {"type": "python", "function": "os:system"}}, "task"),
        ({"task": {"type": "http"}}, "task.url"),
        ({"task": HTTP | {"url": "ftp://example.com"}}, "task.url"),
        ({"task": HTTP | {"url": "https://"}}, "task.url"),
        ({"task": HTTP | {"url": "https://user:pass@example.com"}}, "task.url"),
        ({"task": HTTP | {"url": "https://example.com:99999"}}, "task.url"),
        ({"task": HTTP | {"url": "https://example.com/a b"}}, "task.url"),
        ({"task": HTTP | {"url": "http://169.254.169.254/latest"}}, "task"),
        ({"task": HTTP | {"url": "http://[::1]:9001/"}}, "task"),
        ({"task": HTTP | {"method": "BREW"}}, "task.method"),
        ({"task": HTTP | {"headers": {"X Bad": "1"}}}, "task.headers"),
        ({"task": HTTP | {"headers": {"X-Bad": "a\r\nb: c"}}}, "task.headers.X-Bad"),
        ({"task": HTTP | {"headers": {"Host": "other"}}}, "task.headers.Host"),
        ({"task": HTTP | {"headers": {"Duetime-Fence": "9"}}}, "task.headers.Duetime-Fence"),
        ({"task": HTTP | {"headers": []}}, "task.headers"),
    ],
)
def test_a_bad_value_is_refused_by_name_and_writes_nothing(
    call: Call, changes: dict[str, Any], field: str
) -> None:
    status, problem = post(call, valid(**changes))
    assert (status, problem["status"], problem["type"]) == (400, 400, "urn:duetime:problem:invalid-request")
    assert [error["field"] for error in problem["errors"]] == [field]
    assert problem["detail"].startswith(f"{field}: ")
    assert count_items() == 0


@pytest.mark.parametrize("field", ["name", "schedule_type", "task"])
def test_a_missing_field_is_named(call: Call, field: str) -> None:
    body = valid()
    del body[field]
    status, problem = post(call, body)
    assert (status, [error["field"] for error in problem["errors"]]) == (400, [field])


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ("", "body: "),
        ("{", "body: is not JSON"),
        ("[]", "body: "),
        ("null", "body: "),
        ('{"a":' * 20_000 + "1" + "}" * 20_000, "body: is nested too deeply"),
        (
            '{"name": "a", "schedule_type": "IMMEDIATE", "task": {"type": "python"}, "payload": NaN}',
            "payload: NaN",
        ),
    ],
)
def test_a_body_that_is_not_a_job_is_refused(call: Call, body: str, detail: str) -> None:
    status, problem = post(call, body)
    assert status == 400
    assert problem["detail"].startswith(detail)


def test_a_request_without_a_verified_identity_is_refused(call: Call) -> None:
    answer = call("job_service", sample("http_post_jobs_without_identity"))
    assert (answer["statusCode"], count_items()) == (403, 0)


def test_a_read_without_a_verified_identity_is_refused(call: Call) -> None:
    event = sample("http_get_job")
    del event["requestContext"]["authorizer"]
    assert call("job_search", event)["statusCode"] == 403


def test_the_same_key_and_body_make_one_job(call: Call) -> None:
    first = post(call, valid(), idempotency_key="k-1")
    assert post(call, valid(), idempotency_key="k-1") == first
    assert (first[0], count_items()) == (201, 2)


def test_the_same_key_with_another_body_is_a_conflict(call: Call) -> None:
    post(call, valid(), idempotency_key="k-1")
    status, problem = post(call, valid(name="b"), idempotency_key="k-1")
    assert (status, problem["type"], count_items()) == (409, "urn:duetime:problem:conflict", 2)


def test_a_job_is_answered_with_its_location(call: Call) -> None:
    answer = call("job_service", sample("http_post_jobs_immediate"))
    body = json.loads(answer["body"])
    assert answer["headers"]["Location"] == f"/jobs/{body['job_id']}"
    assert (set(body), body["status"]) == (
        {"job_id", "status", "next_run_at", "notify_secret"},
        "SCHEDULED",
    )


def read_as(call: Call, job_id: str, user_arn: str) -> int:
    event = sample("http_get_job")
    event["rawPath"] = event["requestContext"]["http"]["path"] = f"/jobs/{job_id}"
    event["requestContext"]["authorizer"]["iam"]["userArn"] = user_arn
    status: int = call("job_search", event)["statusCode"]
    return status


@pytest.mark.parametrize(
    ("user_arn", "status"),
    [
        ("arn:aws:sts::123456789012:assumed-role/payments/bob", 200),
        ("arn:aws:sts::123456789012:assumed-role/admin/carol", 200),
        ("arn:aws:sts::123456789012:assumed-role/payments2/alice", 404),
        ("arn:aws:sts::999999999999:assumed-role/payments/alice", 404),
        ("arn:aws:iam::123456789012:user/payments", 404),
    ],
)
def test_a_job_is_seen_by_its_role_and_by_admins_only(call: Call, user_arn: str, status: int) -> None:
    _, job = post(call, valid())
    assert read_as(call, job["job_id"], user_arn) == status


@pytest.mark.parametrize(
    "job_id",
    ["nonsense", "3F1F7C52-9D5C-4A44-8F1B-6D1A2C9F0B11", "..", "3f1f7c52-9d5c-4a44-8f1b-6d1a2c9f0b11"],
)
def test_an_id_that_leads_nowhere_is_404(call: Call, job_id: str) -> None:
    assert read_as(call, job_id, "arn:aws:sts::123456789012:assumed-role/payments/bob") == 404


@pytest.mark.parametrize(
    ("query", "field"), [({"limit": "0"}, "limit"), ({"limit": "x"}, "limit"), ({"limit": "101"}, "limit")]
)
def test_a_bad_page_is_refused(call: Call, query: dict[str, str], field: str) -> None:
    event = sample("http_get_job_runs") | {"queryStringParameters": query}
    answer = call("job_search", event)
    assert answer["statusCode"] == 400
    assert json.loads(answer["body"])["errors"][0]["field"] == field


def test_an_unknown_route_is_a_problem_too(call: Call) -> None:
    event = sample("http_get_job")
    event["rawPath"] = event["requestContext"]["http"]["path"] = "/nothing/here"
    answer = call("job_search", event)
    assert (answer["statusCode"], json.loads(answer["body"])["detail"]) == (404, "there is no such route")


@pytest.mark.parametrize(
    "raw",
    ['{"payload": ' + "1" * 5000 + "}", '{"payload": 1e999}', "{", "\ufeff{}", '{"a": NaN}', "[" * 100_000],
)
def test_a_body_that_cannot_be_read_is_refused(call: Call, raw: str) -> None:
    assert post(call, raw)[0] == 400


@pytest.mark.parametrize("encoded", ["//79", "!!!", "e30="])
def test_a_base64_body_is_read_or_refused(call: Call, encoded: str) -> None:
    event = sample("http_post_jobs_immediate") | {"body": encoded, "isBase64Encoded": True}
    assert call("job_service", event)["statusCode"] == 400
