"""Jobs that wait: what is accepted, what is woken, and what the watcher makes of its messages."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from types import ModuleType
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from duetime.store import Move

from tests.functions.conftest import Context, sample
from tests.functions.http import Call, send
from tests.functions.test_requests import count_items, valid

Load = Callable[[str], ModuleType]


def in_(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


def future(seconds: float, **changes: Any) -> dict[str, Any]:
    return valid(schedule_type="FUTURE", schedule_time=in_(seconds)) | changes


def cron(expression: str = "0 6 * * *", **changes: Any) -> dict[str, Any]:
    return valid(schedule_type="CRON", cron_expression=expression) | changes


def schedules() -> list[dict[str, Any]]:
    client = boto3.client("scheduler")
    return [
        client.get_schedule(Name=found["Name"], GroupName="wake-ups")
        for found in client.list_schedules(GroupName="wake-ups")["Schedules"]
    ]


def runs() -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = boto3.client("dynamodb").scan(TableName="runs")["Items"]
    return items


class TestAccepting:
    def test_many_jobs_in_one_minute_create_one_schedule(self, call: Call) -> None:
        minute = (datetime.now(UTC) + timedelta(hours=1)).replace(second=0, microsecond=0)
        for number in range(20):
            time = (minute + timedelta(seconds=number * 2.9)).isoformat()
            assert send(call, "POST", "/jobs", future(0, schedule_time=time)).status == 201
        (schedule,) = schedules()
        assert schedule["ScheduleExpression"] == f"at({minute - timedelta(minutes=2):%Y-%m-%dT%H:%M:%S})"

    def test_two_cold_functions_create_one_schedule(self, load_function: Load) -> None:
        """The second meets a conflict, which is all that it wanted."""
        event = sample("http_post_jobs_immediate")
        event["body"] = json.dumps(future(3600))
        for _ in range(2):
            assert load_function("job_service").handle(event, Context())["statusCode"] == 201
        assert len(schedules()) == 1

    def test_a_schedule_is_what_eventbridge_needs(self, call: Call) -> None:
        send(call, "POST", "/jobs", future(3600))
        (schedule,) = schedules()
        assert schedule["FlexibleTimeWindow"] == {"Mode": "OFF"}
        assert schedule["ActionAfterCompletion"] == "DELETE"
        assert len(schedule["Name"]) <= 64
        target = schedule["Target"]
        assert target["Arn"] == "arn:aws:sqs:us-east-1:123456789012:due"
        assert target["RoleArn"] == "arn:aws:iam::123456789012:role/wake-ups"
        assert target["DeadLetterConfig"] == {"Arn": "arn:aws:sqs:us-east-1:123456789012:due-dead"}
        assert json.loads(target["Input"]) == {"kind": "tick"}

    @pytest.mark.parametrize("code", ["ThrottlingException", "InternalServerException", "AccessDenied"])
    def test_without_its_wake_up_a_job_is_refused_with_503_and_nothing_is_written(
        self, load_function: Load, monkeypatch: pytest.MonkeyPatch, code: str
    ) -> None:
        service = load_function("job_service")

        def refuse(**_: Any) -> None:
            raise ClientError({"Error": {"Code": code, "Message": "secret insides"}}, "CreateSchedule")

        monkeypatch.setattr(service.wakeups._create.__self__._client, "create_schedule", refuse)
        event = sample("http_post_jobs_immediate")
        event["body"] = json.dumps(future(3600))
        answer = service.handle(event, Context())
        assert (answer["statusCode"], answer["headers"]["Retry-After"]) == (503, "5")
        problem = json.loads(answer["body"])
        assert problem["type"] == "urn:duetime:problem:unavailable"
        assert "secret" not in answer["body"]
        assert count_items() == 0

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            (valid(schedule_type="FUTURE"), "schedule_time"),
            (future(-60), "schedule_time"),
            (future(0, schedule_time="tomorrow"), "schedule_time"),
            (future(0, schedule_time="2030-01-01T00:00:00"), "schedule_time"),
            (future(0, schedule_time="9999-12-31T23:59:59+00:00"), "schedule_time"),
            (future(0, schedule_time="0001-01-01T00:00:00+14:00"), "schedule_time"),
            (future(0, schedule_time=1893456000), "schedule_time"),
            (valid(schedule_time=in_(60)), "schedule_time"),
            (valid(schedule_type="CRON"), "cron_expression"),
            (cron("0 0 31 2 *"), "cron_expression"),
            (cron("* * * * * *"), "cron_expression"),
            (cron("not a cron at all"), "cron_expression"),
            (cron(timezone="Mars/Olympus"), "timezone"),
            (cron(frequency="daily"), "frequency"),
            (valid(schedule_type="CRON", frequency="often"), "frequency"),
            (cron(interval_seconds=60), "interval_seconds"),
            (cron(dst_gap="jump"), "dst_gap"),
            (cron(dst_overlap="third"), "dst_overlap"),
            (cron(catch_up="some"), "catch_up"),
            (cron(jitter_seconds=86_400), "jitter_seconds"),
            (cron(jitter_seconds=-1), "jitter_seconds"),
            (cron(start_at=in_(600), end_at=in_(60)), "end_at"),
            (cron(end_at=in_(1)), "end_at"),
            (cron(start_at="2040-01-01T00:00:00Z"), "start_at"),
            (cron(start_at="9998-12-31T23:59:59Z"), "start_at"),
            (cron(start_at="0001-01-01T00:00:00Z"), "start_at"),
            (valid(schedule_type="INTERVAL"), "interval_seconds"),
            (valid(schedule_type="INTERVAL", interval_seconds=9), "interval_seconds"),
            (valid(schedule_type="INTERVAL", interval_seconds=60.5), "interval_seconds"),
            (valid(schedule_type="INTERVAL", interval_seconds=60, timezone="UTC"), "timezone"),
            (valid(max_concurrency=0), "max_concurrency"),
            (valid(overlap="twice"), "overlap"),
        ],
    )
    def test_a_schedule_that_cannot_be_kept_is_refused_by_its_field(
        self, call: Call, body: dict[str, Any], field: str
    ) -> None:
        answer = send(call, "POST", "/jobs", body)
        assert (answer.status, answer.fields) == (400, [field]), answer.body
        assert count_items() == 0

    def test_a_frequency_is_short_for_a_cron(self, call: Call) -> None:
        job_id = send(call, "POST", "/jobs", valid(schedule_type="CRON", frequency="daily")).body["job_id"]
        assert send(call, "GET", f"/jobs/{job_id}").body["cron_expression"] == "0 0 * * *"

    def test_a_recurring_job_shows_its_next_time_though_it_is_planned_already(self, call: Call) -> None:
        created = send(call, "POST", "/jobs", cron("* * * * *")).body
        job = send(call, "GET", f"/jobs/{created['job_id']}").body
        next_run_at = datetime.fromisoformat(job["next_run_at"])
        assert timedelta(0) <= next_run_at - datetime.now(UTC) <= timedelta(minutes=1)
        assert len(runs()) == 4


class TestPreview:
    def test_the_next_times_with_those_that_daylight_saving_moves(self, call: Call) -> None:
        schedule = {
            "schedule_type": "CRON",
            "cron_expression": "30 2 * * *",
            "timezone": "America/New_York",
            "from": "2026-03-07T12:00:00Z",
            "count": 2,
        }
        assert send(call, "POST", "/schedules/preview", schedule).body["items"] == [
            {
                "due_at": "2026-03-08T07:00:00.000Z",
                "nominal_at": "2026-03-08T07:00:00.000Z",
                "local_time": "2026-03-08T03:00:00-04:00",
                "flag": "gap",
                "wall_time": "2026-03-08T02:30:00",
            },
            {
                "due_at": "2026-03-09T06:30:00.000Z",
                "nominal_at": "2026-03-09T06:30:00.000Z",
                "local_time": "2026-03-09T02:30:00-04:00",
                "flag": None,
                "wall_time": None,
            },
        ]

    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ({"cron_expression": "0 0 31 2 *"}, "cron_expression"),
            ({"count": 101}, "count"),
            ({"from": "yesterday"}, "from"),
            ({"jitter_seconds": 90_000}, "jitter_seconds"),
            ({"from": "0001-01-01T00:00:00Z"}, "from"),
            ({"from": "9999-12-31T00:00:00Z"}, "from"),
            ({"name": "a"}, "name"),
        ],
    )
    def test_a_schedule_that_cannot_be_kept_is_refused_here_too(
        self, call: Call, change: dict[str, Any], field: str
    ) -> None:
        schedule = {"schedule_type": "CRON", "cron_expression": "0 6 * * *"} | change
        answer = send(call, "POST", "/schedules/preview", schedule)
        assert (answer.status, answer.fields) == (400, [field]), answer.body

    def test_upcoming_has_the_jobs_jitter_in_it(self, call: Call) -> None:
        job_id = send(call, "POST", "/jobs", cron(jitter_seconds=600)).body["job_id"]
        items = send(call, "GET", f"/jobs/{job_id}/upcoming", query={"count": "3"}).body["items"]
        assert len(items) == 3
        late = {
            datetime.fromisoformat(item["due_at"]) - datetime.fromisoformat(item["nominal_at"])
            for item in items
        }
        assert len(late) == 1
        assert timedelta(0) <= late.pop() < timedelta(minutes=10)

    def test_a_job_that_is_over_has_nothing_upcoming(self, call: Call) -> None:
        job_id = send(call, "POST", "/jobs", cron()).body["job_id"]
        send(call, "DELETE", f"/jobs/{job_id}")
        assert send(call, "GET", f"/jobs/{job_id}/upcoming").body == {"items": []}


class TestWatcher:
    def waiting_job(self, call: Call) -> str:
        """A job that was submitted long ago and is due now."""
        job_id: str = send(call, "POST", "/jobs", future(3600)).body["job_id"]
        boto3.client("dynamodb").update_item(
            TableName="jobs",
            Key={"job_id": {"S": job_id}},
            UpdateExpression="SET next_run_at = :now, schedule_time = :now",
            ExpressionAttributeValues={":now": {"S": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}.000Z"}},
        )
        return job_id

    def test_a_tick_plans_what_is_due_and_asks_for_patrols(
        self, call: Call, load_function: Load, queue_urls: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job_id = self.waiting_job(call)
        watcher = load_function("watcher")
        moved: list[str] = []

        def move_on(moves: Sequence[Move]) -> list[str]:
            """moto does not understand the statements; the contract tier tries them on MiniStack."""
            moved.extend(move.seen.job_id for move in moves)
            return []

        monkeypatch.setattr(watcher.store, "move_on", move_on)
        watcher.handle(sample("sqs_tick"), Context())
        assert [run["job_id"]["S"] for run in runs()] == moved == [job_id]
        asked = boto3.client("sqs").get_queue_attributes(
            QueueUrl=queue_urls["due"], AttributeNames=["ApproximateNumberOfMessagesDelayed"]
        )
        assert int(asked["Attributes"]["ApproximateNumberOfMessagesDelayed"]) >= 11

    def test_a_shard_of_its_own_is_swept(self, call: Call) -> None:
        call("watcher", sample("sqs_sweep_shard"))
        assert runs() == []

    def test_a_patrol_hints_a_forgotten_run_again(self, call: Call, queue_urls: dict[str, str]) -> None:
        send(call, "POST", "/jobs", valid(priority="low"))
        boto3.client("dynamodb").update_item(
            TableName="runs",
            Key={name: runs()[0][name] for name in ("job_id", "run_id")},
            UpdateExpression="SET deadline_at = :then, watch_at = :then",
            ExpressionAttributeValues={":then": {"S": "2020-01-01T00:00:00.000Z"}},
        )
        call("watcher", sample("sqs_patrol"))
        assert runs()[0]["hints"] == {"N": "1"}
        received = boto3.client("sqs").receive_message(QueueUrl=queue_urls["low"])
        assert len(received["Messages"]) == 1

    def test_a_message_that_nobody_here_wrote_comes_back_and_ends_on_the_dead_letter_queue(
        self, call: Call
    ) -> None:
        event = sample("sqs_tick")
        event["Records"][0]["body"] = "{}"
        with pytest.raises(KeyError):
            call("watcher", event)

    def test_a_sweep_that_could_not_write_gives_its_message_back(
        self, call: Call, load_function: Load, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.waiting_job(call)
        watcher = load_function("watcher")

        def refuse(**_: Any) -> None:
            raise ClientError({"Error": {"Code": "ThrottlingException", "Message": "no"}}, "PutItem")

        monkeypatch.setattr(watcher.store._client, "put_item", refuse)
        with pytest.raises(ExceptionGroup, match="a sweep was not complete"):
            watcher.handle(sample("sqs_tick"), Context())


def test_a_hint_that_comes_too_early_goes_back_for_the_rest(
    call: Call, queue_urls: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = send(call, "POST", "/jobs", future(100)).body["job_id"]
    run_id = runs()[0]["run_id"]["S"]
    sqs = boto3.client("sqs")
    body = {"job_id": job_id, "run_id": run_id, "not_before": "2026-11-18T07:00:00.000Z"}
    sqs.send_message(QueueUrl=queue_urls["medium"], MessageBody=json.dumps(body))
    message = sqs.receive_message(QueueUrl=queue_urls["medium"])["Messages"][0]
    event = sample("sqs_hint")
    event["Records"][0] |= {"body": message["Body"], "receiptHandle": message["ReceiptHandle"]}
    assert call("worker", event) == {"batchItemFailures": [{"itemIdentifier": "message-1"}]}
    assert runs()[0]["status"] == {"S": "QUEUED"}
    hidden = sqs.get_queue_attributes(
        QueueUrl=queue_urls["medium"], AttributeNames=["ApproximateNumberOfMessagesNotVisible"]
    )
    assert hidden["Attributes"]["ApproximateNumberOfMessagesNotVisible"] == "1"
