"""Running a task so that it can be stopped: by its time, by its owner, by the loss of its lease."""

import threading
from collections.abc import Callable
from typing import Any, Final

from duetime.stopping import Stopped, StopSignal

GRACE_SECONDS: Final = 3.0
"""A task that was told to stop may take so long; then it is left behind, and what it still says is not heard."""


def supervised(work: Callable[[], Any], stop: StopSignal) -> Any:
    """What the work returns or raises. If it was told to stop and did not return, Stopped is raised."""
    outcome: list[Any] = []
    failure: list[BaseException] = []
    ended = threading.Event()

    def do() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            failure.append(error)
        finally:
            ended.set()

    with stop.interrupting(lambda: _set_after(ended)):
        threading.Thread(target=do, daemon=True).start()
        ended.wait()
    if outcome:
        return outcome[0]
    if stop.reason:
        raise Stopped(stop.reason)
    raise failure[0]


def _set_after(ended: threading.Event) -> None:
    timer = threading.Timer(GRACE_SECONDS, ended.set)
    timer.daemon = True
    timer.start()
