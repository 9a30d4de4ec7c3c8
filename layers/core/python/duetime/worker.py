"""The worker: claim a run, execute its task, record the outcome."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from duetime.claiming import Judgement, Verdict, claimed, judge
from duetime.clock import Clock
from duetime.errors import DuetimeError, TaskError
from duetime.finishing import effect_on_job, failed, succeeded
from duetime.hints import ReceivedHint
from duetime.retry import Fraction
from duetime.run import Run, RunKey
from duetime.status import RunStatus
from duetime.store import JobRun, Store
from duetime.tasks import AttemptContext

CLAIM_LEAD: Final = timedelta(milliseconds=50)
"""How long before the due time a run is claimed, so that the claim's round trip does not make it late."""

_CLAIM_TRIES: Final = 5

Execute = Callable[[AttemptContext], Any]
"""Runs the task of an attempt: returns its result, or raises a TaskError."""


class ClaimContended(DuetimeError):
    """Others changed the job at every try. The hint comes back and the claim is tried again."""


@dataclass(frozen=True, slots=True)
class Worker:
    store: Store
    clock: Clock
    execute: Execute
    executor_id: str
    fraction: Fraction = field(default=random.random)

    def load(self, hints: Sequence[ReceivedHint]) -> dict[RunKey, JobRun]:
        """One read for a whole batch of hints."""
        return dict(self.store.load(hint.key for hint in hints))

    def work(self, seen: JobRun) -> Run | None:
        """The run as it ended here, or None if it was not this worker's to run or to record."""
        self.clock.wait_until(seen.run.not_before - CLAIM_LEAD)
        held = self._claim(seen)
        if held is None:
            return None
        self.clock.wait_until(held.run.not_before)
        after = self._attempt(held)
        completes_job = after.status in (RunStatus.SUCCEEDED, RunStatus.FAILED)
        recorded = self.store.finish(after, effect_on_job(after), completes_job=completes_job)
        return after if recorded else None

    def _claim(self, seen: JobRun) -> JobRun | None:
        for _ in range(_CLAIM_TRIES):
            judgement = judge(seen.job, seen.run)
            if judgement.verdict is not Verdict.CLAIMABLE:
                self._decline(seen.run, judgement)
                return None
            after = JobRun(*claimed(seen.job, seen.run, self.executor_id, self.clock.now()))
            there = self.store.claim(seen, after)
            if there is None:
                return after
            seen = there
        raise ClaimContended(f"run {seen.run.run_id} could not be claimed in {_CLAIM_TRIES} tries")

    def _decline(self, run: Run, judgement: Judgement) -> None:
        if judgement.verdict is Verdict.NOT_OPEN:
            return
        status = RunStatus.SKIPPED if judgement.verdict is Verdict.NO_PLACE else RunStatus.CANCELLED
        now = self.clock.now()
        ended = run.evolve(
            status=status, error_message=judgement.reason, end_time=now, modified_time=now, deadline_at=None
        )
        self.store.drop(run, ended)

    def _attempt(self, held: JobRun) -> Run:
        started_at = self.clock.now()
        try:
            result = self.execute(AttemptContext.of(held))
        except TaskError as error:
            return failed(held.job, held.run, error, started_at, self.clock.now(), self.fraction)
        return succeeded(held.run, result, started_at, self.clock.now())
