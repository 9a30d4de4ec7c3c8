"""Finding, batches, bulk operations, the audit and the explanation, on the deployed stack."""

import time
import uuid
from typing import Any

import pytest
from duetime_client import ApiError, Client

from tests.e2e.conftest import Account, a_request, ended_run, wait_for

LATER: dict[str, Any] = {"schedule_type": "CRON", "frequency": "yearly"}


@pytest.fixture
def owner(account: Account) -> Client:
    """With a list of its own."""
    return account.client_with(account.output("OperatorPolicyArn"))


def names(page: dict[str, Any]) -> list[str]:
    return [job["name"] for job in page["items"]]


def test_a_batch_has_an_outcome_for_each_and_can_be_repeated(owner: Client) -> None:
    jobs = [a_request(name="now"), a_request(name="bad", priority="urgent"), a_request(name="later", **LATER)]
    key = uuid.uuid4().hex
    first = owner.create_jobs(jobs, idempotency_key=key)["items"]
    assert [item["status_code"] for item in first] == [201, 400, 201]
    assert first[1]["problem"]["errors"][0]["field"] == "jobs.1.priority"
    again = owner.create_jobs(jobs, idempotency_key=key)["items"]
    ids = [item["job"] and item["job"]["job_id"] for item in first]
    assert [item["job"] and item["job"]["job_id"] for item in again] == ids
    with pytest.raises(ApiError, match="another request"):
        owner.create_jobs([a_request(name="other")], idempotency_key=key)
    assert sorted(names(owner.list_jobs())) == ["later", "now"]
    assert ended_run(owner, ids[0])["status"] == "SUCCEEDED"


def test_jobs_are_found_by_what_people_ask_for(owner: Client) -> None:
    made = owner.create_jobs(
        [
            a_request(name="payout eu", tags=["money"], priority="high", **LATER),
            a_request(name="payout us", tags=["money"], **LATER),
            a_request(name="report"),
        ]
    )["items"]
    ended_run(owner, made[2]["job"]["job_id"])
    for question, expected in (
        ({}, {"payout eu", "payout us", "report"}),
        ({"status": "pending"}, {"payout eu", "payout us"}),
        ({"status": "completed"}, {"report"}),
        ({"status": "failed"}, set()),
        ({"tag": "money"}, {"payout eu", "payout us"}),
        ({"priority": "high"}, {"payout eu"}),
        ({"schedule_type": "IMMEDIATE"}, {"report"}),
        ({"name_prefix": "payout u"}, {"payout us"}),
        ({"due_before": "9000-01-01T00:00:00Z"}, {"payout eu", "payout us"}),
        ({"due_from": "9000-01-01T00:00:00Z"}, set()),
    ):
        assert set(names(owner.list_jobs(**question))) == expected, question
    first = owner.list_jobs(limit=2)
    second = owner.list_jobs(limit=2, page_token=first["next_page_token"])
    assert (len(first["items"]), len(second["items"]), second["next_page_token"]) == (2, 1, None)
    with pytest.raises(ApiError) as caught:
        owner.list_jobs(statsu="pending")
    assert caught.value.problem["errors"][0]["field"] == "statsu"


def test_many_are_paused_resumed_and_cancelled_by_filter(owner: Client) -> None:
    owner.create_jobs([a_request(name=f"night {n}", tags=["night"], **LATER) for n in range(5)])
    owner.create_jobs([a_request(name="day", **LATER)])
    first = owner.change_jobs("pause", {"tag": "night"}, limit=3)
    assert len(first["changed"]) == 3
    second = owner.change_jobs("pause", {"tag": "night"}, limit=3, page_token=first["next_page_token"])
    assert (len(second["changed"]), second["next_page_token"]) == (2, None)
    wait_for(lambda: len(owner.list_jobs(status="PAUSED")["items"]) == 5, 10)
    assert len(owner.change_jobs("resume", {"status": "PAUSED", "name_prefix": "night"})["changed"]) == 5
    assert len(owner.change_jobs("cancel", {"tag": "night"})["changed"]) == 5
    wait_for(lambda: names(owner.list_jobs(status="pending")) == ["day"], 10)
    with pytest.raises(ApiError, match="every job"):
        owner.change_jobs("cancel", {})


