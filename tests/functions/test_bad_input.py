"""Whatever is sent, the answer is the caller's to understand: no 5xx, and nothing half written."""

import json
from collections.abc import Callable
from datetime import timedelta
from types import ModuleType
from typing import Any

import boto3
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.functions.conftest import Context, sample
from tests.tables import JOBS, RECORDS, RUNS

EDGES: st.SearchStrategy[Any] = st.sampled_from(
    [
        0,
        -1,
        2**31,
        2**63,
        10**400,
        0.5,
        1e308,
        float("inf"),
        float("nan"),
        "",
        " ",
        "\u0000",
        "\ud800",
        "ß" * 300,
        "‮",
        "🕰️" * 50,
        "9999-12-31T23:59:59.999999Z",
        "0001-01-01T00:00:00+14:00",
        "2030-02-30T00:00:00Z",
        "0 0 31 2 *",
        "* * * * * *",
        "@reboot",
        "Mars/Olympus",
        [],
        {},
        None,
        True,
    ]
)
JSON = st.recursive(
    EDGES | st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
VALID: dict[str, Any] = {
    "name": "n",
    "schedule_type": "CRON",
    "cron_expression": "0 2 * * *",
    "timezone": "Europe/London",
    "task": {"type": "python", "function": "duetime_examples.greetings:greet"},
}
FIELDS = [
    *VALID,
    "schedule_time",
    "frequency",
    "interval_seconds",
    "start_at",
    "end_at",
    "jitter_seconds",
    "dst_gap",
    "dst_overlap",
    "catch_up",
    "payload",
    "priority",
    "max_retries",
    "retry",
    "timeout_seconds",
    "max_concurrency",
    "overlap",
    "tags",
    "nonsense",
]
BODIES = st.one_of(
    JSON.map(lambda value: json.dumps(value)),
    st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=3).map(lambda odd: json.dumps(VALID | odd)),
    st.text(max_size=60),
    st.integers(1, 3000).map(lambda depth: "[" * depth + "]" * depth),
    st.integers(1, 3000).map(
        lambda depth: json.dumps(VALID)[:-1] + ', "payload": ' + '{"a":' * depth + "1" + "}" * (depth + 1)
    ),
)
PATIENT = settings(
    max_examples=150,
    deadline=timedelta(seconds=20),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture
def service(load_function: Callable[[str], ModuleType]) -> ModuleType:
    return load_function("job_service")


@pytest.fixture
def search(load_function: Callable[[str], ModuleType]) -> ModuleType:
    return load_function("job_search")


def count(table: str) -> int:
    return int(boto3.client("dynamodb").scan(TableName=table)["Count"])


def ask(
    module: ModuleType, method: str, path: str, body: str | None, query: dict[str, str] | None = None
) -> Any:
    event = sample("http_get_job")
    event |= {"rawPath": path, "body": body, "queryStringParameters": query, "routeKey": f"{method} {path}"}
    event["headers"] = event["headers"] | {"content-type": "application/json"}
    event["requestContext"]["http"] |= {"method": method, "path": path}
    return module.handle(event, Context())


@given(body=BODIES)
@PATIENT
def test_a_job_is_accepted_whole_or_refused_with_a_reason(service: ModuleType, body: str) -> None:
    before = count(JOBS), count(RUNS)
    answer = ask(service, "POST", "/jobs", body)
    told = json.loads(answer["body"])
    if answer["statusCode"] == 201:
        assert count(JOBS) == before[0] + 1
        there = ask(service, "DELETE", f"/jobs/{told['job_id']}", None)
        assert there["statusCode"] == 200
    else:
        assert answer["statusCode"] == 400, told
        assert told["errors"][0]["field"]
        assert (count(JOBS), count(RUNS)) == before


@given(body=BODIES)
@PATIENT
@pytest.mark.parametrize("path", ["/jobs/batch", "/jobs/bulk", "/dead-letters/redrive"])
def test_other_bodies_never_fail_inside(service: ModuleType, path: str, body: str) -> None:
    assert ask(service, "POST", path, body)["statusCode"] in (200, 400)


@given(change=st.dictionaries(st.sampled_from(FIELDS), JSON, min_size=1, max_size=3))
@PATIENT
def test_a_change_is_made_whole_or_not_at_all(service: ModuleType, search: ModuleType, change: Any) -> None:
    made = ask(service, "POST", "/jobs", json.dumps(VALID))
    path = f"/jobs/{json.loads(made['body'])['job_id']}"
    before = ask(search, "GET", path, None)["body"]
    answer = ask(service, "PUT", path, json.dumps(change))
    if answer["statusCode"] != 200:
        assert answer["statusCode"] in (400, 409), answer["body"]
        assert ask(search, "GET", path, None)["body"] == before


@given(
    path=st.sampled_from(["/jobs", "/executions", "/dead-letters"]),
    query=st.dictionaries(
        st.sampled_from(
            [
                "status",
                "tag",
                "limit",
                "page_token",
                "due_from",
                "due_before",
                "user_id",
                "worker_id",
                "name_prefix",
            ]
        ),
        st.text(min_size=1, max_size=30) | st.sampled_from(["0", "101", "1e3", "pending", "-1", "ÿ"]),
        max_size=3,
    ),
)
@PATIENT
def test_questions_never_fail_inside(search: ModuleType, path: str, query: dict[str, str]) -> None:
    assert ask(search, "GET", path, None, query)["statusCode"] in (200, 400)


@given(
    job_id=st.text(min_size=1, max_size=80),
    rest=st.sampled_from(["", "/runs", "/status", "/events", "/logs"]),
)
@PATIENT
def test_ids_that_nobody_has_are_404(search: ModuleType, job_id: str, rest: str) -> None:
    answer = ask(search, "GET", f"/jobs/{job_id}{rest}", None)
    assert answer["statusCode"] == 404
    assert count(RECORDS) >= 0


def test_a_body_of_another_type_is_415(service: ModuleType) -> None:
    event = sample("http_post_jobs_immediate")
    event["headers"] = event["headers"] | {"content-type": "text/plain"}
    answer = service.handle(event, Context())
    assert answer["statusCode"] == 415
    assert json.loads(answer["body"])["type"] == "urn:duetime:problem:unsupported-media-type"
    assert answer["headers"]["Duetime-Version"]
