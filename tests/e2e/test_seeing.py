"""What the deployed stack says about itself: every metric, from the log events that CloudWatch would make it of, with
the value that a known story must give; what is late while it waits; and what is missed."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from duetime.due_messages import Audit, DueMessage, Tick
from duetime.instants import format_instant, milliseconds_between, parse_instant
from duetime_client import Client

from tests.e2e.conftest import Account, a_request, ended_run, wait_for
from tests.listener import Answer, Received, listening

PREFIX = "duetime-local"
TRACE = "1-67891233-abcdef012345678912345678"


@dataclass
class Onlooker:
    """Reads what the functions have logged since it began to look, and does what only an administrator can."""

    account: Account
    since_ms: int

    def lines(self, function: str) -> list[dict[str, Any]]:
        pages = (
            self.account.service("logs")
            .get_paginator("filter_log_events")
            .paginate(logGroupName=f"/aws/lambda/{PREFIX}-{function}", startTime=self.since_ms)
        )
        texts = [event["message"] for page in pages for event in page["events"]]
        lines = [json.loads(text) for text in texts if text.startswith("{")]
        # The emulator's filter goes by when it wrote the log down.
        return [
            line for line in lines if line.get("_aws", {}).get("Timestamp", self.since_ms) >= self.since_ms
        ]

    def values(self, function: str, metric: str, **dimensions: str) -> list[float]:
        """All values of a metric under one of its sets of dimensions, in order of size."""
        wanted = {"environment": "local"} | dimensions
        found: list[float] = []
        for line in self.lines(function):
            directive = line.get("_aws", {}).get("CloudWatchMetrics", [{}])[0]
            names = [each["Name"] for each in directive.get("Metrics", [])]
            sets = [set(names) for names in directive.get("Dimensions", [])]
            if metric in names and set(wanted) in sets and wanted.items() <= line.items():
                assert directive["Namespace"] == "Duetime"
                found += line[metric]
        return sorted(found)

    def send_due(self, message: DueMessage) -> None:
        queue_url = self.account.output("DueQueueUrl")
        body = json.dumps(message.to_body())
        self.account.service("sqs").send_message(QueueUrl=queue_url, MessageBody=body)

    def items(self, table: str, **subject: str) -> list[dict[str, Any]]:
        ((name, value),) = subject.items()
        found: list[dict[str, Any]] = self.account.service("dynamodb").query(
            TableName=self.account.output(f"{table}TableName"),
            KeyConditionExpression="#name = :value",
            ExpressionAttributeNames={"#name": name},
            ExpressionAttributeValues={":value": {"S": value}},
        )["Items"]
        return found

    def runs_of(self, job_id: str) -> list[dict[str, Any]]:
        return self.items("Runs", job_id=job_id)

    def told_of(self, job_id: str) -> list[tuple[str, str]]:
        events = self.items("Records", subject=f"events#{job_id}")
        return [(event["action"]["S"], event["run_id"]["S"]) for event in events if "run_id" in event]

    @contextmanager
    def nobody_working_on(self, priority: str) -> Iterator[str]:
        """While the queue of that priority has no worker; gives its URL."""
        client, queue_url = (
            self.account.service("lambda"),
            self.account.output(f"RunQueueUrl{priority.title()}"),
        )
        name = queue_url.rsplit("/", 1)[1]
        sources = client.list_event_source_mappings()["EventSourceMappings"]
        (source,) = [each for each in sources if each["EventSourceArn"].endswith(f":{name}")]
        client.update_event_source_mapping(UUID=source["UUID"], Enabled=False)
        try:
            yield queue_url
        finally:
            client.update_event_source_mapping(UUID=source["UUID"], Enabled=True)


@pytest.fixture
def onlooker(account: Account) -> Onlooker:
    """Begins where nothing waits and nothing is open: what other tests left behind is put to rest."""
    dynamodb, jobs = account.service("dynamodb"), account.output("JobsTableName")
    shard = {"#shard": "shard"}
    pages = dynamodb.get_paginator("scan").paginate(
        TableName=jobs, FilterExpression="attribute_exists(#shard)", ExpressionAttributeNames=shard
    )
    for item in [item for page in pages for item in page["Items"]]:
        dynamodb.update_item(
            TableName=jobs,
            Key={"job_id": item["job_id"]},
            UpdateExpression="REMOVE #shard, next_run_at",
            ExpressionAttributeNames=shard,
        )
    runs = account.output("RunsTableName")
    wait_for(lambda: not _open_runs(dynamodb, runs), 120)
    return Onlooker(account, int(time.time() * 1000) + 1)


def _open_runs(dynamodb: Any, table: str) -> list[Any]:
    """What planned ahead of its time is taken off the table; what is under way is waited for."""
    pages = dynamodb.get_paginator("scan").paginate(
        TableName=table, FilterExpression="attribute_exists(watch_key)"
    )
    items = [
        item for page in pages for item in page["Items"] if not item["watch_key"]["S"].startswith("dead#")
    ]
    for item in items:
        if item["status"]["S"] == "QUEUED":
            key = {name: item[name] for name in ("job_id", "run_id")}
            dynamodb.delete_item(TableName=table, Key=key)
    return items


def between(earlier: str, later: str) -> int:
    return milliseconds_between(parse_instant(earlier), parse_instant(later))


def all_of(look: Callable[[], list[float]], expected: Sequence[float]) -> None:
    """The stream is read in its own time; what is there in the end is what counts."""
    try:
        wait_for(lambda: look() == pytest.approx(sorted(expected)), 20)
    except AssertionError:
        assert look() == pytest.approx(sorted(expected))


def test_a_known_story_gives_every_metric_of_runs_and_workers_its_value(
    client: Client, onlooker: Onlooker
) -> None:
    def respond(request: Received) -> Answer:
        time.sleep(0.3 if request.path == "/slow" else 0)
        return Answer(500, b"no") if request.path == "/broken" else Answer()

    with listening(respond) as target:

        def submit(path: str) -> str:
            task = {"type": "http", "url": f"{target.url}{path}"}
            retry = {"kind": "fixed", "base_seconds": 1}
            job = a_request(task=task, priority="low", max_retries=1, retry=retry)
            return str(client.create_job(job)["job_id"])

        good = [submit("/slow" if number == 0 else "/fine") for number in range(5)]
        bad = [submit("/broken") for _ in range(2)]
        ends = [ended_run(client, job_id) for job_id in [*good, *bad]]

    assert [run["status"] for run in ends] == ["SUCCEEDED"] * 5 + ["DEAD_LETTERED"] * 2
    attempts = [attempt for run in ends for attempt in run["attempts"]]
    assert len(attempts) == 5 + 2 * 2
    # The claim comes some milliseconds before the start, and the start is never before the due time.
    late = [max(between(run["due_at"], run["attempts"][0]["claimed_at"]), 0) for run in ends]
    lasted = [between(each["start_time"], each["end_time"]) for each in attempts]
    assert max(lasted) >= 300

    expected: dict[str, list[int]] = {
        "RunsStarted": [1] * 7,
        "Lateness": late,
        "RunsEnded": [1] * 7,
        "SuccessRate": [1] * 5 + [0] * 2,
        "FailureRate": [0] * 5 + [1] * 2,
        "Latency": [between(run["due_at"], run["end_time"]) for run in ends],
        "Retries": [0] * 5 + [1] * 2,
        "Duration": lasted,
        "RunsDeadLettered": [1] * 2,
    }
    for metric, values in expected.items():
        for dimensions in ({}, {"priority": "low"}, {"task_type": "http"}):
            all_of(partial(onlooker.values, "status_feed", metric, **dimensions), values)
        assert onlooker.values("status_feed", metric, priority="high") == []

    assert sum(onlooker.values("worker", "BusySeconds")) == pytest.approx(sum(lasted) / 1000)
    for line in onlooker.lines("worker"):
        if "WorkerUtilisation" in line:
            (busy,), (capacity,) = line["BusySeconds"], line["CapacitySeconds"]
            assert busy < capacity
            assert line["WorkerUtilisation"] == [pytest.approx(100 * busy / capacity)]
    logged = [line for line in onlooker.lines("worker") if line.get("message") == "an attempt ended"]
    assert {(line["job_id"], line["run_id"], line["attempt"]) for line in logged} == {
        (run["job_id"], run["run_id"], attempt["attempt"]) for run in ends for attempt in run["attempts"]
    }


def test_what_does_not_happen_is_counted_and_neither_success_nor_failure(
    client: Client, onlooker: Onlooker
) -> None:
    soon = (datetime.now(UTC) + timedelta(seconds=100)).isoformat()
    cancelled = client.create_job(a_request(schedule_type="FUTURE", schedule_time=soon))["job_id"]
    client.cancel_job(cancelled)
    all_of(lambda: onlooker.values("status_feed", "RunsCancelled"), [1])

    def hang(_: Received) -> Answer:
        time.sleep(14)
        return Answer()

    with listening(hang) as target:
        task = {"type": "http", "url": target.url}
        request = a_request(schedule_type="INTERVAL", interval_seconds=10, task=task, max_retries=0)
        job_id = client.create_job(request)["job_id"]
        wait_for(lambda: any(run["status"] == "SKIPPED" for run in client.list_runs(job_id)["items"]), 60)
        client.cancel_job(job_id)
    skipped = [run for run in client.list_runs(job_id)["items"] if run["status"] == "SKIPPED"]
    all_of(lambda: onlooker.values("status_feed", "RunsSkipped"), [1] * len(skipped))


def test_a_tick_tells_how_it_swept_and_how_long_the_queues_are(client: Client, onlooker: Onlooker) -> None:
    with onlooker.nobody_working_on("high"):
        for _ in range(3):
            client.create_job(a_request(priority="high"))
        # Beyond what is planned at once, and within it some seconds later.
        later = (datetime.now(UTC) + timedelta(seconds=243)).isoformat()
        waiting = [
            client.create_job(a_request(schedule_type="FUTURE", schedule_time=later))["job_id"]
            for _ in range(2)
        ]
        assert [onlooker.runs_of(job_id) for job_id in waiting] == [[], []]
        wait_for(lambda: datetime.now(UTC) > datetime.fromisoformat(later) - timedelta(seconds=239))
        onlooker.send_due(Tick())
        wait_for(lambda: 3 in onlooker.values("watcher", "QueueLength", priority="high"))
    wait_for(lambda: sum(onlooker.values("watcher", "SweepSize")) == 2)
    assert [len(onlooker.runs_of(job_id)) for job_id in waiting] == [1, 1]
    times = onlooker.values("watcher", "SweepTime")
    assert len(times) == len(onlooker.values("watcher", "SweepSize"))
    assert min(times) > 0
    assert onlooker.values("watcher", "QueueLength") == []
    for job_id in waiting:
        client.cancel_job(job_id)


def test_a_job_whose_wake_up_and_hints_are_lost_runs_late_is_known_as_late_and_not_missed(
    client: Client, account: Account, onlooker: Onlooker
) -> None:
    start_at = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=10)
    request = a_request(
        schedule_type="INTERVAL", interval_seconds=86_400, start_at=start_at.isoformat(), priority="low"
    )
    job_id = client.create_job(request)["job_id"]
    due_at = _lose_wake_up(account, job_id, start_at)

    with onlooker.nobody_working_on("low") as queue_url:
        # What a later minute's tick, or the backstop, makes good.
        onlooker.send_due(Tick())
        (run,) = wait_for(lambda: onlooker.runs_of(job_id))
        assert run["due_at"]["S"] == format_instant(due_at)
        _delete_messages(account, queue_url, run["run_id"]["S"])
    marked = wait_for(lambda: [run for run in onlooker.runs_of(job_id) if "late_at" in run])[0]
    assert marked["status"]["S"] == "QUEUED"
    # The mark is written before it is counted.
    wait_for(lambda: max(onlooker.values("watcher", "WaitingLate"), default=0) >= 1)
    all_of(lambda: onlooker.values("status_feed", "RunsLate", priority="low"), [1])

    ended = ended_run(client, job_id)
    assert ended["status"] == "SUCCEEDED"
    late = between(ended["due_at"], ended["attempts"][0]["claimed_at"])
    assert late > 2000
    all_of(lambda: onlooker.values("status_feed", "Lateness", priority="low"), [late])
    # It was counted while it waited, and not again when it started.
    all_of(lambda: onlooker.values("status_feed", "RunsLate"), [1])

    onlooker.send_due(Audit((job_id,)))
    all_of(lambda: onlooker.values("watcher", "AuditedFires"), [1])
    assert onlooker.values("watcher", "MissedFires") == [0]
    assert onlooker.told_of(job_id) == []


def _lose_wake_up(account: Account, job_id: str, start_at: datetime) -> datetime:
    """The message that should have come two minutes before its time is gone. As it takes ten minutes to see that, the
    time is made to have just passed."""
    scheduler, group = account.service("scheduler"), account.output("ScheduleGroupName")
    minute = start_at.replace(second=0, microsecond=0) - timedelta(minutes=2)
    schedules = scheduler.list_schedules(GroupName=group)["Schedules"]
    wake_ups = [
        each["Name"]
        for each in schedules
        if f"at({minute:%Y-%m-%dT%H:%M}:00)"
        in scheduler.get_schedule(GroupName=group, Name=each["Name"])["ScheduleExpression"]
    ]
    assert len(wake_ups) == 1
    scheduler.delete_schedule(GroupName=group, Name=wake_ups[0])
    due_at = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=1)
    account.service("dynamodb").update_item(
        TableName=account.output("JobsTableName"),
        Key={"job_id": {"S": job_id}},
        UpdateExpression="SET start_at = :due, next_run_at = :due, audited_until = :before",
        ExpressionAttributeValues={
            ":due": {"S": format_instant(due_at)},
            ":before": {"S": format_instant(due_at - timedelta(milliseconds=1))},
        },
    )
    return due_at


def _delete_messages(account: Account, queue_url: str, run_id: str) -> None:
    sqs, deleted = account.service("sqs"), []

    def delete() -> bool:
        for message in sqs.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=10).get("Messages", []):
            sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=message["ReceiptHandle"])
            deleted.append(json.loads(message["Body"])["run_id"])
        return run_id in deleted

    wait_for(delete)


def test_a_planned_run_that_is_gone_is_missed_and_told_of(
    client: Client, account: Account, onlooker: Onlooker
) -> None:
    request = a_request(schedule_type="INTERVAL", interval_seconds=10)
    job_id = client.create_job(request)["job_id"]
    planned = onlooker.runs_of(job_id)
    lost = next(run for run in planned if parse_instant(run["due_at"]["S"]) > datetime.now(UTC))
    account.service("dynamodb").delete_item(
        TableName=account.output("RunsTableName"),
        Key={name: lost[name] for name in ("job_id", "run_id")},
    )
    due_at = parse_instant(lost["due_at"]["S"])
    wait_for(lambda: datetime.now(UTC) > due_at)
    onlooker.send_due(Audit((job_id,)))
    wait_for(lambda: onlooker.values("watcher", "AuditedFires"))
    onlooker.send_due(Audit((job_id,)))
    wait_for(lambda: len(onlooker.values("watcher", "AuditedFires")) == 2)

    assert onlooker.values("watcher", "MissedFires") == [0, 1]
    assert onlooker.values("watcher", "DuplicatedFires") == [0, 0]
    assert onlooker.told_of(job_id) == [("missed", lost["run_id"]["S"])]
    (told,) = [
        line for line in onlooker.lines("watcher") if line.get("message") == "missed fire: a time has no run"
    ]
    assert (told["job_id"], told["run_id"]) == (job_id, lost["run_id"]["S"])
    client.cancel_job(job_id)


def test_a_trace_goes_from_the_request_to_the_task(client: Client) -> None:
    with listening() as target:
        request = a_request(task={"type": "http", "url": target.url})
        job = client.call("POST", "/jobs", body=request, headers={"X-Amzn-Trace-Id": f"Root={TRACE}"})
        assert ended_run(client, job["job_id"])["status"] == "SUCCEEDED"
        headers = {name.lower(): value for name, value in target.received[0].headers.items()}
    assert headers["x-amzn-trace-id"] == f"Root={TRACE}"
