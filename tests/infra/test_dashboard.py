"""The dashboard shows what there is, with the statistic that suits it, and its picture in the docs is up to date."""

from typing import Any

import pytest

from infra.app import ROOT
from infra.metrics import METRICS
from infra.picture import dashboard_body, draw
from tests.infra.conftest import Properties, Synthesised

# A rate's Sum, or the average of a few long durations among many short ones, would say nothing.
RATES = {"SuccessRate", "FailureRate", "WorkerUtilisation"}
DURATIONS = {"Lateness", "Latency", "Duration", "SweepTime"}
LEVELS = {"WaitingLate", "QueueLength"}


def widgets(synthesised: Synthesised, kind: str) -> list[Properties]:
    listed = dashboard_body(synthesised.template)["widgets"]
    return [each["properties"] for each in listed if each["type"] == kind]


def shown(synthesised: Synthesised) -> list[tuple[str, str, dict[str, str], dict[str, Any]]]:
    """Namespace, name, dimensions and options of every metric on a graph; expressions are made of these."""
    found = []
    for graph in widgets(synthesised, "metric"):
        for *words, options in graph["metrics"]:
            if words:
                namespace, name, *dimensions = words
                pairs = dict(zip(dimensions[::2], dimensions[1::2], strict=True))
                found.append((namespace, name, pairs, options))
    return found


def ours(synthesised: Synthesised) -> list[tuple[str, dict[str, str], str]]:
    return [
        (name, dimensions, options.get("stat", "Average"))
        for namespace, name, dimensions, options in shown(synthesised)
        if namespace == "Duetime"
    ]


def test_every_alarm_is_on_the_dashboard(synthesised: Synthesised) -> None:
    [states] = widgets(synthesised, "alarm")
    assert sorted(states["alarms"]) == sorted(synthesised.all("AWS::CloudWatch::Alarm"))


def test_the_dashboard_shows_every_agreed_metric_and_no_other(synthesised: Synthesised) -> None:
    assert {name for name, _, _ in ours(synthesised)} == set(METRICS)


def test_a_graph_asks_for_dimensions_that_are_emitted(synthesised: Synthesised) -> None:
    for name, dimensions, _ in ours(synthesised):
        split = set(dimensions) - {"environment"}
        assert dimensions["environment"] == synthesised.environment.name
        assert split <= set(METRICS[name].split_by)
        assert split or METRICS[name].has_total


def test_each_metric_has_the_statistic_that_suits_it(prod: Synthesised) -> None:
    for name, _, statistic in ours(prod):
        if name in RATES:
            assert statistic == "Average", name
        elif name in DURATIONS:
            assert statistic in {"p50", "p99", "Maximum"}, name
        elif name in LEVELS:
            assert statistic == "Maximum", name
        else:
            assert statistic == "Sum", name


@pytest.mark.parametrize(
    ("kind", "namespace", "dimension"),
    [
        ("AWS::Lambda::Function", "AWS/Lambda", "FunctionName"),
        ("AWS::SQS::Queue", "AWS/SQS", "QueueName"),
        ("AWS::DynamoDB::Table", "AWS/DynamoDB", "TableName"),
    ],
)
def test_every_function_queue_and_table_is_on_the_dashboard(
    prod: Synthesised, kind: str, namespace: str, dimension: str
) -> None:
    named = {dimensions[dimension] for space, _, dimensions, _ in shown(prod) if space == namespace}
    assert named == set(prod.all(kind))


def test_the_stations_of_a_jobs_path_follow_one_another(prod: Synthesised) -> None:
    _guide, *sections = [each["markdown"] for each in widgets(prod, "text")]
    titles = [text.splitlines()[0].split(". ")[1] for text in sections]
    assert titles == [
        "In",
        "Waiting",
        "Due",
        "Queued",
        "Running",
        "Done",
        "Dead",
        "Told",
        "Underneath",
    ]


def test_every_line_of_a_graph_has_a_name_that_people_can_read(prod: Synthesised) -> None:
    for graph in widgets(prod, "metric"):
        visible = [options for *_, options in graph["metrics"] if options.get("visible", True)]
        assert all(options.get("label") for options in visible), graph["title"]


def test_a_row_fills_the_width_of_the_dashboard(prod: Synthesised) -> None:
    rows: dict[int, int] = {}
    for each in dashboard_body(prod.template)["widgets"]:
        rows[each["y"]] = rows.get(each["y"], 0) + each["width"]
    assert set(rows.values()) == {24}


def test_the_picture_in_the_docs_is_what_would_be_drawn_now(prod: Synthesised) -> None:
    committed = (ROOT / "docs" / "dashboard.svg").read_text()
    assert draw(prod.template) == committed, "the dashboard has changed: run `make picture`"
