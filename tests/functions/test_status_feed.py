"""The status feed, as Lambda calls it."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.functions.conftest import sample

Call = Callable[[str, dict[str, Any]], Any]


def an_event(*images: tuple[str | None, str]) -> dict[str, Any]:
    """The sample run as it went from one status to another, record by record."""
    event = sample("stream_run_failed")
    (pattern,) = event["Records"]
    records = []
    for number, (before, after) in enumerate(images):
        record = copy.deepcopy(pattern)
        body = record["dynamodb"]
        new = body["NewImage"]
        body["SequenceNumber"] = str(100 + number)
        body["OldImage"] = {**copy.deepcopy(new), "status": {"S": before}} if before else None
        new["status"] = {"S": after}
        if body["OldImage"] is None:
            del body["OldImage"]
        records.append(record)
    return {"Records": records}


def metrics_in(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    return [line for line in lines if "_aws" in line]


def test_it_counts_a_failure_from_its_record(call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("status_feed", an_event(("RUNNING", "FAILED"))) == {"batchItemFailures": []}
    (line,) = metrics_in(capsys)
    assert (line["environment"], line["priority"]) == ("test", "medium")
    assert (line["RunsEnded"], line["SuccessRate"], line["FailureRate"]) == ([1], [0], [1])


def test_a_whole_batch_makes_one_line(call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    call("status_feed", an_event(*[("RUNNING", "FAILED")] * 3, ("FAILED", "DEAD_LETTERED")))
    (line,) = metrics_in(capsys)
    assert (line["RunsEnded"], line["RunsDeadLettered"]) == ([1, 1, 1], [1])


def test_a_record_that_comes_again_says_the_same(call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        call("status_feed", an_event(("RUNNING", "FAILED")))
    first, second = (line | {"_aws": None} for line in metrics_in(capsys))
    assert first == second


def test_what_stands_before_a_bad_record_counts_and_what_stands_behind_comes_again(
    call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    event = an_event(*[("RUNNING", "FAILED")] * 4)
    event["Records"][2]["dynamodb"]["NewImage"]["status"] = {"S": "NONSENSE"}
    assert call("status_feed", event) == {"batchItemFailures": [{"itemIdentifier": "102"}]}
    (line,) = metrics_in(capsys)
    assert line["RunsEnded"] == [1, 1]


def test_a_bad_record_at_the_head_makes_lambda_halve_the_batch(
    call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    event = an_event(*[("RUNNING", "FAILED")] * 2)
    event["Records"][0]["dynamodb"]["NewImage"]["status"] = {"S": "NONSENSE"}
    with pytest.raises(Exception, match="100 cannot be read"):
        call("status_feed", event)
    assert metrics_in(capsys) == []


def test_a_bad_record_alone_is_reported_alone(call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    event = an_event(("RUNNING", "FAILED"))
    del event["Records"][0]["dynamodb"]["NewImage"]
    assert call("status_feed", event) == {"batchItemFailures": [{"itemIdentifier": "100"}]}
    assert metrics_in(capsys) == []


def test_no_records_are_no_work(call: Call) -> None:
    assert call("status_feed", {"Records": []}) == {"batchItemFailures": []}
