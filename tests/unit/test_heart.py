"""The lease of a run that is under way: kept, lost, and what its holder learns with it."""

import threading
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from duetime.claiming import JUDGED, claimed
from duetime.clock import ManualClock, SystemClock
from duetime.heart import Engagement, Heart
from duetime.leases import HEARTBEAT, LEASE, SAFETY, lease_end
from duetime.memory_store import MemoryStore
from duetime.run import Run
from duetime.stopping import StopReason, StopSignal

from tests.factories import NOW, a_pair


class Scene:
    """A worker that holds a run. Its heart beats when told to."""

    def __init__(self, *, limit: timedelta = timedelta(minutes=10)) -> None:
        self.store, self.clock = MemoryStore(), ManualClock(NOW)
        job, run = seen = a_pair()
        self.store.create(job, [run])
        held = claimed(seen, "worker-1", NOW)
        assert self.store.exchange(seen, held, JUDGED) is None
        self.key = run.key
        self.flushed = 0
        self.heart = Heart(self.store, self.clock, by_itself=False)
        self.engagement = Engagement(
            held.run, StopSignal(), NOW + limit, StopReason.TIMED_OUT, self._flush, NOW + HEARTBEAT
        )
        self.heart.engage(self.engagement)

    def _flush(self) -> None:
        self.flushed += 1

    def beat_for(self, duration: timedelta) -> None:
        until = self.clock.now() + duration
        while self.clock.now() < until:
            self.clock.advance(timedelta(seconds=1))
            self.heart.beat()

    @property
    def run(self) -> Run:
        run = self.store.get_run(self.key)
        assert run is not None
        return run

    @property
    def reason(self) -> StopReason | None:
        return self.engagement.stop.reason


def test_a_lease_is_at_least_as_long_as_it_says_and_rounded_up() -> None:
    for second in range(60):
        now = NOW + timedelta(seconds=second)
        assert LEASE <= lease_end(now) - now < LEASE + timedelta(seconds=10)
        assert lease_end(now).second % 10 == 0


def test_the_lease_is_kept_for_as_long_as_the_attempt_lasts() -> None:
    scene = Scene()
    for _ in range(20):
        scene.beat_for(timedelta(seconds=5))
        assert scene.run.deadline_at is not None
        assert scene.run.deadline_at - scene.clock.now() >= LEASE - HEARTBEAT
    assert scene.reason is None


def test_not_every_beat_moves_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    renewals: list[datetime] = []
    renew = scene.store.renew

    def count(held: Run, deadline_at: datetime) -> Run | None:
        renewals.append(deadline_at)
        return renew(held, deadline_at)

    monkeypatch.setattr(scene.store, "renew", count)
    scene.beat_for(timedelta(seconds=100))
    assert (scene.flushed, len(renewals)) == (20, 10)


def test_cancellation_is_seen_with_the_next_beat() -> None:
    scene = Scene()
    scene.store.advance(scene.run, scene.run.evolve(cancel_requested="ann"))
    scene.beat_for(HEARTBEAT)
    assert scene.reason is StopReason.CANCELLED
    assert scene.engagement.run.cancel_requested == "ann"


def test_a_lease_that_another_has_taken_is_lost() -> None:
    scene = Scene()
    scene.store.advance(scene.run, scene.run.evolve(fence=99))
    scene.beat_for(HEARTBEAT)
    assert scene.reason is StopReason.LEASE_LOST


def test_without_dynamodb_the_task_is_stopped_before_the_lease_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    end = scene.run.deadline_at
    assert end is not None

    def fail(*_: Any) -> Any:
        raise ConnectionError

    for verb in ("renew", "get_run"):
        monkeypatch.setattr(scene.store, verb, fail)
    while scene.reason is None:
        scene.beat_for(timedelta(seconds=1))
    assert scene.reason is StopReason.LEASE_LOST
    assert end - SAFETY <= scene.clock.now() < end


def test_a_moment_without_dynamodb_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    with monkeypatch.context() as outage:
        outage.setattr(scene.store, "renew", lambda *_: 1 / 0)
        outage.setattr(scene.store, "get_run", lambda *_: 1 / 0)
        scene.beat_for(timedelta(seconds=8))
    scene.beat_for(timedelta(seconds=30))
    assert scene.reason is None


def test_an_attempt_whose_time_is_up_is_stopped() -> None:
    scene = Scene(limit=timedelta(seconds=7))
    scene.beat_for(timedelta(seconds=6))
    assert scene.reason is None
    scene.beat_for(timedelta(seconds=1))
    assert scene.reason is StopReason.TIMED_OUT


def test_a_run_that_was_released_has_no_beats_any_more() -> None:
    scene = Scene()
    scene.heart.release(scene.engagement)
    before = scene.run
    scene.beat_for(timedelta(minutes=1))
    assert scene.run == before


