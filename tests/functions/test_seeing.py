"""What the worker and the watcher say about themselves, in metrics and in logs."""

import json
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import boto3
import pytest
from duetime.clock import ManualClock
from duetime.due_messages import Audit
from duetime.instants import parse_instant

from tests.functions.conftest import Context, sample
from tests.functions.http import Call, send
from tests.functions.test_requests import valid
from tests.functions.test_schedules import cron, runs
from tests.functions.test_status_feed import metrics_in


class Log(logging.Handler):
    """Keeps what a function logs, as it would be written."""

    def __init__(self, logger: Any) -> None:
        super().__init__()
        self.setFormatter(logger.registered_formatter)
        self.lines: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(json.loads(self.format(record)))

    def saying(self, text: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if text in line["message"]]


@pytest.fixture
def log_of(call: Call) -> Iterator[Callable[[str], Log]]:
    attached: list[tuple[Any, Log]] = []

    def attach(function: str) -> Log:
        logger = sys.modules[f"functions.{function}.handler"].logger
        log = Log(logger)
        logger.addHandler(log)
        attached.append((logger, log))
        return log

    yield attach
    for logger, log in attached:
        logger._logger.removeHandler(log)


def hint_of(run: dict[str, Any], message_id: str) -> dict[str, Any]:
    (record,) = sample("sqs_hint")["Records"]
    body = {
        "job_id": run["job_id"]["S"],
        "run_id": run["run_id"]["S"],
        "not_before": run["not_before"]["S"],
    }
    hint: dict[str, Any] = record | {"messageId": message_id, "body": json.dumps(body)}
    return hint


def due_message(body: dict[str, Any]) -> dict[str, Any]:
    event = sample("sqs_tick")
    event["Records"][0]["body"] = json.dumps(body)
    return event


