"""How late things were, in numbers that people compare."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Lateness:
    """Milliseconds from due to started; negative is early."""

    milliseconds: Sequence[float]

    def percentile(self, percent: float) -> float:
        """By the nearest rank: a value that really occurred."""
        ordered = sorted(self.milliseconds)
        rank = max(1, -(-len(ordered) * percent // 100))
        return ordered[int(rank) - 1]

    def __str__(self) -> str:
        shown = {"p50": 50, "p90": 90, "p99": 99, "max": 100}
        figures = ", ".join(f"{name} {self.percentile(percent):.0f} ms" for name, percent in shown.items())
        early = sum(value < 0 for value in self.milliseconds)
        return f"{figures}; {early} early"
