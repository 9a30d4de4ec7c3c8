"""The worker: claim a run, execute its task, record the outcome."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from duetime.claiming import JUDGED, Judgement, Verdict, claimed, judge, waits_for_its_turn
from duetime.clock import Clock
from duetime.errors import DuetimeError, TaskError
from duetime.finishing import after_the_end, dropped, failed, judged_at_the_end, succeeded
from duetime.hints import ReceivedHint
from duetime.pair import JobRun
from duetime.retry import Fraction
from duetime.run import Run, RunKey
from duetime.status import RunStatus
from duetime.store import Store
from duetime.tasks import AttemptContext
from duetime.turns import call_waiting, put_off

CLAIM_LEAD: Final = timedelta(milliseconds=50)
"""How long before the due time a run is claimed, so that the claim's round trip does not make it late."""

LONGEST_WAIT: Final = timedelta(seconds=3)
"""A hint that comes earlier than this goes back to its queue: a worker's time is paid for while it waits."""

SECOND_LOOKS: Final = tuple(timedelta(milliseconds=ms) for ms in (0, 300, 1000, 2000))
"""After its due time a run looks so often for a free place before the overlap policy is applied: the run before it may
have started late, and be about to end."""

_TRIES: Final = 5

Execute = Callable[[AttemptContext], Any]
"""Runs the task of an attempt: returns its result, or raises a TaskError."""


class Contended(DuetimeError):
    """Others changed the job at every try. The hint comes back and is tried again."""


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

    def time_until_due(self, seen: JobRun) -> timedelta:
        return seen.run.not_before - self.clock.now()

    def work(self, seen: JobRun) -> Run | None:
        """The run as it ended here, or None if it was not this worker's to run or to record."""
        self.clock.wait_until(seen.run.not_before - CLAIM_LEAD)
        held = self._claim(seen)
        if held is None:
            return None
        self.clock.wait_until(held.run.not_before)
        return self._finish(held, self._attempt(held))

    def _claim(self, seen: JobRun) -> JobRun | None:
        seen = self._await_place(seen)
        for _ in range(_TRIES):
            judgement = judge(*seen)
            if judgement.verdict is Verdict.NOT_OPEN:
                return None
            after, judged = self._answer(seen, judgement)
            there = self.store.exchange(seen, after, judged)
            if there is None and judgement.verdict is Verdict.CLAIMABLE:
                return after
            if there is None:
                self._call_next(seen, after)
                return None
            seen = there
        raise Contended(f"run {seen.run.run_id} could not be claimed in {_TRIES} tries")

    def _await_place(self, seen: JobRun) -> JobRun:
        # A run that may wait for its turn does so from its due time on: whoever calls it looks for runs that are due.
        looks = SECOND_LOOKS[:1] if waits_for_its_turn(*seen) else SECOND_LOOKS
        for look in looks:
            if judge(*seen).verdict is not Verdict.NO_PLACE:
                break
            self.clock.wait_until(seen.run.not_before + look)
            seen = self.store.load([seen.run.key])[seen.run.key]
        return seen

    def _answer(self, seen: JobRun, judgement: Judgement) -> tuple[JobRun, frozenset[str]]:
        """What the pair becomes, and what of the job that depends on."""
        now = self.clock.now()
        if judgement.verdict is Verdict.CLAIMABLE:
            return claimed(seen, self.executor_id, now), JUDGED
        if judgement.verdict is Verdict.NO_PLACE:
            return put_off(seen, judgement.reason, self.store, now)
        run = dropped(seen.run, RunStatus.CANCELLED, judgement.reason, now)
        return after_the_end(seen, run), judged_at_the_end(seen.job) | JUDGED

    def _attempt(self, held: JobRun) -> Run:
        started_at = self.clock.now()
        try:
            result = self.execute(AttemptContext.of(held))
        except TaskError as error:
            return failed(held.job, held.run, error, started_at, self.clock.now(), self.fraction)
        return succeeded(held.run, result, started_at, self.clock.now())

    def _finish(self, held: JobRun, run_after: Run) -> Run | None:
        """Record the outcome, whatever has become of the job; unless the lease was lost."""
        seen = held
        while True:
            after = after_the_end(seen, run_after)
            there = self.store.exchange(seen, after, judged_at_the_end(seen.job))
            if there is None:
                break
            if (there.run.status, there.run.fence) != (RunStatus.RUNNING, held.run.fence):
                return None
            seen = there
        self._call_next(seen, after)
        return run_after

    def _call_next(self, seen: JobRun, after: JobRun) -> None:
        if after.job.waiters and after.job.running < seen.job.running:
            call_waiting(after.job, self.store, self.clock.now())
