"""Counting from several threads what is emitted at the end of an invocation."""

import threading
from collections import Counter
from typing import Protocol

from duetime.metrics import Measurement, Metric


class Count(Protocol):
    def __call__(self, metric: Metric, number: int = 1, /) -> None: ...


class Tally:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[Metric] = Counter()

    def count(self, metric: Metric, number: int = 1, /) -> None:
        with self._lock:
            self._counts[metric] += number

    def take(self) -> list[Measurement]:
        """What was counted since it was last taken."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        return [Measurement(metric, number) for metric, number in counts.items() if number]
