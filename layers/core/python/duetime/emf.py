"""Measurements as log lines in CloudWatch's Embedded Metric Format, through Powertools.

One line holds one value of each dimension, so there is a line for each priority and kind of task that occurred, with
all its values in arrays; CloudWatch adds the lines up where a set of dimensions is the same.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.metrics import NAMESPACE, Measurement, Sets

if TYPE_CHECKING:
    from aws_lambda_powertools.metrics import EphemeralMetrics


@dataclass(frozen=True, slots=True)
class MetricLog:
    environment: str

    def emit(self, measurements: Iterable[Measurement]) -> None:
        lines: dict[tuple[Sets, tuple[str | None, ...]], EphemeralMetrics] = {}
        for each in measurements:
            values = {"priority": each.priority, "task_type": each.task_type}
            # What is not known (a run from before it was recorded) is left out, and not counted as a kind of its own.
            sets = tuple(names for names in each.metric.sets if all(values[name] for name in names))
            if not sets:
                continue
            used = {name: value for name, value in values.items() if any(name in names for names in sets)}
            key = (sets, tuple(used.values()))
            if key not in lines:
                lines[key] = self._line(sets, {name: str(value) for name, value in used.items()})
            # At a hundred values of one metric Powertools writes the line and begins another.
            lines[key].add_metric(each.metric.value, each.metric.unit.value, each.value)
        for line in lines.values():
            if line.metric_set:
                line.flush_metrics()

    def _line(self, sets: Sets, values: dict[str, str]) -> "EphemeralMetrics":
        # Not at a cold start: what a function says about itself is said when its work is done.
        from aws_lambda_powertools.metrics import EphemeralMetrics

        # An empty service: otherwise Powertools adds the function's name as a dimension.
        line = EphemeralMetrics(
            namespace=NAMESPACE, service="", default_dimensions={"environment": self.environment}
        )
        first, *others = sets
        for name in first:
            line.add_dimension(name, values[name])
        for names in others:
            line.add_dimensions(**{name: values[name] for name in names})
        return line
