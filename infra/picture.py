"""Draws the layout of the dashboard that a template has. `make picture` keeps it in docs/dashboard.svg."""

import json
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import Any

COLUMN, ROW = 46, 34
GAP = 6
LINE_HEIGHT = 15
# CloudWatch's own first colours, in its order.
COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f")
Widget = dict[str, Any]


def dashboard_body(template: dict[str, Any]) -> dict[str, Any]:
    """What only a deployment knows (names, regions) becomes the logical id that stands for it."""
    resources = template["Resources"].values()
    [dashboard] = [each for each in resources if each["Type"] == "AWS::CloudWatch::Dashboard"]
    _, parts = dashboard["Properties"]["DashboardBody"]["Fn::Join"]
    body: dict[str, Any] = json.loads("".join(_known(part) for part in parts))
    return body


def alarm_names(template: dict[str, Any], logical_ids: list[str]) -> list[str]:
    """As docs/operations.md has them: without `duetime-ENVIRONMENT-`."""
    names = [template["Resources"][each]["Properties"]["AlarmName"] for each in logical_ids]
    return [name.split("-", 2)[2] for name in names]


def draw(template: dict[str, Any]) -> str:
    widgets = dashboard_body(template)["widgets"]
    height = max(each["y"] + each["height"] for each in widgets) * ROW
    drawn = [line for widget in widgets for line in _drawn(widget, template)]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {24 * COLUMN} {height}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="12">'
    )
    return "\n".join([head, '<rect width="100%" height="100%" fill="#f2f3f3"/>', *drawn, "</svg>"]) + "\n"


def _known(part: Any) -> str:
    if isinstance(part, str):
        return part
    if "Ref" in part:
        return str(part["Ref"])
    return str(part["Fn::GetAtt"][0])


def _drawn(widget: Widget, template: dict[str, Any]) -> Iterator[str]:
    x, y = widget["x"] * COLUMN + GAP / 2, widget["y"] * ROW + GAP / 2
    width, height = widget["width"] * COLUMN - GAP, widget["height"] * ROW - GAP
    fill = "#ffffff" if widget["type"] != "text" else "#e8eef7"
    yield f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4" fill="{fill}" stroke="#b8c0cc"/>'
    if widget["type"] == "text":
        yield from _words(widget["properties"]["markdown"], x + 10, y, width)
        return
    title = wrap(widget["properties"]["title"], (width - 20) // 7)
    for number, line in enumerate(title):
        yield _text(x + 10, y + 20 + number * LINE_HEIGHT, line, bold=True)
    if widget["type"] == "alarm":
        names = alarm_names(template, widget["properties"]["alarms"])
        yield from _alarms(names, x + 10, y + 32, width - 20)
    else:
        below = y + 25 + (len(title) - 1) * LINE_HEIGHT
        yield _axes(x + 8, below, width - 16, y + height - 12)
        yield from _legend(widget["properties"]["metrics"], x + 14, below + 14)


def _words(markdown: str, x: float, y: float, width: int) -> Iterator[str]:
    heading, _, words = markdown.partition("\n")
    yield _text(x, y + 20, heading.lstrip("# "), bold=True)
    plain = words.replace("**", "").replace("`", "")
    for number, line in enumerate(wrap(plain, width // 6)):
        yield _text(x, y + 38 + number * LINE_HEIGHT, line)


def _alarms(names: list[str], x: float, y: float, width: float) -> Iterator[str]:
    across = 5
    box = width / across
    for number, name in enumerate(names):
        left, top = x + number % across * box, y + number // across * 30
        yield (
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{box - 6:.1f}" height="24" rx="3" fill="#e6f4ea" '
            'stroke="#34a853"/>'
        )
        yield _text(left + 8, top + 16, name)


def _axes(x: float, top: float, width: float, bottom: float) -> str:
    return f'<path d="M{x} {top}V{bottom}H{x + width}" fill="none" stroke="#d5dbdb"/>'


def _legend(metrics: list[list[Any]], x: float, y: float) -> Iterator[str]:
    shown = [options for *_, options in metrics if isinstance(options, dict) and options.get("visible", True)]
    for number, options in enumerate(shown):
        top = y + number * LINE_HEIGHT
        colour = COLOURS[number % len(COLOURS)]
        yield f'<rect x="{x}" y="{top - 8}" width="9" height="9" fill="{colour}"/>'
        # CDK leaves out what is CloudWatch's default.
        how = "computed" if "expression" in options else options.get("stat", "Average")
        yield _text(x + 14, top, f"{options['label']} ({how})")


def _text(x: float, y: float, words: str, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{weight}>{escape(words)}</text>'


if __name__ == "__main__":
    sys.stdout.write(draw(json.loads(Path(sys.argv[1]).read_text())))
