"""What an owner can do to a single run: cancel it, and give a dead letter more attempts."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from duetime.audit import Action, Actor
from duetime.clock import Clock
from duetime.errors import Conflict, NotFound, Unavailable
from duetime.finishing import dropped
from duetime.job import Job
from duetime.pair import JobRun
from duetime.run import PATIENCE, Run, RunKey
from duetime.settling import settle
from duetime.status import CLAIMABLE, FINAL, JobStatus, RunStatus
from duetime.store import Store

_TRIES: Final = 5
_PAGE: Final = 50
_PAGES: Final = 4


@dataclass(slots=True)
class _Ending:
    """What has been tried, where all runs of a job are to end."""

    told: set[RunKey] = field(default_factory=set)
    contended: list[Unavailable] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class RunControl:
    store: Store
    clock: Clock

    def cancel(self, key: RunKey, actor: Actor, *, is_noted: bool = True) -> Run:
        """A run that waits ends at once. One that is under way is told to: its worker sees it with the next
        heartbeat, or the watcher stops what goes on elsewhere."""
        for _ in range(_TRIES):
            seen = self.store.load([key]).get(key)
            if seen is None:
                raise NotFound("the job has no such run any more")
            if seen.run.status in FINAL or self._is_about_to_stop(seen.run):
                return seen.run
            if after := self._cancelled(seen, actor, is_noted):
                return after
        raise Unavailable("the run is being changed by others at this moment: try again")

    def cancel_all(self, job: Job, actor: Actor) -> None:
        """Whatever of a cancelled job is open. The claim refuses what is missed here. That the job was cancelled is on
        record already. A run that cannot be cancelled does not keep the others from it."""
        ending = _Ending()
        before, found = None, 0
        # What is planned lies among the latest, and so does most of what is under way.
        for _ in range(_PAGES):
            page = self.store.list_runs(job.job_id, limit=_PAGE, before=before)
            for run in page.runs:
                if run.status in CLAIMABLE or run.status is RunStatus.RUNNING:
                    self._end(run.key, actor, ending)
                    found += int(run.holds_place)
            before = page.next_before
            if before is None or found >= job.running:
                break
        else:
            self._end_holders(job, actor, ending)
        if ending.contended:
            raise ending.contended[0]

    def _end_holders(self, job: Job, actor: Actor, ending: "_Ending") -> None:
        """What is under way for long may lie behind any number of later runs. The index of what is under way has it; it
        may be a moment behind, but the job knows how many there are."""
        for _ in range(_TRIES):
            for key in self.store.holders(job):
                if key not in ending.told:
                    self._end(key, actor, ending)
            there = self.store.get_job(job.job_id)
            told = self.store.load(ending.told).values() if ending.told else ()
            if there is None or there.running <= sum(seen.run.holds_place for seen in told):
                return
        raise Unavailable(
            "the job is cancelled, but not all of its runs that are under way were found: try again"
        )

    def _end(self, key: RunKey, actor: Actor, ending: "_Ending") -> None:
        try:
            self.cancel(key, actor, is_noted=False)
        except Unavailable as error:
            ending.contended.append(error)
        except (Conflict, NotFound):
            # It has failed, or expired, since it was listed: there is nothing left to cancel.
            pass
        ending.told.add(key)

    def redrive(self, seen: JobRun, actor: Actor) -> Run | None:
        """None: it is no longer a dead letter."""
        if seen.job.status is JobStatus.CANCELLED:
            raise Conflict("the job is CANCELLED, and will not run again: make a new job")
        now = self.clock.now()
        after = redriven(seen, now).evolve(trace_id=actor.source.trace_id)
        event = actor.did(Action.REDRIVEN, after.job_id, now, run_id=after.run_id)
        return after if self.store.advance(seen.run, after, event=event) else None

    def _is_about_to_stop(self, run: Run) -> bool:
        """Whether whoever must stop it will see to it soon. A deadline far away would hide it from the watcher."""
        if run.cancel_requested is None or not run.is_elsewhere:
            return run.cancel_requested is not None
        return run.deadline_at is not None and run.deadline_at <= self.clock.now() + PATIENCE

    def _cancelled(self, seen: JobRun, actor: Actor, is_noted: bool) -> Run | None:
        now, by = self.clock.now(), actor.principal
        event = actor.did(Action.RUN_CANCELLED, seen.run.job_id, now, run_id=seen.run.run_id)
        noted = event if is_noted and seen.run.cancel_requested is None else None
        if seen.run.status in CLAIMABLE:
            after = dropped(seen.run, RunStatus.CANCELLED, f"it was cancelled by {by}", now)
            return settle(seen, after, self.store, now, event=noted)
        if seen.run.status is not RunStatus.RUNNING:
            raise Conflict(f"the run is {seen.run.status}, and cannot be cancelled any more")
        # What goes on elsewhere has no worker to see it: its deadline is now, so that the watcher does.
        deadline_at = now if seen.run.is_elsewhere else seen.run.deadline_at
        first = seen.run.cancel_requested or by
        after = replace(seen.run, cancel_requested=first, deadline_at=deadline_at, modified_time=now)
        return after if self.store.advance(seen.run, after, event=noted) else None


def redriven(seen: JobRun, now: datetime) -> Run:
    """As many attempts more as a new run would have. Somebody asks for it by hand, so it waits for its turn, and
    what the schedule says now does not matter to it."""
    job, run = seen
    return run.evolve(
        status=RunStatus.QUEUED,
        max_attempt=run.attempt + 1 + job.spec.max_retries,
        manual=True,
        patient=True,
        hints=0,
        put_off_at=None,
        called_at=None,
        # Whoever wanted its end then, somebody wants it to go on now.
        cancel_requested=None,
        not_before=now,
        end_time=None,
        modified_time=now,
        deadline_at=now + PATIENCE,
    )
