"""The life of a waiting job, over HTTP."""

from typing import Any

import pytest

from tests.functions.http import Answer, Call, send
from tests.functions.test_requests import valid
from tests.functions.test_schedules import cron, future, in_, runs

OTHER = "arn:aws:sts::123456789012:assumed-role/marketing/mallory"


@pytest.fixture
def job_id(call: Call) -> str:
    created: str = send(call, "POST", "/jobs", cron(tags=["a"], payload={"n": 1})).body["job_id"]
    return created


def put(call: Call, job_id: str, changes: Any, **options: Any) -> Answer:
    return send(call, "PUT", f"/jobs/{job_id}", changes, **options)


def read(call: Call, job_id: str) -> dict[str, Any]:
    """As a change answers: without the statistics."""
    body: dict[str, Any] = send(call, "GET", f"/jobs/{job_id}").body
    return {name: value for name, value in body.items() if name != "statistics"}


def test_only_the_fields_that_were_sent_change(call: Call, job_id: str) -> None:
    before = read(call, job_id)
    answer = put(call, job_id, {"name": "another", "priority": "high"})
    assert (answer.status, answer.headers["ETag"]) == (200, '"2"')
    changed = {name for name, value in answer.body.items() if value != before[name]}
    assert changed == {"name", "priority", "version", "updated_at"}
    assert read(call, job_id) == answer.body


def test_null_takes_a_field_back_to_its_default(call: Call, job_id: str) -> None:
    answer = put(call, job_id, {"payload": None, "tags": None, "timezone": None})
    assert (answer.body["payload"], answer.body["tags"], answer.body["timezone"]) == (None, [], "UTC")


def test_another_schedule_type_takes_its_own_fields_and_leaves_the_old_ones(call: Call, job_id: str) -> None:
    put(call, job_id, {"timezone": "Europe/London", "dst_gap": "skip"})
    time = in_(7200)
    answer = put(call, job_id, {"schedule_type": "FUTURE", "schedule_time": time})
    assert answer.status == 200, answer.body
    assert (answer.body["cron_expression"], answer.body["timezone"]) == (None, "UTC")
    assert answer.body["schedule_time"] == answer.body["next_run_at"]


def test_a_frequency_replaces_the_expression(call: Call, job_id: str) -> None:
    assert put(call, job_id, {"frequency": "hourly"}).body["cron_expression"] == "0 * * * *"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"cron_expression": "0 0 31 2 *"}, "cron_expression"),
        ({"cron_expression": None}, "cron_expression"),
        ({"name": ""}, "name"),
        ({"name": None}, "name"),
        ({"priority": "urgent"}, "priority"),
        ({"surprise": 1}, "surprise"),
        ({"schedule_type": "FUTURE"}, "schedule_time"),
        ({"schedule_time": "2030-01-01T00:00:00Z"}, "schedule_time"),
        ({"task": {"type": "python", "function": "os:system"}}, "task"),
        ({"owner": "me"}, "owner"),
        ({"status": "COMPLETED"}, "status"),
        ({"retry": {"kind": "never"}}, "retry.kind"),
        ({"max_retries": "3"}, "max_retries"),
    ],
)
def test_a_bad_change_is_refused_by_its_field_and_nothing_changes(
    call: Call, job_id: str, changes: dict[str, Any], field: str
) -> None:
    before = send(call, "GET", f"/jobs/{job_id}").body
    answer = put(call, job_id, changes)
    assert (answer.status, answer.fields) == (400, [field]), answer.body
    assert send(call, "GET", f"/jobs/{job_id}").body == before


def test_a_change_to_a_version_that_is_no_more_is_412(call: Call, job_id: str) -> None:
    put(call, job_id, {"name": "another"})
    answer = put(call, job_id, {"name": "third"}, headers={"if-match": '"1"'})
    assert (answer.status, answer.body["type"]) == (412, "urn:duetime:problem:stale-version")
    assert put(call, job_id, {"name": "third"}, headers={"if-match": '"2"'}).status == 200
    assert put(call, job_id, {"name": "fourth"}, headers={"if-match": "*"}).status == 200


