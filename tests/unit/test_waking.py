"""How the watcher is woken, and how it sees to it that it is woken again."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from duetime.blobs import MemoryBlobs
from duetime.clock import ManualClock
from duetime.due_messages import Audit, Patrol, SweepShard, Tick, WorkEnded, parse_due_message
from duetime.errors import Unavailable
from duetime.letters import DeadMessage, LetterKeeper
from duetime.memory_store import MemoryStore
from duetime.patrolling import Patroller
from duetime.patrols import Patrols
from duetime.rescuing import Rescuer
from duetime.shelf import Shelf
from duetime.store import WaitingJob
from duetime.sweeping import Sweeper
from duetime.wakeups import RememberedWakeUps, soonest_wakeup, wakeup_for
from duetime.watching import Watcher
from duetime.work_reports import WorkReports

from tests.factories import a_cron_job, a_pair
from tests.inline import DueMessages, Inline, Minutes
from tests.unit.test_patrolling import Queues

NOON = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)


class TestMinutes:
    @pytest.mark.parametrize(
        ("due", "expected"),
        [
            (NOON + timedelta(minutes=10), NOON + timedelta(minutes=8)),
            (NOON + timedelta(minutes=10, seconds=59.999), NOON + timedelta(minutes=8)),
            (NOON + timedelta(days=365), NOON + timedelta(days=365, minutes=-2)),
            # What is overdue is for the next minute that can still be asked for.
            (NOON - timedelta(hours=1), NOON + timedelta(minutes=1)),
        ],
    )
    def test_a_wake_up_comes_two_minutes_before_its_minute(self, due: datetime, expected: datetime) -> None:
        assert wakeup_for(due, NOON) == expected

    def test_a_wake_up_is_never_asked_for_in_the_past(self) -> None:
        for second in range(60):
            now = NOON + timedelta(seconds=second)
            assert timedelta(seconds=10) <= soonest_wakeup(now) - now <= timedelta(seconds=70)

    def test_a_minute_is_asked_for_once(self) -> None:
        asked: list[datetime] = []
        wakeups = RememberedWakeUps(asked.append)
        for _ in range(3):
            wakeups.ensure([NOON, NOON, NOON + timedelta(minutes=1)])
        assert asked == [NOON, NOON + timedelta(minutes=1)]

    def test_a_minute_that_could_not_be_had_is_asked_for_again(self) -> None:
        asked: list[datetime] = []

        def refuse_once(minute: datetime) -> None:
            asked.append(minute)
            if len(asked) == 1:
                raise Unavailable("no")

        wakeups = RememberedWakeUps(refuse_once)
        with pytest.raises(Unavailable):
            wakeups.ensure([NOON])
        wakeups.ensure([NOON])
        assert asked == [NOON, NOON]

    def test_memory_is_bounded(self) -> None:
        wakeups = RememberedWakeUps(lambda _: None)
        wakeups.ensure(NOON + timedelta(minutes=n) for n in range(25_000))
        assert len(wakeups._known) <= 10_000


class TestMessages:
    @pytest.mark.parametrize(
        "message",
        [
            Tick(),
            Tick(is_thorough=True),
            Patrol(NOON),
            SweepShard(3),
            SweepShard(63, WaitingJob(NOON, "job-1"), 4),
            Audit(("job-1", "job-2")),
            WorkEnded("aws.ecs", {"lastStatus": "STOPPED"}),
        ],
    )
    def test_a_message_reads_back_as_it_was_written(self, message: Any) -> None:
        assert parse_due_message(json.dumps(message.to_body())) == message

    @pytest.mark.parametrize("text", ["", "{}", '{"kind": "other"}', '{"kind": "sweep"}', "[]", "7"])
    def test_what_nobody_here_wrote_is_refused(self, text: str) -> None:
        with pytest.raises((ValueError, KeyError, TypeError)):
            parse_due_message(text)


class TestPatrols:
    def test_they_come_every_ten_seconds_for_two_minutes(self) -> None:
        queue = DueMessages()
        now = NOON + timedelta(seconds=3)
        Patrols(queue).ask_for(now, now)
        assert queue.sent == [Patrol(NOON + timedelta(seconds=10 * n)) for n in range(1, 13)]
        assert [delayed.delay_seconds for delayed in queue.delayed][:3] == [7, 17, 27]

    def test_what_was_asked_for_is_not_asked_for_again(self) -> None:
        queue, now = DueMessages(), NOON
        patrols = Patrols(queue)
        for second in range(60):
            patrols.ask_for(now + timedelta(seconds=second), now + timedelta(seconds=second))
        assert len(queue.sent) == 12 + 5

    def test_an_early_run_is_not_forgotten_because_a_late_one_was_asked_for(self) -> None:
        queue = DueMessages()
        patrols = Patrols(queue)
        patrols.ask_for(NOON + timedelta(minutes=4), NOON)
        patrols.ask_for(NOON + timedelta(seconds=20), NOON)
        assert Patrol(NOON + timedelta(seconds=30)) in queue.sent

    def test_none_is_delayed_longer_than_the_queue_can(self) -> None:
        queue = DueMessages()
        Patrols(queue).ask_for(NOON + timedelta(minutes=15, seconds=20), NOON)
        assert queue.sent == []

    def test_a_patrol_that_comes_twice_is_done_once(self) -> None:
        patrols = Patrols(DueMessages())
        assert [patrols.is_due(Patrol(NOON)), patrols.is_due(Patrol(NOON))] == [True, False]
        assert patrols.is_due(Patrol(NOON + timedelta(seconds=10)))


class Letters:
    def receive(self) -> Sequence[DeadMessage]:
        return []

    def delete(self, messages: Sequence[DeadMessage]) -> None:
        assert not messages


class Scene:
    def __init__(self) -> None:
        self.store, self.clock = MemoryStore(), ManualClock(NOON)
        self.wakeups, self.due_queue = Minutes(), DueMessages()
        sweeper = Sweeper(self.store, self.wakeups, self.due_queue, self.clock, Inline())
        rescuer = Rescuer(self.store, Shelf(MemoryBlobs()), self.clock)
        patroller = Patroller(self.store, Queues(), rescuer, self.clock, Inline())
        letters = LetterKeeper(self.store, Letters(), self.clock)
        reports = WorkReports(self.store, rescuer)
        self.watcher = Watcher(
            sweeper, patroller, Patrols(self.due_queue), reports, letters, self.wakeups, self.clock
        )


def test_where_nothing_waits_and_nothing_is_open_a_tick_asks_for_nothing() -> None:
    scene = Scene()
    scene.watcher.tick()
    assert (scene.wakeups.asked, scene.due_queue.sent) == ([], [])


def test_a_tick_that_plans_something_asks_for_patrols_and_the_next_tick() -> None:
    scene = Scene()
    scene.store.create(a_cron_job("0 * * * *", next_run_at=NOON), [])
    scene.watcher.tick()
    assert soonest_wakeup(NOON) in scene.wakeups.asked
    assert [type(message) for message in scene.due_queue.sent] == [Audit] + [Patrol] * 12


def test_a_patrol_that_finds_something_open_keeps_the_next_tick_alive() -> None:
    scene = Scene()
    job, run = a_pair()
    scene.store.create(job, [run])
    assert scene.watcher.patrol(Patrol(NOON)) is not None
    assert scene.wakeups.asked == [soonest_wakeup(NOON)]
    assert scene.watcher.patrol(Patrol(NOON)) is None


def test_a_patrol_goes_on_without_eventbridge() -> None:
    scene = Scene()
    job, run = a_pair()
    scene.store.create(job, [run])
    scene.wakeups.broken = True
    assert scene.watcher.patrol(Patrol(NOON)) is not None
