"""docs/operations.md against the template: every alarm leads to a cause, and nothing on the page is out of date."""

import re

import pytest

from infra.app import ROOT
from infra.metrics import METRICS
from infra.picture import dashboard_body
from infra.saved_queries import QUERIES, SavedQuery
from tests.infra.conftest import Synthesised, synthesise

PAGE = (ROOT / "docs" / "operations.md").read_text()
ALARMS = PAGE.split("\n## The alarms\n")[1].split("\n## ")[0]
ENTRIES = {text.split("\n", 1)[0]: text for text in ALARMS.split("\n### ")[1:]}
QUERY = re.compile(r"[Qq]uery `([\w-]+)`")


def alarms(synthesised: Synthesised) -> dict[str, str]:
    """The heading that each alarm refers to."""
    return {
        each["AlarmName"].removeprefix("duetime-prod-"): each["AlarmDescription"].split("#")[1]
        for each in synthesised.all("AWS::CloudWatch::Alarm").values()
    }


def test_every_alarm_is_named_in_the_entry_that_it_refers_to(prod: Synthesised) -> None:
    assert [name for name, entry in alarms(prod).items() if f"`{name}`" not in ENTRIES.get(entry, "")] == []


def test_every_entry_names_alarms_that_there_are(prod: Synthesised) -> None:
    named = {
        name
        for entry, text in ENTRIES.items()
        for name in re.findall(rf"`({entry}(?:-\w+)?)`", QUERY.sub("", text))
    }
    assert set(ENTRIES) == set(alarms(prod).values())
    assert named == set(alarms(prod))


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_entry_says_where_to_look(entry: str) -> None:
    assert re.search(r"\*[A-Z]", ENTRIES[entry]), "a graph"
    assert re.search(r"query `|`aws |`GET /|DynamoDB console", ENTRIES[entry]), "a query, a command or a call"


def test_every_saved_query_is_explained_and_asked_for() -> None:
    names = {query.name for query in QUERIES}
    assert set(QUERY.findall(ALARMS)) == names
    assert [name for name in sorted(names) if f"| `{name}` |" not in PAGE] == []


def test_every_graph_that_the_page_names_is_on_the_dashboard(prod: Synthesised) -> None:
    titles = {each["properties"].get("title") for each in dashboard_body(prod.template)["widgets"]}
    text = re.sub(r"\s+", " ", re.sub(r"`[^`]*`", "", ALARMS).replace("**", ""))
    named = set(re.findall(r"\*([A-Z][^*]+)\*", text))
    assert [name for name in sorted(named) if name not in titles] == []


def test_every_metric_is_described_as_it_is_emitted() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (\w+) \|([^|]*)\|", PAGE, re.M)
    described = {name: (unit, by, split.strip()) for name, unit, by, split in rows}
    assert described == {
        name: (each.unit, each.emitted_by, ", ".join(each.split_by) + ("" if each.has_total else " –"))
        for name, each in METRICS.items()
    }


def test_every_link_within_the_page_leads_to_a_heading() -> None:
    assert set(re.findall(r"\]\(#([\w-]+)\)", PAGE)) <= set(ENTRIES)


def test_the_costs_are_those_of_the_template(prod: Synthesised) -> None:
    found = prod.all("AWS::CloudWatch::Alarm").values()
    metrics = sum(sum("MetricStat" in part for part in each.get("Metrics", [])) or 1 for each in found)
    assert f"{len(found)} alarms on {metrics} metrics, ${metrics / 10:.2f}." in PAGE


def test_the_emulator_which_does_not_know_saved_queries_gets_none() -> None:
    assert synthesise("local").all("AWS::Logs::QueryDefinition") == {}


def test_a_saved_query_looks_into_logs_that_there_are(in_aws: list[Synthesised]) -> None:
    for synthesised in in_aws:
        groups = synthesised.all("AWS::Logs::LogGroup")
        definitions = synthesised.all("AWS::Logs::QueryDefinition").values()
        prefix = f"duetime-{synthesised.environment.name}/"
        assert {each["Name"] for each in definitions} == {f"{prefix}{query.name}" for query in QUERIES}
        for each in definitions:
            assert each["LogGroupNames"]
            assert {group["Ref"] for group in each["LogGroupNames"]} <= set(groups)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_a_saved_query_asks_for_messages_that_are_logged(query: SavedQuery) -> None:
    sources = [*(ROOT / "functions").rglob("*.py"), *(ROOT / "layers" / "core").rglob("*.py")]
    code = "\n".join(path.read_text() for path in sources)
    quoted = re.findall(r'message (?:=|in) \[?((?:"[^"]+"(?:, )?)+)', query.text)
    messages = [message for group in quoted for message in re.findall(r'"([^"]+)"', group)]
    assert [message for message in messages if f'"{message}"' not in code] == []
