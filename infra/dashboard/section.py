from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import aws_cloudwatch as cloudwatch

# CloudWatch's grid is 24 wide.
FULL_WIDTH = 24
TEXT_HEIGHT = 2
GRAPH_HEIGHT = 6


@dataclass(frozen=True)
class Section:
    """A station on the path of a job: what happens there, and the graphs of it, side by side."""

    title: str
    text: str
    graphs: Sequence[cloudwatch.GraphWidget]

    def rows(self) -> list[list[cloudwatch.IWidget]]:
        words = cloudwatch.TextWidget(
            markdown=f"## {self.title}\n{self.text}",
            width=FULL_WIDTH,
            height=TEXT_HEIGHT,
            background=cloudwatch.TextWidgetBackground.TRANSPARENT,
        )
        return [[words], list(self.graphs)]


def graph(
    title: str, metrics: Sequence[cloudwatch.IMetric], *, unit: str, width: int, limit: int | None = None
) -> cloudwatch.GraphWidget:
    """`limit` is where an alarm rings."""
    return cloudwatch.GraphWidget(
        title=title,
        left=list(metrics),
        left_y_axis=cloudwatch.YAxisProps(label=unit, min=0, show_units=False),
        left_annotations=None if limit is None else [_red_line(limit)],
        width=width,
        height=GRAPH_HEIGHT,
    )


def _red_line(limit: int) -> cloudwatch.HorizontalAnnotation:
    return cloudwatch.HorizontalAnnotation(value=limit, label="alarm", color=cloudwatch.Color.RED)