def test_a_worker_says_how_busy_it_was(call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        send(call, "POST", "/jobs", valid())
    records = [hint_of(run, f"m{number}") for number, run in enumerate(runs())]
    capsys.readouterr()
    call("worker", {"Records": records})
    (line,) = metrics_in(capsys)
    ended = runs()
    assert [run["status"]["S"] for run in ended] == ["SUCCEEDED", "SUCCEEDED"]
    (busy,), (capacity,) = line["BusySeconds"], line["CapacitySeconds"]
    assert line["environment"] == "test"
    assert 0 < busy < capacity
    assert line["WorkerUtilisation"] == [pytest.approx(100 * busy / capacity)]


def test_an_idle_worker_says_nothing(call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    call("worker", {"Records": []})
    assert metrics_in(capsys) == []


def test_what_a_worker_logs_about_a_run_carries_that_runs_keys(
    call: Call, log_of: Callable[[str], Log]
) -> None:
    for _ in range(3):
        send(call, "POST", "/jobs", valid())
    records = [hint_of(run, f"m{number}") for number, run in enumerate(runs())]
    lost = hint_of(runs()[0], "lost")
    lost["body"] = lost["body"].replace(runs()[0]["run_id"]["S"], "20200101T000000000Z-1-0123456789abcdef")
    call("worker", {"Records": []})
    log = log_of("worker")
    call("worker", {"Records": [*records, lost]})
    ended = log.saying("an attempt ended")
    expected = {(run["job_id"]["S"], run["run_id"]["S"], 1, "request-1") for run in runs()}
    assert {
        (line["job_id"], line["run_id"], line["attempt"], line["function_request_id"]) for line in ended
    } == expected
    (dropped,) = log.saying("dropped")
    assert "run_id" not in dropped


def test_a_tick_says_how_it_swept_and_how_long_the_queues_are(
    call: Call, queue_urls: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    sqs = boto3.client("sqs")
    for delay in (0, 0, 60):
        sqs.send_message(QueueUrl=queue_urls["low"], MessageBody="{}", DelaySeconds=delay)
    sqs.receive_message(QueueUrl=queue_urls["low"])
    capsys.readouterr()
    call("watcher", sample("sqs_tick"))
    lines = metrics_in(capsys)
    lengths = {line["priority"]: line["QueueLength"] for line in lines if "QueueLength" in line}
    assert lengths == {"high": [0], "medium": [0], "low": [3]}
    (sweep,) = [line for line in lines if "SweepTime" in line]
    assert (sweep["SweepSize"], sweep["SweepTime"][0] >= 0) == ([0], True)
    assert [line["WaitingLate"] for line in lines if "WaitingLate" in line] == [[0]]


def test_a_patrol_marks_a_late_run_and_says_so(
    call: Call, capsys: pytest.CaptureFixture[str], log_of: Callable[[str], Log]
) -> None:
    call("watcher", {"Records": []})
    log = log_of("watcher")
    send(call, "POST", "/jobs", valid())
    boto3.client("dynamodb").update_item(
        TableName="runs",
        Key={name: runs()[0][name] for name in ("job_id", "run_id")},
        UpdateExpression="SET not_before = :then",
        ExpressionAttributeValues={":then": {"S": "2020-01-01T00:00:00.000Z"}},
    )
    capsys.readouterr()
    call("watcher", sample("sqs_patrol"))
    (run,) = runs()
    assert "late_at" in run
    assert [line["WaitingLate"] for line in metrics_in(capsys)] == [[1]]
    (late,) = log.saying("a run is late, and waits still")
    assert (late["job_id"], late["run_id"]) == (run["job_id"]["S"], run["run_id"]["S"])


def test_an_audit_that_finds_a_miss_counts_it_and_writes_it_down(
    call: Call,
    capsys: pytest.CaptureFixture[str],
    log_of: Callable[[str], Log],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    call("watcher", {"Records": []})
    log = log_of("watcher")
    job_id = send(call, "POST", "/jobs", cron("*/10 * * * * *")).body["job_id"]
    first, *_ = sorted(runs(), key=lambda run: run["run_id"]["S"])
    table = boto3.client("dynamodb")
    table.delete_item(TableName="runs", Key={name: first[name] for name in ("job_id", "run_id")})
    capsys.readouterr()
    due_at = parse_instant(first["due_at"]["S"])
    clock = ManualClock(due_at + timedelta(seconds=1))
    watcher = sys.modules["functions.watcher.handler"]
    auditor = replace(watcher._auditor(), clock=clock)
    monkeypatch.setattr(watcher, "_auditor", lambda: auditor)

    def audited() -> dict[str, Any]:
        call("watcher", due_message(Audit((job_id,)).to_body()))
        (counted,) = metrics_in(capsys)
        return counted

    counted = audited()
    assert (counted["MissedFires"], counted["DuplicatedFires"], counted["AuditedFires"]) == ([1], [0], [0])
    assert audited()["MissedFires"] == [0]
    assert [line["run_id"] for line in log.saying("missed fire")] == [first["run_id"]["S"]]
    (event,) = table.query(
        TableName="records",
        KeyConditionExpression="subject = :subject",
        ExpressionAttributeValues={":subject": {"S": f"events#{job_id}"}},
    )["Items"]
    assert (event["action"], event["by"]) == ({"S": "missed"}, {"S": "duetime"})
    assert event["run_id"] == first["run_id"]


def test_a_request_is_logged_under_its_job_and_its_own_id(
    monkeypatch: pytest.MonkeyPatch, load_function: Any, log_of: Callable[[str], Log]
) -> None:
    job_search = load_function("job_search")
    log = log_of("job_search")

    def refuse(_: str) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(job_search.store, "get_job", refuse)
    event = sample("http_get_job")
    job_id = "3f1f7c52-9d5c-4a44-8f1b-6d1a2c9f0b11"
    event |= {"rawPath": f"/jobs/{job_id}", "pathParameters": {"job_id": job_id}}
    event["requestContext"]["http"]["path"] = f"/jobs/{job_id}"

    assert job_search.handle(event, Context())["statusCode"] == 500
    errors = [line for line in log.lines if line["level"] == "ERROR"]
    assert {line["job_id"] for line in errors} == {job_id}
    assert {line["request_id"] for line in errors} == {event["requestContext"]["requestId"]}