@pytest.mark.parametrize("tag", ["3", 'W/"3"', '"x"', '""', '"1", "2"'])
def test_an_if_match_that_is_no_etag_is_refused(call: Call, job_id: str, tag: str) -> None:
    answer = put(call, job_id, {"name": "x"}, headers={"if-match": tag})
    assert (answer.status, answer.fields) == (400, ["If-Match"])


def test_a_job_is_paused_resumed_and_cancelled(call: Call, job_id: str) -> None:
    paused = send(call, "POST", f"/jobs/{job_id}/pause")
    assert (paused.status, paused.body["status"], paused.body["next_run_at"]) == (200, "PAUSED", None)
    resumed = send(call, "POST", f"/jobs/{job_id}/resume")
    assert (resumed.body["status"], resumed.body["next_run_at"] is not None) == ("SCHEDULED", True)
    cancelled = send(call, "DELETE", f"/jobs/{job_id}")
    assert (cancelled.status, cancelled.body["status"]) == (200, "CANCELLED")
    assert send(call, "DELETE", f"/jobs/{job_id}").status == 200
    again = send(call, "POST", f"/jobs/{job_id}/resume")
    assert (again.status, again.body["type"]) == (409, "urn:duetime:problem:conflict")


def test_a_job_is_run_now(call: Call, job_id: str) -> None:
    answer = send(call, "POST", f"/jobs/{job_id}/runNow")
    assert (answer.status, answer.body["manual"]) == (202, True)
    assert answer.headers["Location"] == f"/jobs/{job_id}/runs/{answer.body['run_id']}"
    assert send(call, "GET", answer.headers["Location"]).body == answer.body
    assert [run["run_id"]["S"] for run in runs()] == [answer.body["run_id"]]


def test_an_unknown_run_is_404(call: Call, job_id: str) -> None:
    for run_id in ("nonsense", "20261118T070000000Z-1-0000000000000000"):
        assert send(call, "GET", f"/jobs/{job_id}/runs/{run_id}").status == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", ""),
        ("DELETE", ""),
        ("POST", "/pause"),
        ("POST", "/resume"),
        ("POST", "/runNow"),
        ("GET", "/upcoming"),
    ],
)
def test_anothers_job_does_not_exist(call: Call, job_id: str, method: str, path: str) -> None:
    body = {"name": "mine"} if method == "PUT" else None
    answer = send(call, method, f"/jobs/{job_id}{path}", body, user_arn=OTHER)
    assert answer.status == 404
    assert send(call, "GET", f"/jobs/{job_id}").body["version"] == 1


def test_status_shows_the_run_whose_time_came_last_and_not_the_one_planned_last(call: Call) -> None:
    job_id = send(call, "POST", "/jobs", valid(schedule_type="INTERVAL", interval_seconds=60)).body["job_id"]
    assert len(runs()) == 4
    latest = send(call, "GET", f"/jobs/{job_id}/status").body["latest_run"]
    assert latest["run_id"] == min(run["run_id"]["S"] for run in runs())


def test_status_shows_the_first_planned_run_before_any_has_come(call: Call) -> None:
    job_id = send(call, "POST", "/jobs", future(120)).body["job_id"]
    assert send(call, "GET", f"/jobs/{job_id}/status").body["latest_run"]["status"] == "QUEUED"


def test_status_of_a_job_that_waits_has_no_run(call: Call, job_id: str) -> None:
    assert send(call, "GET", f"/jobs/{job_id}/status").body["latest_run"] is None


def test_a_frequency_of_null_changes_nothing(call: Call, job_id: str) -> None:
    answer = put(call, job_id, {"frequency": None})
    assert (answer.status, answer.body["version"]) == (200, 1)


def test_a_job_can_be_changed_to_run_at_once(call: Call, job_id: str) -> None:
    assert put(call, job_id, {"schedule_type": "IMMEDIATE"}).status == 200
    assert len(runs()) == 1