def test_what_was_done_to_a_job_is_on_record(owner: Client) -> None:
    job_id = owner.create_job(a_request(**LATER))["job_id"]
    owner.update_job(job_id, {"priority": "low"})
    owner.pause_job(job_id)
    owner.resume_job(job_id)
    run_id = owner.run_job_now(job_id)["run_id"]
    owner.cancel_job(job_id)
    events = owner.list_events(job_id)["items"]
    assert [event["action"] for event in events] == [
        "cancelled",
        "ran",
        "resumed",
        "paused",
        "changed",
        "created",
    ]
    assert events[1]["run_id"] == run_id
    assert events[4]["changes"] == {"priority": {"from": "medium", "to": "low"}}
    assert {event["source"]["address"] for event in events} == {"127.0.0.1"}
    pages, token = [], None
    while True:
        page = owner.list_events(job_id, limit=2, page_token=token)
        pages += page["items"]
        if (token := page["next_page_token"]) is None:
            break
    assert pages == events


def test_a_run_asked_for_twice_under_one_key_is_one_run(owner: Client) -> None:
    job_id = owner.create_job(a_request(**LATER))["job_id"]
    first = owner.run_job_now(job_id, idempotency_key="k")
    assert owner.run_job_now(job_id, idempotency_key="k")["run_id"] == first["run_id"]
    assert owner.run_job_now(job_id, idempotency_key="l")["run_id"] != first["run_id"]
    assert len(owner.list_runs(job_id)["items"]) == 2


def test_why_it_did_not_run(owner: Client) -> None:
    job_id = owner.create_job(a_request(schedule_type="INTERVAL", interval_seconds=10))["job_id"]
    ran = ended_run(owner, job_id)
    assert owner.explain(job_id, ran["due_at"])["verdict"] == "ran"
    owner.pause_job(job_id)
    due = wait_for(lambda: owner.get_job(job_id)["status"] == "PAUSED" and time.time())
    asleep = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(due + 60))
    explained = owner.explain(job_id, asleep)
    assert (explained["verdict"], explained["trail"][-1]["by"]) == ("paused", owner.get_job(job_id)["owner"])


def test_runs_are_found_by_status_and_time(owner: Client) -> None:
    job_id = owner.create_job(a_request())["job_id"]
    run = ended_run(owner, job_id)
    assert [r["run_id"] for r in owner.list_runs(job_id, status="SUCCEEDED")["items"]] == [run["run_id"]]
    assert owner.list_runs(job_id, status="CANCELLED")["items"] == []
    assert owner.list_runs(job_id, due_from="2000-01-01T00:00:00Z")["items"]
    assert owner.list_runs(job_id, due_before="2000-01-01T00:00:00Z")["items"] == []


def test_a_quota_of_jobs_that_have_not_ended(account: Account) -> None:
    """cdk.json gives this user three in the local environment."""
    tiny = account.client_with(account.output("OperatorPolicyArn"), name="tiny")
    tiny.change_jobs("cancel", {"name_prefix": "e2e"})
    for _ in range(3):
        tiny.create_job(a_request(**LATER))
    with pytest.raises(ApiError) as caught:
        tiny.create_job(a_request(**LATER))
    assert caught.value.status == 429
    assert caught.value.problem["type"] == "urn:duetime:problem:quota-exceeded"
    with pytest.raises(ApiError, match="quota"):
        tiny.create_jobs([a_request(**LATER)])
    tiny.change_jobs("cancel", {"name_prefix": "e2e"})


def test_health_says_how_far_behind_each_stage_is(client: Client) -> None:
    health = client.get_health()
    assert set(health["stages"]) == {"waiting", "queued", "running", "failed"}
    assert health["version"]