class TestByItself:
    """The threads. What they must do happens while something else hangs, and a test waits for it, not for a time."""

    def scene(self, **lease: timedelta) -> tuple[MemoryStore, Engagement]:
        """A run that was claimed just now."""
        store, clock = MemoryStore(), SystemClock()
        seen, now = a_pair(), clock.now()
        store.create(seen.job, [seen.run])
        held = claimed(seen, "worker-1", now)
        assert store.exchange(seen, held, JUDGED) is None
        run = replace(held.run, deadline_at=now + lease.get("lease", timedelta(hours=1)))
        hour = now + timedelta(hours=1)
        return store, Engagement(run, StopSignal(), hour, StopReason.OUT_OF_TIME, lambda: None, hour)

    def test_an_attempt_whose_time_is_up_is_stopped_without_anybodys_doing(self) -> None:
        store, engagement = self.scene()
        engagement.deadline_at = SystemClock().now() + timedelta(milliseconds=20)
        heart = Heart(store, SystemClock())
        heart.engage(engagement)
        assert engagement.stop.wait(10)
        assert engagement.stop.reason is StopReason.OUT_OF_TIME
        heart.release(engagement)

    @pytest.mark.parametrize("limit", [StopReason.OUT_OF_TIME, StopReason.LEASE_LOST])
    def test_while_dynamodb_hangs_what_must_stop_is_stopped(
        self, monkeypatch: pytest.MonkeyPatch, limit: StopReason
    ) -> None:
        store, engagement = self.scene(lease=SAFETY + timedelta(milliseconds=300))
        hanging, answer = threading.Event(), threading.Event()

        def hang(*_: Any) -> Any:
            hanging.set()
            answer.wait(30)

        for verb in ("renew", "get_run"):
            monkeypatch.setattr(store, verb, hang)
        engagement.next_beat_at = SystemClock().now()
        engagement.flush_log = lambda: hang()
        if limit is StopReason.OUT_OF_TIME:
            engagement.deadline_at = SystemClock().now() + timedelta(milliseconds=100)
        heart = Heart(store, SystemClock())
        heart.engage(engagement)
        assert hanging.wait(10)
        assert engagement.stop.wait(10)
        assert engagement.stop.reason is limit
        # Nor does whoever writes the outcome down wait for what hangs.
        heart.release(engagement)
        assert not answer.is_set()
        answer.set()

    def test_a_log_that_cannot_be_written_holds_up_no_renewal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        store, engagement = self.scene()
        renewed, written = threading.Event(), threading.Event()
        monkeypatch.setattr(store, "get_run", lambda *_: renewed.set())

        def hang() -> None:
            written.wait(30)

        engagement.flush_log = hang
        engagement.next_flush_at = engagement.next_beat_at = SystemClock().now()
        heart = Heart(store, SystemClock())
        heart.engage(engagement)
        assert renewed.wait(10)
        assert not written.is_set()
        written.set()
        heart.release(engagement)

    @pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
    @pytest.mark.parametrize("error", [RuntimeError, SystemExit])
    def test_an_interrupt_that_fails_or_hangs_is_that_runs_problem(self, error: type[BaseException]) -> None:
        (store, first), (_, second) = self.scene(), self.scene()
        hang, heart = threading.Event(), Heart(store, SystemClock())

        def fail() -> None:
            hang.wait(30)
            raise error

        with first.stop.interrupting(fail):
            first.deadline_at = SystemClock().now()
            heart.engage(first)
            assert first.stop.wait(10)
            second.deadline_at = SystemClock().now()
            heart.engage(second)
            assert second.stop.wait(10)
            hang.set()
        for engagement in (first, second):
            heart.release(engagement)

    @pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
    def test_a_thread_that_died_is_started_anew(self) -> None:
        store, engagement = self.scene()
        heart, died = Heart(store, SystemClock()), threading.Event()

        def die() -> None:
            died.set()
            raise SystemExit

        engagement.flush_log = die
        engagement.next_flush_at = SystemClock().now()
        heart.engage(engagement)
        assert died.wait(10)
        heart._threads["flush"].join(10)
        flushed = threading.Event()
        _, another = self.scene()
        another.flush_log, another.next_flush_at = flushed.set, SystemClock().now()
        heart.release(engagement)
        heart.engage(another)
        assert flushed.wait(10)
        heart.release(another)


class TestStopSignal:
    def test_the_first_reason_counts(self) -> None:
        stop = StopSignal()
        stop.give(StopReason.CANCELLED)
        stop.give(StopReason.TIMED_OUT)
        assert stop.reason is StopReason.CANCELLED

    def test_whoever_begins_too_late_is_interrupted_at_once(self) -> None:
        stop, interrupted = StopSignal(), threading.Event()
        stop.give(StopReason.CANCELLED)
        with stop.interrupting(interrupted.set):
            assert interrupted.is_set()

    def test_an_interrupt_that_fails_does_not_spare_the_others(self) -> None:
        stop, interrupted = StopSignal(), threading.Event()

        def fail() -> None:
            raise RuntimeError

        with stop.interrupting(fail), stop.interrupting(interrupted.set):
            stop.give(StopReason.CANCELLED)
        assert interrupted.is_set()

    def test_whoever_has_ended_is_not_interrupted(self) -> None:
        stop, interrupted = StopSignal(), threading.Event()
        with stop.interrupting(interrupted.set):
            pass
        stop.give(StopReason.CANCELLED)
        assert not interrupted.is_set()
