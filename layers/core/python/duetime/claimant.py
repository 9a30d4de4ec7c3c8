"""Claiming a run, against everybody else who may want it or have changed their mind about it."""

import random
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple

from duetime.callback_tokens import digest_of, new_token
from duetime.claiming import JUDGED, Judgement, Verdict, claimed, judge, waits_for_its_turn
from duetime.clock import Clock
from duetime.errors import DuetimeError
from duetime.finishing import judged_at_the_end, voided
from duetime.pair import JobRun
from duetime.run import Run
from duetime.store import Store
from duetime.tasks import wants_token
from duetime.turns import call_next, put_off

LEAD: Final = timedelta(milliseconds=50)
"""How long before the due time a run is claimed, so that the claim's round trip does not make it late."""

SECOND_LOOKS: Final = tuple(timedelta(milliseconds=ms) for ms in (0, 300, 1000, 2000))
"""After its due time a run looks so often for a free place before the overlap policy is applied: the run before it may
have started late, and be about to end."""

PATIENCE: Final = timedelta(seconds=5)
"""So long a claim is tried while others change the same job: many of its runs may start at one moment."""


class Contended(DuetimeError):
    """Others changed the job at every try. The hint comes back and is tried again."""


class Claim(NamedTuple):
    held: JobRun
    # With which the attempt's system may report; only for tasks that want one.
    token: str | None


@dataclass(frozen=True, slots=True)
class Claimant:
    store: Store
    clock: Clock
    executor_id: str

    def claim(self, seen: JobRun) -> Claim | None:
        """None: it is not ours to run, and what had to become of it has become of it."""
        self.clock.wait_until(seen.run.not_before - LEAD)
        seen = self._await_place(seen)
        token = new_token() if wants_token(seen.job.spec.task) else None
        give_up_at, pause = self.clock.now() + PATIENCE, timedelta(milliseconds=10)
        while True:
            judgement = judge(*seen)
            if judgement.verdict is Verdict.NOT_OPEN or self._comes_later(seen.run):
                return None
            after, judged = self._answer(seen, judgement, token)
            there = self.store.exchange(seen, after, judged)
            if there is None and judgement.verdict is Verdict.CLAIMABLE:
                return Claim(after, token)
            if there is None:
                call_next(seen, after, self.store, self.clock.now())
                return None
            if self.clock.now() >= give_up_at:
                raise Contended(f"run {seen.run.run_id} could not be claimed within {PATIENCE.seconds} s")
            seen = there
            self.clock.wait_until(self.clock.now() + pause * random.random())  # noqa: S311  (jitter, no secret)
            pause = min(pause * 2, timedelta(milliseconds=250))

    def _await_place(self, seen: JobRun) -> JobRun:
        # A run that may wait for its turn does so from its due time on: whoever calls it looks for runs that are due.
        looks = SECOND_LOOKS[:1] if waits_for_its_turn(*seen) else SECOND_LOOKS
        for look in looks:
            if judge(*seen).verdict is not Verdict.NO_PLACE:
                break
            self.clock.wait_until(seen.run.not_before + look)
            seen = self.store.load([seen.run.key])[seen.run.key]
        return seen

    def _comes_later(self, run: Run) -> bool:
        """Somebody else has tried it meanwhile, and it has been put off; that has a hint of its own."""
        return run.not_before > self.clock.now() + LEAD

    def _answer(self, seen: JobRun, judgement: Judgement, token: str | None) -> tuple[JobRun, frozenset[str]]:
        """What the pair becomes, and what of the job that depends on."""
        now = self.clock.now()
        if judgement.verdict is Verdict.CLAIMABLE:
            digest = digest_of(token) if token else None
            return claimed(seen, self.executor_id, now, digest), JUDGED
        if judgement.verdict is Verdict.NO_PLACE:
            return put_off(seen, judgement.reason, self.store, now)
        judged = judged_at_the_end(seen) | JUDGED | {"next_run_at"}
        return voided(seen, judgement.reason, now), judged
