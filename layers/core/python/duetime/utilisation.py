"""How much of a worker was used: the time that its places were busy, over the time that it had them."""

from collections.abc import Iterable
from datetime import timedelta

from duetime.metrics import Measurement, Metric
from duetime.run import Run


def time_in_worker(run: Run) -> timedelta:
    """Of the attempt that a worker has just ended, or given away: what it last wrote is when it was done with it."""
    return run.modified_time - run.start_time if run.start_time else timedelta()


def measure_use(busy: Iterable[timedelta], places: int, lasted: timedelta) -> list[Measurement]:
    """Of one invocation, which can work on so many runs at once."""
    used, had = sum(busy, timedelta()).total_seconds(), places * lasted.total_seconds()
    return [
        Measurement(Metric.BUSY_SECONDS, used),
        Measurement(Metric.CAPACITY_SECONDS, had),
        Measurement(Metric.WORKER_UTILISATION, 100 * used / had if had else 0.0),
    ]
