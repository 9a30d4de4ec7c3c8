"""What is under way, slot by slot of the watch index. The slots are read side by side, some at a time, and no more of
them than whoever asks goes on to take."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from typing import Final, NamedTuple

from duetime.batches import in_batches
from duetime.budget import MOST_EXAMINED
from duetime.listing import Lists, UnderWay

_SLOTS_AT_ONCE: Final = 16
_CHUNK: Final = 1000


class HeldSlot(NamedTuple):
    slot: int
    runs: Sequence[UnderWay]
    # How many entries were read for it, and with how many queries.
    examined: int
    queries: int


def read_slots(
    lists: Lists, threads: Executor, slots: Sequence[int], *, owner: str | None
) -> Iterator[HeldSlot]:
    """Each slot whole: leases are renewed all the time, and so the order within a slot is nothing that a page could
    go on from. Of a slot with more than MOST_EXAMINED runs, those whose leases end first."""
    for group in in_batches(slots, _SLOTS_AT_ONCE):
        first = list(threads.map(lambda slot: lists.under_way(slot, owner=owner, limit=_CHUNK), group))
        for slot, page in zip(group, first, strict=True):
            runs, examined, queries = list(page.runs), page.examined, 1
            while page.until and examined < MOST_EXAMINED:
                page = lists.under_way(slot, owner=owner, limit=_CHUNK, after=page.until)
                runs += page.runs
                examined, queries = examined + page.examined, queries + 1
            yield HeldSlot(slot, runs, examined, queries)
