"""What owners, and the systems that do their work, can do to runs over HTTP."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from duetime.callback_tokens import digest_of
from duetime.dynamo_items import item_to_job, run_to_item
from duetime.run import planned_run
from duetime.watch import DEAD_SPREAD, dead_key, spread

from tests.functions.http import Answer, Call, send
from tests.functions.test_changes import OTHER
from tests.functions.test_requests import valid
from tests.functions.test_schedules import cron, runs

TOKEN = "the attempt's secret"


def instant(seconds: float = 0) -> str:
    return f"{datetime.now(UTC) + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%S}.000Z"


@pytest.fixture
def run(call: Call) -> str:
    """The path of a run that waits."""
    job_id = send(call, "POST", "/jobs", valid()).body["job_id"]
    return f"/jobs/{job_id}/runs/{runs()[0]['run_id']['S']}"


def write(path: str, **values: Any) -> None:
    """Make the run as the test wants it, behind Duetime's back."""
    _, _, job_id, _, run_id = path.split("/")
    names = {f"#{name}": name for name in values}
    boto3.client("dynamodb").update_item(
        TableName="runs",
        Key={"job_id": {"S": job_id}, "run_id": {"S": run_id}},
        UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in values),
        ExpressionAttributeNames=names,
        ExpressionAttributeValues={
            f":{name}": {"N": str(value)} if isinstance(value, int) else {"S": value}
            for name, value in values.items()
        },
    )


def under_way(path: str, **more: Any) -> None:
    held = {"status": "RUNNING", "executor_id": "w", "fence": 1, "attempt": 1, "claimed_at": instant()}
    write(path, start_time=instant(), deadline_at=instant(60), **held, **more)


def reporting(path: str) -> None:
    under_way(path, callback_digest=digest_of(TOKEN), heartbeat_seconds=60, times_out_at=instant(3600))


def dead(path: str) -> None:
    run_id = path.rsplit("/", 1)[1]
    owner = "arn:aws:iam::123456789012:role/payments"
    key = dead_key(owner, spread(run_id, DEAD_SPREAD))
    write(path, status="DEAD_LETTERED", end_time=instant(), attempt=4, watch_key=key, watch_at=instant())


def report(call: Call, path: str, verb: str, body: Any, token: str = TOKEN, **options: Any) -> Answer:
    headers = {"duetime-callback-token": token}
    return send(call, "POST", f"{path}/{verb}", body, headers=headers, **options)


class TestListing:
    def test_a_range_of_times_goes_by_when_runs_are_due_and_not_by_their_ids(self, call: Call) -> None:
        """Nominally at seven, and by its jitter due at twenty to eight."""
        body = cron("0 7 * * *") | {"jitter_seconds": 3000}
        job_id = send(call, "POST", "/jobs", body).body["job_id"]
        client = boto3.client("dynamodb")
        item = client.get_item(TableName="jobs", Key={"job_id": {"S": job_id}})["Item"]
        seven = datetime(2031, 1, 31, 7, tzinfo=UTC)
        planned = planned_run(item_to_job(item), seven, seven, jitter=timedelta(minutes=40))
        client.put_item(TableName="runs", Item=run_to_item(planned))

        def found(since: str, until: str) -> list[str]:
            query = {"due_from": f"2031-01-31T{since}Z", "due_before": f"2031-01-31T{until}Z"}
            listed = send(call, "GET", f"/jobs/{job_id}/runs", query=query).body["items"]
            return [each["run_id"] for each in listed]

        assert found("07:30:00", "08:00:00") == [planned.run_id]
        assert found("06:30:00", "07:30:00") == []
        assert found("07:41:00", "08:00:00") == []


class TestCancel:
    def test_a_run_that_waits_is_cancelled(self, call: Call, run: str) -> None:
        answer = send(call, "POST", f"{run}/cancel")
        assert (answer.status, answer.body["status"]) == (202, "CANCELLED")
        assert answer.body["error_message"].startswith(
            "it was cancelled by arn:aws:iam::123456789012:role/payments"
        )
        assert send(call, "POST", f"{run}/cancel").status == 202

    def test_a_run_under_way_is_told_to(self, call: Call, run: str) -> None:
        under_way(run)
        answer = send(call, "POST", f"{run}/cancel")
        assert (answer.body["status"], "role/payments" in answer.body["cancel_requested"]) == (
            "RUNNING",
            True,
        )

    def test_cancelling_the_job_cancels_its_runs(self, call: Call, run: str) -> None:
        assert send(call, "DELETE", run.split("/runs/")[0]).body["status"] == "CANCELLED"
        assert send(call, "GET", run).body["status"] == "CANCELLED"

    @pytest.mark.parametrize("verb", ["cancel", "redrive"])
    def test_anothers_run_does_not_exist(self, call: Call, run: str, verb: str) -> None:
        assert send(call, "POST", f"{run}/{verb}", user_arn=OTHER).status == 404
        assert send(call, "GET", run).body["status"] == "QUEUED"


