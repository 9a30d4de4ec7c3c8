"""How an attempt that is under way is told to stop."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum


class StopReason(Enum):
    TIMED_OUT = "it did not end within its time and was stopped"
    OUT_OF_TIME = "the worker's own time was up, and it was stopped"
    CANCELLED = "it was cancelled"
    LEASE_LOST = "its lease could not be renewed"


class Stopped(Exception):
    """The attempt was stopped. Not a TaskError: what becomes of the run follows from the reason."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class StopSignal:
    """Given once, by whoever is first; whoever does the work says how it can be interrupted."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._given = threading.Event()
        self._interrupts: list[Callable[[], None]] = []
        self.reason: StopReason | None = None

    def give(self, reason: StopReason) -> None:
        if self.mark(reason):
            self.interrupt()

    def mark(self, reason: StopReason) -> bool:
        """Give it, but interrupt nobody yet. False: it was given before."""
        with self._lock:
            if self.reason is not None:
                return False
            self.reason = reason
            self._given.set()
            return True

    def interrupt(self) -> None:
        """What goes wrong with one interrupt must not spare the others."""
        with self._lock:
            interrupts = list(self._interrupts)
        for interrupt in interrupts:
            with suppress(Exception):
                interrupt()

    @contextmanager
    def interrupting(self, interrupt: Callable[[], None]) -> Iterator[None]:
        """While this lasts, the signal calls `interrupt`, from another thread; at once if it was given already."""
        with self._lock:
            self._interrupts.append(interrupt)
            given = self.reason is not None
        if given:
            with suppress(Exception):
                interrupt()
        try:
            yield
        finally:
            with self._lock:
                self._interrupts.remove(interrupt)

    def wait(self, seconds: float | None = None) -> bool:
        return self._given.wait(seconds)
