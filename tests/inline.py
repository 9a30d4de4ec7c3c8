"""What stands beside a store when a sweep or a patrol is tried without AWS."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, Future
from datetime import datetime
from typing import Any

from duetime.due_messages import Delayed, DueMessage
from duetime.errors import Unavailable


class Inline(Executor):
    """One after the other, in the order asked for, so that a test can stop at the n-th call."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class Minutes:
    """Wake-ups that remember which minutes they were asked for."""

    def __init__(self) -> None:
        self.asked: list[datetime] = []
        self.broken = False

    def ensure(self, minutes: Iterable[datetime]) -> None:
        if self.broken:
            raise Unavailable("no wake-up could be set")
        self.asked += minutes


class DueMessages:
    """A due queue that remembers what was sent, and with what delay."""

    def __init__(self) -> None:
        self.delayed: list[Delayed] = []

    def send(self, messages: Sequence[Delayed]) -> None:
        self.delayed += messages

    @property
    def sent(self) -> list[DueMessage]:
        return [delayed.message for delayed in self.delayed]
