"""`GET /executions`: what is under way, on one worker or on all."""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Final, NamedTuple

from duetime.api.caller import Caller
from duetime.api.page_tokens import PageTokens
from duetime.batches import in_batches
from duetime.budget import Budget
from duetime.held import read_slots
from duetime.listing import Lists
from duetime.run import Run, RunKey
from duetime.status import RunStatus
from duetime.store import Store
from duetime.watch import HELD_SLOTS, worker_slot

_LIST: Final = "executions"
_LOADED_AT_ONCE: Final = 50


class _Place(NamedTuple):
    """Where a page ended."""

    slot: int = HELD_SLOTS[0]
    # Below every id: nothing of the slot has been listed.
    job_id: str = ""
    run_id: str = ""

    @classmethod
    def of(cls, position: Sequence[str] | None) -> "_Place":
        return cls(int(position[0]), *position[1:]) if position else cls()


@dataclass(frozen=True, slots=True)
class Executions:
    store: Store
    lists: Lists
    tokens: PageTokens
    threads: Executor

    def page(
        self,
        worker_id: str | None,
        user_id: str | None,
        caller: Caller,
        *,
        limit: int,
        page_token: str | None,
    ) -> tuple[Sequence[Run], str | None]:
        """Slot by slot of the watch index, and in a slot in the order of their ids, so that a page goes on where the
        one before ended, whatever has ended meanwhile. It ends early when it has read its fill."""
        asked = [worker_id, user_id]
        position = self.tokens.read(_LIST, caller.principal, asked, page_token) if page_token else None
        if not caller.is_admin and user_id not in (None, caller.principal):
            return (), None
        owner = user_id if caller.is_admin else caller.principal
        runs, following = self._find(worker_id, owner, limit, _Place.of(position))
        if following is None:
            return runs, None
        return runs, self.tokens.make(_LIST, caller.principal, asked, [str(part) for part in following])

    def _find(
        self, worker_id: str | None, owner: str | None, limit: int, place: "_Place"
    ) -> tuple[Sequence[Run], "_Place | None"]:
        # What one worker runs is together on the index.
        wanted = HELD_SLOTS if worker_id is None else [worker_slot(worker_id)]
        slots = [slot for slot in wanted if slot >= place.slot]
        budget = Budget()
        found: list[tuple[int, Run]] = []
        for held in read_slots(self.lists, self.threads, slots, owner=owner):
            keys = sorted(run.key for run in held.runs if worker_id in (None, run.executor_id))
            ahead = [key for key in keys if (held.slot, *key) > place]
            for batch in in_batches(ahead, _LOADED_AT_ONCE):
                found += [(held.slot, run) for run in self._running(batch, worker_id)]
                budget.spend(len(batch))
                if len(found) > limit:
                    slot, last = found[limit - 1]
                    return [run for _, run in found[:limit]], _Place(slot, *last.key)
            budget.spend(held.examined, queries=held.queries)
            if budget.is_spent and held.slot != slots[-1]:
                return [run for _, run in found], _Place(held.slot + 1)
        return [run for _, run in found], None

    def _running(self, keys: Sequence[RunKey], worker_id: str | None) -> list[Run]:
        """The index may be a moment behind: what counts is the run itself."""
        found = self.store.load(keys)
        runs = [found[key].run for key in keys if key in found]
        return [
            run for run in runs if run.status is RunStatus.RUNNING and worker_id in (None, run.executor_id)
        ]
