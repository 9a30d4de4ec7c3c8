"""The log lines that CloudWatch makes metrics of, and that every metric is documented."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from duetime.emf import MetricLog
from duetime.metrics import Measurement, Metric

DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"


@pytest.fixture
def emitted(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "worker")

    def emit(measurements: Iterable[Measurement]) -> list[dict[str, Any]]:
        MetricLog("test").emit(measurements)
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return emit


def dimensions_of(line: dict[str, Any]) -> list[list[str]]:
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == "Duetime"
    sets: list[list[str]] = directive["Dimensions"]
    return sets


def test_a_line_holds_all_values_of_a_priority_and_kind_of_task(emitted: Any) -> None:
    lines = emitted(
        [
            Measurement(Metric.LATENESS, 3, "high", "http"),
            Measurement(Metric.RUNS_STARTED, 1, "high", "http"),
            Measurement(Metric.LATENESS, 5, "high", "http"),
            Measurement(Metric.LATENESS, 7, "low", "http"),
        ]
    )
    assert [(line["priority"], line["Lateness"]) for line in lines] == [("high", [3, 5]), ("low", [7])]
    assert lines[0]["RunsStarted"] == [1]
    assert dimensions_of(lines[0]) == [
        ["environment"],
        ["environment", "priority"],
        ["environment", "task_type"],
    ]
    (directive,) = lines[0]["_aws"]["CloudWatchMetrics"]
    assert directive["Metrics"] == [
        {"Name": "Lateness", "Unit": "Milliseconds"},
        {"Name": "RunsStarted", "Unit": "Count"},
    ]
    assert (lines[0]["environment"], lines[0]["task_type"]) == ("test", "http")


def test_the_functions_name_is_no_dimension(emitted: Any) -> None:
    (line,) = emitted([Measurement(Metric.SWEEP_SIZE, 3)])
    assert (dimensions_of(line), "service" in line) == ([["environment"]], False)


def test_a_queues_length_is_told_only_by_priority(emitted: Any) -> None:
    (line,) = emitted([Measurement(Metric.QUEUE_LENGTH, 3, "low")])
    assert (dimensions_of(line), line["priority"]) == ([["environment", "priority"]], "low")


def test_what_is_counted_alone_is_not_split_by_what_else_is_known(emitted: Any) -> None:
    lines = emitted([Measurement(Metric.RUNS_SKIPPED, 1, each, "http") for each in ("high", "low")])
    assert [line["RunsSkipped"] for line in lines] == [[1, 1]]


def test_an_unknown_kind_of_task_is_left_out(emitted: Any) -> None:
    (line,) = emitted([Measurement(Metric.RUNS_STARTED, 1, "high", None)])
    assert (dimensions_of(line), "task_type" in line) == (
        [["environment"], ["environment", "priority"]],
        False,
    )


def test_no_line_has_more_than_a_hundred_values(emitted: Any) -> None:
    lines = emitted(Measurement(Metric.DURATION, n, "high", "http") for n in range(250))
    assert [len(line["Duration"]) for line in lines] == [100, 100, 50]
    assert [value for line in lines for value in line["Duration"]] == list(range(250))


def test_nothing_measured_is_nothing_written(emitted: Any) -> None:
    assert emitted([]) == []


def test_every_metric_is_documented_with_its_unit_and_no_other_is() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]+?) \|", DOCS.read_text(), re.M)
    by_sets = {
        "alone": ((),),
        "priority": ((), ("priority",)),
        "priority, task type": ((), ("priority",), ("task_type",)),
        "priority only": (("priority",),),
    }
    documented = {name: (unit, by_sets[by]) for name, unit, by in rows}
    assert documented == {metric.value: (metric.unit.value, metric.sets) for metric in Metric}
