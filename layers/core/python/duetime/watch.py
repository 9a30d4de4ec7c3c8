"""Where a run stands on the watch index: a key spread over a constant number of values, and a time.

One sparse index answers three questions: which open runs are past their deadline, what is under way, on one worker or
on all, and which runs are dead letters. A run that has ended well is not on it. What waits and what is under way stand
under keys of their own, so that a question about what runs does not read a backlog.
"""

import hashlib
from datetime import datetime
from typing import Final, NamedTuple

from duetime.run import Run
from duetime.status import OPEN, RunStatus

SPREAD: Final = 64
"""DynamoDB takes 1,000 writes a second on one key value. A run costs the index 4 (queued, claimed: out and in,
ended), so 10,000 runs a second need at least 40 values. Constant: changing it would hide what is on the index."""

SLOTS: Final = range(SPREAD)
"""Where open runs stand. Those that wait have one half, those that hold a place in their job the other: each half takes
two of a run's four writes. A patrol reads both."""

HELD_SLOTS: Final = SLOTS[SPREAD // 2 :]
_WAITING_SLOTS: Final = SLOTS[: SPREAD // 2]

DEAD_SPREAD: Final = 8
"""Dead letters are few; but all runs of one owner may fail at once."""


class Watch(NamedTuple):
    key: str
    at: datetime


def watch_of(run: Run) -> Watch | None:
    if run.status is RunStatus.DEAD_LETTERED:
        assert run.end_time is not None
        return Watch(dead_key(run.owner, spread(run.run_id, DEAD_SPREAD)), run.end_time)
    if run.status in OPEN and run.deadline_at is not None:
        return Watch(open_key(_slot_of(run)), run.deadline_at)
    return None


def _slot_of(run: Run) -> int:
    """A claim changes the deadline, and so the entry is written anew: that its key changes too costs nothing."""
    if run.status is RunStatus.RUNNING:
        assert run.executor_id is not None
        return worker_slot(run.executor_id)
    half = HELD_SLOTS if run.holds_place else _WAITING_SLOTS
    return half[spread(run.run_id, len(half))]


def worker_slot(executor_id: str) -> int:
    """What a worker runs is together under one key, so that one query answers for a worker."""
    return HELD_SLOTS[spread(executor_id, len(HELD_SLOTS))]


def dead_key(owner: str, slot: int) -> str:
    """An owner's dead letters are together, so that nobody's question reads anybody else's."""
    return f"dead#{owner}#{slot}"


def open_key(slot: int) -> str:
    return f"open#{slot}"


def shard_of(job_id: str) -> int:
    """Where a waiting job stands on the index of those."""
    return spread(job_id)


def spread(text: str, over: int = SPREAD) -> int:
    """A hash that is the same in every process and version, unlike Python's own."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest()) % over
