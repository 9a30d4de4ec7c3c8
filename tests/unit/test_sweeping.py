"""The sweep, and that it may be stopped at any call it makes."""

import itertools
import uuid
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from duetime import changing
from duetime.audit import Event
from duetime.clock import ManualClock
from duetime.due_messages import SweepShard
from duetime.job import Job
from duetime.memory_store import MemoryStore
from duetime.planning import HORIZON
from duetime.run import Run
from duetime.status import JobStatus, RunStatus
from duetime.sweeping import LARGE_PAGE, MOST_HOPS, PAGE, Sweeper, SweepReport
from duetime.tasks import AttemptContext
from duetime.timing import CatchUp
from duetime.wakeups import wakeup_for
from duetime.watch import shard_of

from tests.factories import OWNER, a_cron_job, a_job, a_spec, a_timing
from tests.inline import DueMessages, Inline, Minutes
from tests.workers import a_worker

NOON = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)


class Stopped(BaseException):
    """The process is gone: no handler of ours may catch this."""


class Counted:
    """Stands for AWS: every call counts, and the n-th one never returns."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.calls: list[str] = []
        self.stop_at = stop_at

    def __call__(self, name: str) -> None:
        self.calls.append(name)
        if len(self.calls) == self.stop_at:
            raise Stopped


class CountedStore:
    """A store whose calls can be stopped before they are carried out, or after."""

    def __init__(self, store: MemoryStore, count: Counted, *, after: bool) -> None:
        self._store, self._count, self._after = store, count, after

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._store, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            if not self._after:
                self._count(name)
            result = verb(*args, **kwargs)
            if self._after:
                self._count(name)
            return result

        return call


class CountedMinutes(Minutes):
    def __init__(self, count: Counted, asked: list[datetime]) -> None:
        super().__init__()
        self.asked, self._count = asked, count

    def ensure(self, minutes: Iterable[datetime]) -> None:
        self._count("create_schedule")
        super().ensure(minutes)


class Scene:
    def __init__(self, *jobs: Job, now: datetime = NOON) -> None:
        self.store, self.clock = MemoryStore(), ManualClock(now)
        self.wakeups, self.due_queue = Minutes(), DueMessages()
        for job in jobs:
            self.store.create(job, [])

    def sweeper(self, count: Counted | None = None, *, after: bool = False) -> Sweeper:
        if count is None:
            return Sweeper(self.store, self.wakeups, self.due_queue, self.clock, Inline())
        store: Any = CountedStore(self.store, count, after=after)
        wakeups = CountedMinutes(count, self.wakeups.asked)
        return Sweeper(store, wakeups, self.due_queue, self.clock, Inline())

    def sweep(self, count: Counted | None = None, *, after: bool = False) -> SweepReport:
        sweeper = self.sweeper(count, after=after)
        return sweeper.sweep(sweeper.look())

    def runs(self, job: Job) -> list[Run]:
        return list(self.store.list_runs(job.job_id, limit=100).runs)[::-1]

    def job(self, job: Job) -> Job:
        there = self.store.get_job(job.job_id)
        assert there is not None
        return there


def future_job(at: datetime) -> Job:
    return a_job(spec=a_spec(timing=a_timing("FUTURE", schedule_time=at)), next_run_at=at)


def test_everything_due_within_the_horizon_is_planned_and_nothing_else() -> None:
    soon = [future_job(NOON + timedelta(seconds=s)) for s in (0, 1, 100, 239)]
    later = future_job(NOON + HORIZON)
    scene = Scene(*soon, later)
    report = scene.sweep()
    assert (report.jobs, report.runs) == (4, 4)
    assert all(len(scene.runs(job)) == 1 for job in soon)
    assert (scene.runs(later), scene.job(later)) == ([], later)


def test_a_recurring_job_waits_for_its_next_time_with_a_wake_up_for_it() -> None:
    job = a_cron_job("0 * * * *", next_run_at=NOON)
    scene = Scene(job)
    scene.sweep()
    assert scene.job(job).next_run_at == NOON + timedelta(hours=1)
    assert scene.wakeups.asked == [NOON + timedelta(minutes=58)]


def test_many_jobs_of_one_minute_need_one_wake_up() -> None:
    jobs = [a_cron_job("0 * * * *", next_run_at=NOON) for _ in range(200)]
    count = Counted()
    Scene(*jobs).sweep(count)
    assert count.calls.count("create_schedule") == 1


def test_the_calls_of_a_sweep_follow_from_the_number_of_jobs() -> None:
    jobs = [future_job(NOON + timedelta(seconds=n % 200)) for n in range(500)]
    count = Counted()
    Scene(*jobs).sweep(count)
    calls = {name: count.calls.count(name) for name in set(count.calls)}
    # A query a shard, 100 jobs a read, a write a run, 25 jobs a move.
    assert calls == {"waiting": 64, "load_jobs": 5, "add_run": 500, "move_on": 20}


def test_sweeping_twice_plans_once() -> None:
    job = a_cron_job(next_run_at=NOON)
    scene = Scene(job)
    scene.sweep()
    before = scene.runs(job), scene.job(job)
    scene.sweep()
    assert (scene.runs(job), scene.job(job)) == before


class TestLargeShards:
    def shard_full_of_jobs(self, count: int) -> tuple[int, list[Job]]:
        ids = (str(uuid.UUID(int=n)) for n in itertools.count())
        of_the_shard = (job_id for job_id in ids if shard_of(job_id) == 5)
        return 5, [
            replace(future_job(NOON + timedelta(milliseconds=n)), job_id=job_id)
            for n, job_id in enumerate(itertools.islice(of_the_shard, count))
        ]

    def test_a_shard_with_more_than_a_page_gets_a_message_of_its_own(self) -> None:
        shard, jobs = self.shard_full_of_jobs(PAGE)
        scene = Scene(*jobs)
        report = scene.sweep()
        assert (report.handed_on, scene.due_queue.sent) == (1, [SweepShard(shard)])
        assert not any(scene.runs(job) for job in jobs)

    def test_it_is_planned_through_any_number_of_pages(self) -> None:
        shard, jobs = self.shard_full_of_jobs(2 * LARGE_PAGE + 7)
        scene = Scene(*jobs)
        report = scene.sweeper().sweep_shard(SweepShard(shard), lambda: True)
        assert report.jobs == len(jobs)
        assert all(len(scene.runs(job)) == 1 for job in jobs)

    def test_what_there_is_no_time_for_is_handed_on_from_where_it_stopped(self) -> None:
        shard, jobs = self.shard_full_of_jobs(LARGE_PAGE + 7)
        scene = Scene(*jobs)
        scene.sweeper().sweep_shard(SweepShard(shard), lambda: False)
        (rest,) = scene.due_queue.sent
        assert isinstance(rest, SweepShard)
        assert rest.after is not None
        assert (rest.shard, rest.hop, rest.after.job_id) == (shard, 1, jobs[LARGE_PAGE - 1].job_id)
        scene.sweeper().sweep_shard(rest, lambda: True)
        assert all(len(scene.runs(job)) == 1 for job in jobs)

    def test_a_shard_is_not_handed_on_for_ever(self) -> None:
        shard, jobs = self.shard_full_of_jobs(LARGE_PAGE)
        scene = Scene(*jobs)
        report = scene.sweeper().sweep_shard(SweepShard(shard, hop=MOST_HOPS), lambda: False)
        assert (report.handed_on, scene.due_queue.sent) == (0, [])


class TestFailures:
    def test_a_job_that_cannot_be_planned_does_not_hold_up_the_others(self) -> None:
        good = future_job(NOON)
        bad = a_cron_job(timing={"timezone": "Mars/Olympus"}, next_run_at=NOON)
        scene = Scene(bad, good)
        report = scene.sweep()
        assert [job_id for job_id, _ in report.unplannable] == [bad.job_id]
        assert (report.jobs, report.unwritten) == (1, [])

    def test_without_eventbridge_what_is_due_runs_and_the_job_stays_to_be_planned_again(self) -> None:
        job = a_cron_job("0 * * * *", next_run_at=NOON)
        scene = Scene(job)
        scene.wakeups.broken = True
        report = scene.sweep()
        assert len(scene.runs(job)) == 1
        assert (scene.job(job).next_run_at, len(report.unwritten)) == (NOON, 1)
        scene.wakeups.broken = False
        scene.sweep()
        assert (len(scene.runs(job)), scene.job(job).next_run_at) == (1, NOON + timedelta(hours=1))

    def test_a_run_that_could_not_be_written_keeps_its_job_where_it_was(self) -> None:
        bad, good = future_job(NOON), future_job(NOON)
        scene = Scene(bad, good)
        add = scene.store.add_run

        def refuse(run: Run, *, event: Event | None = None) -> bool:
            if run.job_id == bad.job_id:
                raise RuntimeError("throttled")
            return add(run, event=event)

        scene.store.add_run = refuse  # type: ignore[method-assign]
        report = scene.sweep()
        assert (scene.job(bad), len(report.unwritten)) == (bad, 1)
        assert scene.job(good).next_run_at is None


def a_mixture() -> list[Job]:
    return [
        future_job(NOON + timedelta(seconds=30)),
        a_cron_job(next_run_at=NOON),
        a_cron_job("*/10 * * * * *", next_run_at=NOON),
        a_cron_job("0 * * * *", timing={"catch_up": CatchUp.ALL}, next_run_at=NOON - timedelta(hours=3)),
        a_cron_job("0 * * * *", next_run_at=NOON - timedelta(hours=3)),
        a_cron_job("0 12 * * *", timing={"end_at": NOON}, next_run_at=NOON),
    ]


def finish_everything(scene: Scene) -> dict[str, list[datetime]]:
    """Another sweep, as after the message came back; then every run is hinted, twice. What started, by job."""
    scene.sweep()
    started: dict[str, list[datetime]] = {}

    def execute(context: AttemptContext) -> None:
        started.setdefault(context.job_id, []).append(context.due_at)

    for _ in range(2):
        runs = sorted(scene.store._runs.values(), key=lambda run: run.due_at)
        for run in runs:
            worker = a_worker(scene.store, ManualClock(max(NOON, run.due_at)), execute)
            worker.work(scene.store.load([run.key])[run.key])
    return started


@pytest.mark.parametrize("after", [False, True], ids=["before the call", "after the call"])
def test_stopped_at_every_call_of_a_sweep_every_job_runs_exactly_once_all_the_same(after: bool) -> None:
    jobs = a_mixture()
    undisturbed = Scene(*jobs)
    count = Counted()
    undisturbed.sweep(count)
    expected = finish_everything(undisturbed)
    assert sum(map(len, expected.values())) > 30
    for stop_at in range(1, len(count.calls) + 1):
        scene = Scene(*jobs)
        with pytest.raises(Stopped):
            scene.sweep(Counted(stop_at), after=after)
        assert finish_everything(scene) == expected
        for job in jobs:
            there = scene.job(job)
            if there.next_run_at:
                assert wakeup_for(there.next_run_at, NOON) in scene.wakeups.asked
            else:
                assert there.status is JobStatus.COMPLETED


@pytest.mark.parametrize("change", [changing.pause, changing.cancel])
def test_a_job_changed_at_any_moment_of_a_sweep_starts_nothing_afterwards(change: changing.Change) -> None:
    job = a_cron_job(next_run_at=NOON + timedelta(seconds=30))
    count = Counted()
    Scene(job).sweep(count)
    for at in range(1, len(count.calls) + 1):
        scene = Scene(job)

        class ChangedAt(Counted):
            def __call__(self, name: str, scene: Scene = scene, at: int = at) -> None:
                self.calls.append(name)
                if len(self.calls) == at:
                    seen = scene.job(job)
                    scene.store.change(seen, change(seen, OWNER, NOON).job)

        scene.sweep(ChangedAt())
        assert finish_everything(scene) == {}
        assert scene.job(job).status in (JobStatus.PAUSED, JobStatus.CANCELLED)
        assert {run.status for run in scene.runs(job)} <= {RunStatus.CANCELLED}