class TestCallbacks:
    def test_a_heartbeat_is_answered_with_what_is_asked_of_the_work(self, call: Call, run: str) -> None:
        reporting(run)
        answer = report(call, run, "heartbeat", {"checkpoint": {"done": 1}})
        assert (answer.status, answer.body["cancel_requested"]) == (200, False)
        send(call, "POST", f"{run}/cancel")
        assert report(call, run, "heartbeat", {}).body["cancel_requested"] is True
        assert send(call, "GET", run).body["checkpoint"] == {"done": 1}

    def test_the_token_counts_and_not_who_signs(self, call: Call, run: str) -> None:
        reporting(run)
        answer = report(call, run, "complete", {"result": {"paid": 3}}, user_arn=OTHER)
        assert (answer.status, answer.body) == (200, {"status": "SUCCEEDED"})
        assert send(call, "GET", run).body["result"] == {"paid": 3}

    def test_a_failure_is_recorded(self, call: Call, run: str) -> None:
        reporting(run)
        body = {"error": "no such account", "retry": True, "retry_after_seconds": 60}
        assert report(call, run, "fail", body).body == {"status": "RETRYING"}
        assert send(call, "GET", run).body["attempts"][0]["error"] == "no such account"

    @pytest.mark.parametrize(
        ("verb", "body"), [("heartbeat", {}), ("complete", {}), ("fail", {"error": "x"})]
    )
    def test_another_token_and_an_attempt_that_is_over_are_refused(
        self, call: Call, run: str, verb: str, body: Any
    ) -> None:
        assert report(call, run, verb, body).status == 409
        reporting(run)
        assert report(call, run, verb, body, token="another").status == 409

    @pytest.mark.parametrize(
        ("verb", "body", "field"),
        [
            ("fail", {}, "error"),
            ("fail", {"error": ""}, "error"),
            ("fail", {"error": "x", "retry_after_seconds": 901}, "retry_after_seconds"),
            ("heartbeat", {"checkpoint": "x" * 5000}, "checkpoint"),
            ("heartbeat", {"colour": 1}, "colour"),
            ("complete", {"result": "x" * 300_000}, "result"),
        ],
    )
    def test_a_bad_report_is_refused_by_its_field(
        self, call: Call, run: str, verb: str, body: Any, field: str
    ) -> None:
        reporting(run)
        answer = report(call, run, verb, body)
        assert (answer.status, answer.fields) == (400, [field])

    def test_a_report_without_a_token_is_refused(self, call: Call, run: str) -> None:
        answer = send(call, "POST", f"{run}/complete", {})
        assert (answer.status, answer.fields) == (400, ["duetime-callback-token"])

    def test_a_run_that_does_not_exist_is_404(self, call: Call, run: str) -> None:
        assert report(call, run.replace("-1-", "-9-"), "complete", {}).status == 404


