"""The lease of a run that is under way: kept, lost, and what its holder learns with it."""

import threading
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
    assert scene.heart.release(scene.engagement).cancel_requested == "ann"


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


def test_by_itself_it_beats_when_it_is_due() -> None:
    """The thread: an attempt of almost no time is stopped without anybody's doing."""
    store, clock = MemoryStore(), SystemClock()
    job, run = a_pair()
    store.create(job, [run])
    stop, soon = StopSignal(), clock.now() + timedelta(milliseconds=20)
    heart = Heart(store, clock)
    engagement = Engagement(run, stop, soon, StopReason.OUT_OF_TIME, lambda: None, soon + timedelta(hours=1))
    heart.engage(engagement)
    assert stop.wait(10)
    assert stop.reason is StopReason.OUT_OF_TIME
    heart.release(engagement)


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

    def test_whoever_has_ended_is_not_interrupted(self) -> None:
        stop, interrupted = StopSignal(), threading.Event()
        with stop.interrupting(interrupted.set):
            pass
        stop.give(StopReason.CANCELLED)
        assert not interrupted.is_set()
