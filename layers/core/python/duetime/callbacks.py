"""What the system that does an attempt's work may say of it: that it lives, that it is done, that it failed.

It is known by the attempt's token and by nothing else. A token of an attempt that is over (its lease was lost, and
another has begun) is refused, so a late answer changes nothing.
"""

import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from duetime.callback_tokens import is_token_of
from duetime.clock import Clock
from duetime.ending import Ending
from duetime.errors import Conflict, InvalidField, NotFound, PermanentFailure, TransientFailure, Unavailable
from duetime.finishing import failed, succeeded
from duetime.ids import is_run_key
from duetime.leases import lease_end
from duetime.pair import JobRun
from duetime.rescuing import next_deadline
from duetime.results import with_result
from duetime.run import Run, RunKey
from duetime.settling import settle
from duetime.shelf import Shelf
from duetime.status import RunStatus
from duetime.store import Store
from duetime.tasks.interface import CHECKPOINT_LIMIT_BYTES

_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class Callbacks:
    store: Store
    shelf: Shelf
    clock: Clock

    def heartbeat(self, key: RunKey, token: str, checkpoint: Any = None) -> Run:
        """It lives. The run as it is now: whether its cancellation was asked for, too. At this moment its worker may
        write down that the work goes on elsewhere, or somebody that it shall end; neither is undone."""
        if checkpoint is not None and len(json.dumps(checkpoint).encode()) > CHECKPOINT_LIMIT_BYTES:
            raise InvalidField("checkpoint", f"must be at most {CHECKPOINT_LIMIT_BYTES} bytes as JSON")
        for _ in range(_TRIES):
            run = self._holder(key, token).run
            now = self.clock.now()
            after = replace(run, deadline_at=_extended(run, now), modified_time=now)
            if checkpoint is not None:
                after = replace(after, checkpoint=checkpoint)
            if self.store.advance(run, after):
                return after
        raise Unavailable("the run is being changed by others at this moment: try again")

    def complete(self, key: RunKey, token: str, result: Any) -> Run:
        seen = self._holder(key, token)
        now = self.clock.now()
        done = succeeded(seen.run, None, seen.run.start_time or now, now)
        return self._settle(seen, with_result(done, result, self.shelf.blobs))

    def fail(self, key: RunKey, token: str, error: str, *, retry: bool, retry_after: timedelta | None) -> Run:
        job, run = seen = self._holder(key, token)
        now = self.clock.now()
        problem = TransientFailure(error, retry_after=retry_after) if retry else PermanentFailure(error)
        return self._settle(seen, failed(job, run, problem, run.start_time or now, now, self.shelf.fraction))

    def _holder(self, key: RunKey, token: str) -> JobRun:
        seen = self.store.load([key]).get(key) if is_run_key(key) else None
        if seen is None:
            raise NotFound("there is no such run")
        if seen.run.status is not RunStatus.RUNNING or not is_token_of(token, seen.run.callback_digest):
            raise _over()
        return seen

    def _settle(self, seen: JobRun, after: Run) -> Run:
        settled = settle(seen, after, self.store, self.clock.now(), by_holder=True)
        if settled is None:
            raise _over()
        return settled


def _extended(run: Run, now: datetime) -> datetime:
    if not run.is_elsewhere:
        # Before its worker has written down that the work goes on elsewhere, the worker's lease is the one that counts.
        return max(run.deadline_at or now, lease_end(now))
    if run.cancel_requested or Ending.of(run):
        # The end that was asked for is near; a sign of life must not put it off.
        return run.deadline_at or now
    return next_deadline(run, now)


def _over() -> Conflict:
    return Conflict(
        "the token is not that of the attempt which is under way: it has ended, or another has begun"
    )
