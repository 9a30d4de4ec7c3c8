"""Writing the end of a run, whatever becomes of its job at that moment."""

from datetime import datetime

from duetime.audit import Event
from duetime.pair import JobRun
from duetime.run import Run
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
) -> bool:
    """False: somebody else has moved the run on, nothing was written. If only the job has changed, the end counts all
    the same, and is worked out anew; of the run we know all that matters, and must not undo what we do not."""
    while True:
        after, judged = ended(seen, run_after, store, now)
        there = store.exchange(seen, after, judged, by_holder=by_holder, event=event)
        if there is None:
            call_next(seen, after, store, now)
            return True
        fields = guarded_fields(by_holder)
        if any(getattr(there.run, name) != getattr(seen.run, name) for name in fields):
            return False
        seen = JobRun(there.job, seen.run)
