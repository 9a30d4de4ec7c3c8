"""Writing the end of a run, whatever becomes of its job at that moment."""

from dataclasses import replace
from datetime import datetime

from duetime.audit import Event
from duetime.finishing import heeding
from duetime.pair import JobRun
from duetime.run import Run
from duetime.status import RunStatus
from duetime.store import Store, guarded_fields
from duetime.turns import call_next, ended


def settle(
    seen: JobRun,
    run_after: Run,
    store: Store,
    now: datetime,
    *,
    by_holder: bool = False,
    event: Event | None = None,
) -> Run | None:
    """The run as it became. None: somebody else has moved it on, nothing was written. If only the job has changed, the
    end counts all the same, and is worked out anew; of the run we know all that matters, and must not undo what we do
    not. If its cancellation was asked for meanwhile, that counts too."""
    while True:
        run = heeding(seen.run.cancel_requested, run_after, now)
        after, judged = ended(seen, run, store, now)
        there = store.exchange(seen, after, judged, by_holder=by_holder, event=event)
        if there is None or _is_written(there.run, run):
            call_next(seen, after, store, now)
            return run
        if any(getattr(there.run, name) != getattr(seen.run, name) for name in _moved_by(by_holder)):
            return None
        seen = JobRun(there.job, replace(seen.run, cancel_requested=there.run.cancel_requested))


def _moved_by(by_holder: bool) -> set[str]:
    """What is different if somebody else has moved the run on. That its end was asked for moves nothing yet."""
    return set(guarded_fields(by_holder)) - {"cancel_requested"}


def _is_written(there: Run, run: Run) -> bool:
    """An answer may get lost on its way back. Whoever tries again finds what it has written itself."""
    return (
        there.status is not RunStatus.RUNNING
        and (there.status, there.fence, there.end_time) == (run.status, run.fence, run.end_time)
        and there.attempts == run.attempts
    )
