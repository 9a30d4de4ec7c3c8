from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from duetime.clock import ManualClock
from duetime.letters import DeadMessage, LetterKeeper
from duetime.memory_store import MemoryStore
from duetime.patrolling import MOST_HINTS
from duetime.run import PATIENCE, Run, RunKey
from duetime.status import RunStatus

from tests.factories import NOW, a_pair


class Queue:
    def __init__(self, *messages: DeadMessage) -> None:
        self.messages = list(messages)

    def receive(self) -> Sequence[DeadMessage]:
        return self.messages

    def delete(self, messages: Sequence[DeadMessage]) -> None:
        self.messages = [message for message in self.messages if message not in messages]


def tidy(status: RunStatus, *, was_moved: bool, **changes: Any) -> tuple[Run, bool]:
    """The run afterwards, and whether its message is still there."""
    job, run = a_pair()
    run = replace(run, status=status, end_time=NOW, **changes)
    store = MemoryStore()
    store.create(job, [run])
    queue = Queue(DeadMessage(run.key, was_moved, "receipt"))
    LetterKeeper(store, queue, ManualClock(NOW)).tidy()
    there = store.get_run(run.key)
    assert there is not None
    return there, bool(queue.messages)


@pytest.mark.parametrize("status", [RunStatus.QUEUED, RunStatus.RETRYING])
def test_a_hint_that_sqs_moved_makes_a_run_that_nobody_looked_at_a_dead_letter(status: RunStatus) -> None:
    """As where workers crash on it: the patrol has hinted it as often as it ever does, in vain."""
    run, is_left = tidy(status, was_moved=True, hints=MOST_HINTS, deadline_at=NOW)
    assert (run.status, is_left) == (RunStatus.FAILED, False)
    assert "no worker survived it" in (run.error_message or "")


@pytest.mark.parametrize("status", [RunStatus.QUEUED, RunStatus.RETRYING])
@pytest.mark.parametrize(
    ("hints", "patience"),
    [(0, PATIENCE), (3, -PATIENCE), (MOST_HINTS - 1, -PATIENCE), (MOST_HINTS, PATIENCE)],
)
def test_a_run_whose_hint_was_merely_received_too_often_is_left_to_its_workers(
    status: RunStatus, hints: int, patience: timedelta
) -> None:
    run, is_left = tidy(status, was_moved=True, hints=hints, deadline_at=NOW + patience)
    assert (run.status, is_left) == (status, True)


@pytest.mark.parametrize(
    "status", [RunStatus.RUNNING, RunStatus.SUCCEEDED, RunStatus.CANCELLED, RunStatus.DEAD_LETTERED]
)
def test_a_hint_that_sqs_moved_has_nothing_to_say_of_a_run_that_went_on(status: RunStatus) -> None:
    run, is_left = tidy(status, was_moved=True)
    assert (run.status, is_left) == (status, False)


@pytest.mark.parametrize("status", [RunStatus.DEAD_LETTERED, RunStatus.FAILED])
def test_a_letter_stays_as_long_as_its_run_is_one(status: RunStatus) -> None:
    assert tidy(status, was_moved=False)[1]


@pytest.mark.parametrize("status", [RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.SUCCEEDED])
def test_a_letter_whose_run_was_redriven_is_taken_away(status: RunStatus) -> None:
    run, is_left = tidy(status, was_moved=False)
    assert (run.status, is_left) == (status, False)


def test_a_message_of_a_run_that_is_gone_is_taken_away() -> None:
    queue = Queue(DeadMessage(RunKey("x", "y"), False, "receipt"))
    assert LetterKeeper(MemoryStore(), queue, ManualClock(NOW)).tidy() == 1


def test_an_empty_queue_costs_no_read() -> None:
    assert LetterKeeper(MemoryStore(), Queue(), ManualClock(NOW)).tidy() == 0
