"""Accepting jobs that wait."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from duetime.admission import Admission
from duetime.clock import ManualClock
from duetime.errors import Conflict, InvalidField, Unavailable
from duetime.job import Job
from duetime.memory_store import MemoryStore
from duetime.status import JobStatus
from duetime.submission import Intake
from duetime.targets import AllowedTargets, Rule
from duetime.timing import Timing

from tests.factories import ME, a_spec, a_timing
from tests.inline import Minutes

NOON = datetime(2026, 11, 18, 12, 0, 0, 500_000, tzinfo=UTC)
ALLOWED = AllowedTargets((Rule(python=("duetime_examples.*",)),))


class Scene:
    def __init__(self) -> None:
        self.store, self.wakeups, self.clock = MemoryStore(), Minutes(), ManualClock(NOON)
        self.intake = Intake(
            self.store, self.wakeups, self.clock, ALLOWED, Admission(self.store, (), self.clock), lambda: b"k"
        )

    def submit(self, timing: Timing, key: str | None = None, **request: Any) -> Job:
        body = request or {"timing": str(timing)}
        submission = self.intake.submit(a_spec(timing=timing), by=ME, request=body, idempotency_key=key)
        return submission.job

    def due_times(self, job: Job) -> list[datetime]:
        return [run.due_at for run in self.store.list_runs(job.job_id, limit=100).runs][::-1]


def future(at: datetime) -> Timing:
    return a_timing("FUTURE", schedule_time=at)


def test_a_job_far_ahead_waits_and_has_its_wake_up() -> None:
    scene = Scene()
    job = scene.submit(future(NOON + timedelta(hours=1)))
    assert (scene.due_times(job), job.next_run_at) == ([], NOON + timedelta(hours=1))
    assert scene.wakeups.asked == [datetime(2026, 11, 18, 12, 58, tzinfo=UTC)]


def test_a_job_due_soon_is_queued_at_once() -> None:
    scene = Scene()
    job = scene.submit(future(NOON + timedelta(minutes=3)))
    assert (scene.due_times(job), job.next_run_at) == ([NOON + timedelta(minutes=3)], None)


def test_a_hundred_jobs_of_one_minute_ask_for_one_minute() -> None:
    scene = Scene()
    for millisecond in range(100):
        at = datetime(2026, 11, 18, 15, 30, tzinfo=UTC) + timedelta(milliseconds=millisecond * 599)
        scene.submit(future(at))
    assert set(scene.wakeups.asked) == {datetime(2026, 11, 18, 15, 28, tzinfo=UTC)}


def test_an_interval_without_a_start_begins_at_once() -> None:
    scene = Scene()
    job = scene.submit(a_timing("INTERVAL", interval_seconds=60))
    assert scene.due_times(job)[:2] == [NOON, NOON + timedelta(minutes=1)]


def test_an_interval_that_began_in_the_past_keeps_its_beat_and_makes_nothing_good() -> None:
    scene = Scene()
    start = NOON - timedelta(days=3, seconds=10)
    job = scene.submit(a_timing("INTERVAL", interval_seconds=60, start_at=start))
    assert scene.due_times(job)[0] == NOON + timedelta(seconds=50)


def test_a_cron_that_waits_for_its_start() -> None:
    scene = Scene()
    start = NOON + timedelta(days=1)
    job = scene.submit(a_timing("CRON", cron_expression="0 6 * * *", start_at=start))
    assert job.next_run_at == datetime(2026, 11, 20, 6, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("timing", "field"),
    [
        (future(NOON - timedelta(seconds=1)), "schedule_time"),
        (future(NOON + timedelta(days=4000)), "schedule_time"),
        (a_timing("CRON", cron_expression="0 0 31 2 *"), "cron_expression"),
        (a_timing("CRON", cron_expression="* * * * *", timezone="Mars"), "timezone"),
        (a_timing("CRON", cron_expression="* * * * *", jitter_seconds=60), "jitter_seconds"),
        (a_timing("CRON", cron_expression="0 6 * * *", end_at=NOON + timedelta(hours=1)), "end_at"),
        (a_timing("INTERVAL", interval_seconds=9), "interval_seconds"),
    ],
)
def test_what_cannot_be_kept_is_refused_by_its_field_and_nothing_is_done(timing: Timing, field: str) -> None:
    scene = Scene()
    with pytest.raises(InvalidField) as refused:
        scene.submit(timing)
    assert refused.value.field == field
    assert (scene.store._jobs, scene.wakeups.asked) == ({}, [])


def test_without_its_wake_up_a_waiting_job_is_refused_and_nothing_is_written() -> None:
    scene = Scene()
    scene.wakeups.broken = True
    with pytest.raises(Unavailable):
        scene.submit(future(NOON + timedelta(hours=1)))
    assert scene.store._jobs == {}


def test_without_eventbridge_a_job_that_is_due_is_accepted_all_the_same() -> None:
    scene = Scene()
    scene.wakeups.broken = True
    assert scene.submit(a_timing()).status is JobStatus.SCHEDULED


class TestRepeatedRequests:
    def test_a_repeated_request_is_answered_by_its_first_job(self) -> None:
        scene = Scene()
        first = scene.submit(future(NOON + timedelta(hours=1)), "key")
        assert scene.submit(future(NOON + timedelta(hours=1)), "key") == first

    def test_even_when_its_time_has_passed_meanwhile(self) -> None:
        scene = Scene()
        timing = future(NOON + timedelta(minutes=1))
        first = scene.submit(timing, "key")
        scene.clock.advance(timedelta(hours=1))
        assert scene.submit(timing, "key") == first

    def test_another_request_under_the_same_key_is_a_conflict(self) -> None:
        scene = Scene()
        scene.submit(future(NOON + timedelta(hours=1)), "key", a=1)
        with pytest.raises(Conflict, match="Idempotency-Key"):
            scene.submit(future(NOON + timedelta(hours=1)), "key", a=2)


class TestBatches:
    def batch(self, scene: Scene, *timings: Timing, key: str | None = None, body: Any = "same") -> list[Any]:
        specs = [a_spec(timing=timing) for timing in timings]
        return list(scene.intake.submit_many(specs, by=ME, request=body, idempotency_key=key))

    def test_each_has_its_outcome_and_its_wake_up(self) -> None:
        scene = Scene()
        hours = [future(NOON + timedelta(hours=n)) for n in (1, 2, 1)]
        past = future(NOON - timedelta(hours=1))
        outcomes = self.batch(scene, *hours, past)
        assert [isinstance(outcome, InvalidField) for outcome in outcomes] == [False, False, False, True]
        assert len(scene.wakeups.asked) == 2
        assert all(scene.store.get_job(outcome.job.job_id) for outcome in outcomes[:3])

    def test_repeated_under_its_key_it_makes_nothing_new(self) -> None:
        scene = Scene()
        hour = future(NOON + timedelta(hours=1))
        first = self.batch(scene, hour, hour, key="k")
        again = self.batch(scene, hour, hour, key="k")
        assert [outcome.job.job_id for outcome in again] == [outcome.job.job_id for outcome in first]
        assert [outcome.repeated for outcome in again] == [True, True]

    def test_one_that_died_half_way_is_completed(self) -> None:
        scene = Scene()
        hour = future(NOON + timedelta(hours=1))
        store = scene.store
        create_many = store.create_many
        store.create_many = lambda new: create_many(new[:1]) and [None] * len(new)  # type: ignore[method-assign]
        self.batch(scene, hour, hour, key="k")
        store.create_many = create_many  # type: ignore[method-assign]
        outcomes = self.batch(scene, hour, hour, key="k")
        assert [outcome.repeated for outcome in outcomes] == [True, False]
        assert all(scene.store.get_job(outcome.job.job_id) for outcome in outcomes)

    def test_another_batch_under_the_key_is_refused_as_a_whole(self) -> None:
        scene = Scene()
        hour = future(NOON + timedelta(hours=1))
        self.batch(scene, hour, key="k")
        with pytest.raises(Conflict):
            self.batch(scene, hour, hour, hour, key="k", body="another")
        assert len(scene.store._jobs) == 1

    def test_without_its_wake_ups_nothing_is_written(self) -> None:
        scene = Scene()
        scene.wakeups.broken = True
        with pytest.raises(Unavailable):
            self.batch(scene, future(NOON + timedelta(hours=1)))
        assert scene.store._jobs == {}
