"""A metric that nobody emits is an empty graph, and an alarm that never rings."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from duetime.metrics import Metric

from infra.app import ROOT
from infra.metrics import METRICS

CORE = ROOT / "layers" / "core" / "python"


def files_of(function: str) -> set[Path]:
    """The handler, and all of Duetime that it imports."""
    found: set[Path] = set()
    left = [ROOT / "functions" / function / "handler.py"]
    while left:
        file = left.pop()
        if file not in found:
            found.add(file)
            left += imported(file)
    return found - {CORE / "duetime" / "metrics.py"}


def imported(file: Path) -> Iterator[Path]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("duetime"):
            path = CORE.joinpath(*str(node.module).split("."))
            yield from (each for each in (path.with_suffix(".py"), path / "__init__.py") if each.exists())


def metrics_named_in(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Metric":
            yield node.attr


def test_the_two_lists_name_the_same_metrics() -> None:
    assert {metric.value for metric in Metric} == set(METRICS)


@pytest.mark.parametrize("emitter", sorted({emitted.emitted_by for emitted in METRICS.values()}))
def test_whoever_is_said_to_emit_a_metric_has_code_that_does(emitter: str) -> None:
    named = {name for file in files_of(emitter) for name in metrics_named_in(file)}
    expected = {metric.name for metric in Metric if METRICS[metric.value].emitted_by == emitter}
    assert expected <= named
