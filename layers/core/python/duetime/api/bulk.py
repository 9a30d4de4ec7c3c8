"""Bulk operations: one page of the jobs that a filter finds, each paused, resumed or cancelled on its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from duetime import changing
from duetime.api.caller import Caller
from duetime.api.finding import Filter, Finder
from duetime.audit import Action
from duetime.changing import Changes
from duetime.errors import Conflict
from duetime.job import Job
from duetime.run_control import RunControl

Verb = Literal["pause", "resume", "cancel"]
_VERBS: dict[str, tuple[changing.Change, Action]] = {
    "pause": (changing.pause, Action.PAUSED),
    "resume": (changing.resume, Action.RESUMED),
    "cancel": (changing.cancel, Action.CANCELLED),
}


class BulkResult(NamedTuple):
    changed: Sequence[str]
    # Those that were in that state already, or can no longer be in it, and why.
    unchanged: Sequence[dict[str, Any]]
    next_page_token: str | None


@dataclass(frozen=True, slots=True)
class Bulk:
    finder: Finder
    changes: Changes
    control: RunControl

    def carry_out(
        self,
        verb: Verb,
        wanted: Filter,
        caller: Caller,
        *,
        limit: int,
        page_token: str | None,
        has_time: Callable[[], bool],
    ) -> BulkResult:
        """Each job is changed by itself, so a caller that hears nothing may repeat the request. If time runs out, the
        jobs that were not reached are named, with the reason."""
        page = self.finder.page(wanted, caller, limit=limit, page_token=page_token)
        changed: list[str] = []
        unchanged: list[dict[str, Any]] = []
        for job in page.jobs:
            try:
                if not has_time():
                    raise Conflict("the request ran out of time before this job: repeat it")
                after = self._change(verb, job, caller)
            except Conflict as conflict:
                unchanged.append({"job_id": job.job_id, "reason": conflict.message})
                continue
            if after == job:
                unchanged.append({"job_id": job.job_id, "reason": f"the job is {job.status} already"})
            else:
                changed.append(job.job_id)
        return BulkResult(changed, unchanged, page.next_page_token)

    def _change(self, verb: Verb, job: Job, caller: Caller) -> Job:
        change, action = _VERBS[verb]
        after = self.changes.apply(job, change, actor=caller.actor, action=action)
        if verb == "cancel":
            self.control.cancel_all(after, caller.actor)
        return after
