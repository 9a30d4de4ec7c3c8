"""Jobs at their time, on the deployed stack. What takes minutes is in bench/punctuality.py."""

import json
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from duetime_client import ApiError, Client

from tests.e2e.conftest import Account, a_request, ended_run, wait_for
from tests.listener import Answer, Received, listening


def at(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")


def future(seconds: float, **changes: Any) -> dict[str, Any]:
    return a_request(schedule_type="FUTURE", schedule_time=at(seconds), **changes)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def job_table(account: Account) -> Any:
    return account.service("dynamodb"), account.output("JobsTableName")


def test_a_future_job_starts_at_its_time_and_not_before(client: Client) -> None:
    with listening() as target:
        job_id = client.create_job(future(3.25, task={"type": "http", "url": target.url}))["job_id"]
        run = ended_run(client, job_id)
    assert run["status"] == "SUCCEEDED"
    assert moment(run["start_time"]) >= moment(run["due_at"])
    assert len(target.received) == 1
    assert client.get_job(job_id)["status"] == "COMPLETED"


def test_many_jobs_in_one_minute_are_one_schedule(client: Client, account: Account) -> None:
    minute = (datetime.now(UTC) + timedelta(hours=7)).replace(second=0, microsecond=0)
    for number in range(12):
        time_ = (minute + timedelta(seconds=number * 4.5)).isoformat()
        client.create_job(a_request(schedule_type="FUTURE", schedule_time=time_))
    found = account.service("scheduler").list_schedules(GroupName=account.output("ScheduleGroupName"))
    wake_up = f"wake-{minute - timedelta(minutes=2):%Y-%m-%dT%H-%M}Z"
    assert [schedule["Name"] for schedule in found["Schedules"]].count(wake_up) == 1


def test_a_job_that_waited_is_planned_by_a_tick_and_starts_at_its_time(
    client: Client, account: Account
) -> None:
    job_id = client.create_job(future(3600))["job_id"]
    # As if an hour had passed: its time is six seconds from now, and the minute's wake-up comes.
    dynamodb, table = job_table(account)
    due = f"{at(6)[:23]}Z"
    dynamodb.update_item(
        TableName=table,
        Key={"job_id": {"S": job_id}},
        UpdateExpression="SET next_run_at = :due, schedule_time = :due",
        ExpressionAttributeValues={":due": {"S": due}},
    )
    account.service("sqs").send_message(
        QueueUrl=account.output("DueQueueUrl"), MessageBody=json.dumps({"kind": "tick"})
    )
    run = ended_run(client, job_id)
    assert (run["status"], run["due_at"]) == ("SUCCEEDED", due)
    assert moment(run["start_time"]) >= moment(due)


def test_a_paused_job_does_not_start_and_a_resumed_one_catches_up(client: Client) -> None:
    job_id = client.create_job(future(2))["job_id"]
    assert client.pause_job(job_id)["status"] == "PAUSED"
    wait_for(lambda: client.list_runs(job_id)["items"][0]["status"] == "CANCELLED")
    assert client.list_runs(job_id)["items"][0]["error_message"] == "the job is paused"
    client.resume_job(job_id)
    run = ended_run(client, job_id)
    assert (run["status"], len(client.list_runs(job_id)["items"])) == ("SUCCEEDED", 2)


def test_a_rescheduled_job_starts_once_at_its_new_time(client: Client) -> None:
    with listening() as target:
        job_id = client.create_job(future(2, task={"type": "http", "url": target.url}))["job_id"]
        changed = client.update_job(job_id, {"schedule_time": at(4)})
        wait_for(lambda: client.get_job(job_id)["status"] == "COMPLETED")
    runs = {run["due_at"]: run["status"] for run in client.list_runs(job_id)["items"]}
    assert sorted(runs.values()) == ["CANCELLED", "SUCCEEDED"]
    assert runs[changed["next_run_at"]] == "SUCCEEDED"
    assert len(target.received) == 1


def test_a_cancelled_job_does_not_start(client: Client) -> None:
    with listening() as target:
        job_id = client.create_job(future(1.5, task={"type": "http", "url": target.url}))["job_id"]
        client.cancel_job(job_id)
        wait_for(lambda: client.list_runs(job_id)["items"][0]["status"] == "CANCELLED")
    assert target.received == []


def test_a_caller_who_insists_on_an_old_version_is_refused(client: Client) -> None:
    job_id = client.create_job(future(3600))["job_id"]
    client.update_job(job_id, {"name": "another"})
    with pytest.raises(ApiError) as refused:
        client.pause_job(job_id, if_match=1)
    assert refused.value.status == 412


def blocking() -> tuple[Callable[[Received], Answer], threading.Event, threading.Event]:
    reached, release = threading.Event(), threading.Event()

    def respond(_: Received) -> Answer:
        reached.set()
        release.wait(60)
        return Answer()

    return respond, reached, release


def test_a_run_that_waits_for_its_turn_starts_when_the_one_before_has_ended(client: Client) -> None:
    respond, reached, release = blocking()
    with listening(respond) as target:
        job_id = client.create_job(a_request(task={"type": "http", "url": target.url}))["job_id"]
        assert reached.wait(60)
        second = client.run_job_now(job_id)["run_id"]
        time.sleep(1)
        assert client.get_run(job_id, second)["status"] == "QUEUED"
        assert len(target.received) == 1
        release.set()
        wait_for(lambda: client.get_run(job_id, second)["status"] == "SUCCEEDED")
    assert len(target.received) == 2


def test_a_run_whose_hint_was_lost_is_hinted_again(client: Client, account: Account) -> None:
    job_id = client.create_job(future(3, priority="low"))["job_id"]
    time.sleep(0.5)
    # Nobody else's test uses this queue at this moment: one test runs at a time.
    account.service("sqs").purge_queue(QueueUrl=account.output("RunQueueUrlLow"))
    run = ended_run(client, job_id)
    assert run["status"] == "SUCCEEDED"
    assert moment(run["start_time"]) - moment(run["due_at"]) > timedelta(seconds=15)


def test_the_next_times_are_previewed_without_a_job(client: Client) -> None:
    schedule = {"schedule_type": "CRON", "cron_expression": "0 6 * * *", "timezone": "Asia/Tokyo", "count": 3}
    items = client.preview_schedule(schedule)["items"]
    assert [item["due_at"][11:16] for item in items] == ["21:00", "21:00", "21:00"]