class TestDeadLetters:
    def test_they_are_listed_and_redriven(self, call: Call, run: str) -> None:
        assert send(call, "GET", "/dead-letters").body == {"items": [], "next_page_token": None}
        dead(run)
        listed = send(call, "GET", "/dead-letters").body["items"]
        assert [letter["status"] for letter in listed] == ["DEAD_LETTERED"]
        answer = send(call, "POST", f"{run}/redrive")
        assert (answer.status, answer.body["status"], answer.body["max_attempt"]) == (202, "QUEUED", 8)
        assert send(call, "GET", "/dead-letters").body["items"] == []
        assert send(call, "POST", f"{run}/redrive").status == 409

    def test_many_are_redriven_by_the_page(self, call: Call) -> None:
        for _ in range(5):
            send(call, "POST", "/jobs", valid())
        for item in runs():
            dead(f"/jobs/{item['job_id']['S']}/runs/{item['run_id']['S']}")
        first = send(call, "POST", "/dead-letters/redrive", {"limit": 3})
        assert (len(first.body["redriven"]), first.body["refused"]) == (3, [])
        body = {"limit": 3, "page_token": first.body["next_page_token"]}
        second = send(call, "POST", "/dead-letters/redrive", body)
        assert (len(second.body["redriven"]), second.body["next_page_token"]) == (2, None)

    def test_a_letter_of_a_cancelled_job_is_refused_and_the_others_are_not(
        self, call: Call, run: str
    ) -> None:
        dead(run)
        job_id = run.split("/")[2]
        boto3.client("dynamodb").update_item(
            TableName="jobs",
            Key={"job_id": {"S": job_id}},
            UpdateExpression="SET #status = :cancelled",
            ExpressionAttributeNames={"#status": "status"},
            ExpressionAttributeValues={":cancelled": {"S": "CANCELLED"}},
        )
        answer = send(call, "POST", "/dead-letters/redrive", {})
        assert (answer.body["redriven"], len(answer.body["refused"])) == ([], 1)
        assert send(call, "POST", f"{run}/redrive").status == 409

    def test_anothers_are_not_seen(self, call: Call, run: str) -> None:
        dead(run)
        assert send(call, "GET", "/dead-letters", user_arn=OTHER).body["items"] == []
        assert send(call, "POST", "/dead-letters/redrive", {}, user_arn=OTHER).body["redriven"] == []

    @pytest.mark.parametrize("token", ["nonsense", "e30", "WyJhIl0", "!!!"])
    def test_a_page_token_that_nobody_gave_is_refused(self, call: Call, token: str) -> None:
        answer = send(call, "GET", "/dead-letters", query={"page_token": token})
        assert (answer.status, answer.fields) == (400, ["page_token"])


class TestLogs:
    def put(self, path: str, attempt: int, *texts: str) -> None:
        _, _, job_id, _, run_id = path.split("/")
        boto3.client("dynamodb").put_item(
            TableName="records",
            Item={
                "subject": {"S": f"log#{job_id}#{run_id}"},
                "entry": {"S": f"{attempt:03d}#00"},
                "attempt": {"N": str(attempt)},
                "number": {"N": "0"},
                "lines": {"S": json.dumps([[f"2026-11-18T07:00:0{attempt}.000Z", text] for text in texts])},
            },
        )

    def test_a_log_is_read_by_run_attempt_time_and_length(self, call: Call, run: str) -> None:
        self.put(run, 1, "one", "two")
        self.put(run, 2, "three")
        job = run.split("/runs/")[0]

        def texts(**query: str) -> list[str]:
            return [line["text"] for line in send(call, "GET", f"{job}/logs", query=query).body["items"]]

        assert texts() == ["one", "two", "three"]
        assert texts(run_id=run.rsplit("/", 1)[1]) == ["one", "two", "three"]
        assert texts(tail="2") == ["two", "three"]
        assert texts(attempt="1") == ["one", "two"]
        assert texts(since="2026-11-18T07:00:02Z") == ["three"]

    def test_a_job_that_has_not_run_has_no_log(self, call: Call) -> None:
        job_id = send(call, "POST", "/jobs", cron()).body["job_id"]
        assert send(call, "GET", f"/jobs/{job_id}/logs").body == {
            "run_id": None,
            "items": [],
            "log_url": None,
        }

    @pytest.mark.parametrize(
        ("query", "field"),
        [({"since": "yesterday"}, "since"), ({"tail": "0"}, "tail"), ({"attempt": "x"}, "attempt")],
    )
    def test_a_bad_question_is_refused(self, call: Call, run: str, query: dict[str, str], field: str) -> None:
        answer = send(call, "GET", f"{run.split('/runs/')[0]}/logs", query=query)
        assert (answer.status, answer.fields) == (400, [field])

    def test_anothers_log_does_not_exist(self, call: Call, run: str) -> None:
        assert send(call, "GET", f"{run.split('/runs/')[0]}/logs", user_arn=OTHER).status == 404

    def test_a_large_result_and_a_long_log_are_behind_urls(self, call: Call, run: str) -> None:
        write(run, status="SUCCEEDED", log_key="logs/x", result_key="results/y", end_time=instant())
        body = send(call, "GET", run).body
        assert "logs/x" in body["log_url"]
        assert "results/y" in body["result_url"]
