"""`GET /executions`: what is under way, on one worker or on all."""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Final

from duetime.api.caller import Caller
from duetime.api.page_tokens import PageTokens
from duetime.batches import in_batches
from duetime.listing import Lists
from duetime.run import Run, RunKey
from duetime.status import RunStatus
from duetime.store import Store
from duetime.watch import SPREAD, spread

_LIST: Final = "executions"
_LOADED_AT_ONCE: Final = 50


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
        """In the order of their ids, so that a page goes on where the one before ended, whatever has ended meanwhile.
        What is under way is bounded by what workers can hold."""
        asked = [worker_id, user_id]
        position = self.tokens.read(_LIST, caller.principal, asked, page_token) if page_token else None
        after = RunKey(*position) if position else None
        if not caller.is_admin and user_id not in (None, caller.principal):
            return (), None
        owner = user_id if caller.is_admin else caller.principal
        keys = [key for key in self._keys(worker_id, owner) if after is None or key > after]
        runs: list[Run] = []
        for batch in in_batches(keys, _LOADED_AT_ONCE):
            runs += self._running(batch, worker_id)
            if len(runs) > limit:
                token = self.tokens.make(_LIST, caller.principal, asked, runs[limit - 1].key)
                return runs[:limit], token
        return runs, None

    def _keys(self, worker_id: str | None, owner: str | None) -> list[RunKey]:
        # What one worker runs is together on the index.
        slots = range(SPREAD) if worker_id is None else [spread(worker_id)]
        found = self.threads.map(lambda slot: self.lists.under_way(slot, owner=owner), slots)
        return sorted(run.key for runs in found for run in runs if worker_id in (None, run.executor_id))

    def _running(self, keys: Sequence[RunKey], worker_id: str | None) -> list[Run]:
        """The index may be a moment behind: what counts is the run itself."""
        found = self.store.load(keys)
        runs = [found[key].run for key in keys if key in found]
        return [
            run for run in runs if run.status is RunStatus.RUNNING and worker_id in (None, run.executor_id)
        ]
