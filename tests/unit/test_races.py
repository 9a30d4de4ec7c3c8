"""What a hostile reviewer found: two things at the same moment, in every order that matters."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from duetime import changing
from duetime.admission import Admission
from duetime.audit import Action
from duetime.claiming import claimed
from duetime.clock import ManualClock
from duetime.errors import InvalidField, TransientFailure
from duetime.finishing import succeeded
from duetime.job import Job, Overlap, Priority
from duetime.memory_store import MemoryStore
from duetime.pair import JobRun
from duetime.run import Run
from duetime.settling import settle
from duetime.status import JobStatus, RunStatus
from duetime.store import Move
from duetime.submission import Intake
from duetime.sweeping import Sweeper
from duetime.targets import AllowedTargets, Rule
from duetime.tasks import AttemptContext
from duetime.timing import CatchUp
from duetime.turns import call_waiting

from tests.factories import ME, NOW, a_cron_job, a_job, a_run, a_spec, a_timing
from tests.inline import DueMessages, Inline, Minutes
from tests.workers import a_worker

NOON = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
ALLOWED = AllowedTargets((Rule(python=("duetime_examples.*",)),))


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


class Scene:
    def __init__(self, job: Job, now: datetime = NOON) -> None:
        self.clock, self.store = ManualClock(now), MemoryStore()
        self.intake = Intake(
            self.store, Minutes(), self.clock, ALLOWED, Admission(self.store, (), self.clock), lambda: b"k"
        )
        self.changes = changing.Changes(self.intake)
        self.job_id = job.job_id
        self.store.create(job, [])
        self.started: list[datetime] = []

    @property
    def job(self) -> Job:
        job = self.store.get_job(self.job_id)
        assert job is not None
        return job

    @property
    def runs(self) -> list[Run]:
        return list(self.store.list_runs(self.job_id, limit=10_000).runs)[::-1]

    def sweep(self) -> None:
        sweeper = Sweeper(self.store, Minutes(), DueMessages(), self.clock, Inline())
        sweeper.sweep(sweeper.look())

    def work(self, run: Run) -> RunStatus:
        def execute(context: AttemptContext) -> None:
            self.started.append(context.due_at)

        a_worker(self.store, self.clock, execute).work(self.store.load([run.key])[run.key])
        there = self.store.get_run(run.key)
        assert there is not None
        return there.status

    def work_off(self) -> None:
        for run in self.runs:
            if run.due_at <= self.clock.now():
                self.work(run)

    def do(self, change: changing.Change, job: Job | None = None) -> Job:
        return self.changes.apply(job or self.job, change, actor=ME, action=Action.CHANGED)

    def update(self, **spec_changes: Any) -> Job:
        return self.do(changing.update(lambda job: replace(job.spec, **spec_changes), self.intake))


def future(at: datetime) -> Job:
    return a_job(spec=a_spec(timing=a_timing("FUTURE", schedule_time=at)), next_run_at=at)


class TestASweepBetweenReadAndWrite:
    def test_a_pause_that_read_before_the_sweep_loses_nothing(self) -> None:
        scene = Scene(future(NOON + seconds(120)))
        outdated = scene.job
        scene.sweep()
        scene.do(changing.pause, outdated)
        scene.clock.advance(seconds(10))
        scene.do(changing.resume)
        scene.clock.advance(seconds(200))
        scene.work_off()
        assert scene.started == [NOON + seconds(120)]

    def test_an_update_that_read_before_the_sweep_loses_nothing(self) -> None:
        scene = Scene(a_cron_job("4 12 * * *", next_run_at=NOON + seconds(240)), NOON - seconds(0.1))
        outdated = scene.job
        scene.clock.advance(seconds(0.2))
        scene.sweep()
        rename = changing.update(lambda job: replace(job.spec, priority=Priority.HIGH), scene.intake)
        scene.do(rename, outdated)
        scene.clock.advance(seconds(250))
        scene.work_off()
        assert scene.started == [NOON + seconds(240)]

    def test_a_resume_that_read_before_the_last_run_ended_completes_the_job(self) -> None:
        scene = Scene(future(NOON))
        scene.sweep()
        read_before_the_end: list[Job] = []

        def pause_meanwhile(_: AttemptContext) -> None:
            scene.do(changing.pause)
            read_before_the_end.append(scene.job)

        run = scene.runs[0]
        a_worker(scene.store, scene.clock, pause_meanwhile).work(scene.store.load([run.key])[run.key])
        assert scene.do(changing.resume, read_before_the_end[0]).status is JobStatus.COMPLETED


class TestTheLastRunIsFasterThanItsSweep:
    def test_a_run_that_ends_before_its_job_moves_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        scene = Scene(future(NOON), NOON + seconds(30))
        add = scene.store.add_run

        def add_and_work(run: Run) -> bool:
            added = add(run)
            scene.work(run)
            return added

        monkeypatch.setattr(scene.store, "add_run", add_and_work)
        scene.sweep()
        assert (len(scene.started), scene.job.status) == (1, JobStatus.COMPLETED)

    def test_a_sweep_that_died_before_its_job_moved_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        scene = Scene(future(NOON + seconds(30)))

        def die(_: list[Move]) -> list[str]:
            raise RuntimeError("dead")

        with monkeypatch.context() as dying:
            dying.setattr(scene.store, "move_on", die)
            scene.sweep()
        scene.clock.advance(seconds(31))
        scene.work_off()
        scene.sweep()
        assert (len(scene.started), scene.job.status) == (1, JobStatus.COMPLETED)


class TestSeveralChanges:
    def test_a_second_change_does_not_bring_a_void_run_back(self) -> None:
        scene = Scene(future(NOON + seconds(180)))
        scene.sweep()
        old = scene.runs[0]
        scene.update(timing=a_timing("FUTURE", schedule_time=NOON + seconds(3600)))
        scene.clock.advance(seconds(181))
        scene.update(timeout_seconds=30)
        assert scene.work(old) is RunStatus.CANCELLED

    def test_a_time_slept_through_happens_once(self) -> None:
        scene = Scene(a_cron_job("0 * * * *", next_run_at=NOON + seconds(3600)), NOON + seconds(3500))
        scene.sweep()
        scene.do(changing.pause)
        scene.clock.advance(seconds(105))
        scene.do(changing.resume)
        scene.work_off()
        assert scene.started == [NOON + seconds(3600)]

    def test_a_time_that_had_come_when_the_job_was_paused_is_made_good(self) -> None:
        scene = Scene(future(NOON + seconds(60)))
        scene.sweep()
        scene.clock.advance(seconds(61))
        scene.do(changing.pause)
        scene.work_off()
        assert scene.started == []
        scene.clock.advance(seconds(600))
        scene.do(changing.resume)
        scene.work_off()
        assert (scene.started, scene.job.status) == ([NOON + seconds(60)], JobStatus.COMPLETED)

    def test_a_change_to_a_job_whose_last_time_is_overdue_still_lets_it_complete(self) -> None:
        scene = Scene(future(NOON), NOON + seconds(10))
        scene.update(priority="high")
        scene.work_off()
        assert (len(scene.started), scene.job.status) == (1, JobStatus.COMPLETED)

    def test_a_change_leaves_alone_what_a_sweep_that_died_had_planned(self) -> None:
        scene = Scene(future(NOON), NOON + seconds(10))
        planned = a_run(scene.job, at=NOON).evolve(error_message="as it was")
        scene.store.add_run(planned)
        scene.update(priority="high")
        assert scene.store.get_run(planned.key) == planned

    def test_a_job_can_be_changed_to_run_at_once(self) -> None:
        scene = Scene(future(NOON + seconds(3600)))
        scene.update(timing=a_timing("IMMEDIATE"))
        assert [run.due_at for run in scene.runs] == [NOON]

    def test_an_interval_keeps_its_beat_when_only_its_end_changes(self) -> None:
        timing = a_timing("INTERVAL", interval_seconds=3600)
        job = a_job(spec=a_spec(timing=timing), anchor_at=NOON, next_run_at=NOON + seconds(3600))
        scene = Scene(job, NOON + timedelta(minutes=59))
        scene.update(timing=replace(timing, end_at=NOON + timedelta(days=30)))
        assert [run.due_at for run in scene.runs] == [NOON + seconds(3600)]

    def test_a_jitter_beyond_all_bounds_is_refused_by_its_name(self) -> None:
        scene = Scene(future(NOON + seconds(3600)))
        timing = a_timing("FUTURE", schedule_time=NOON + seconds(3600), jitter_seconds=10**16)
        with pytest.raises(InvalidField, match="jitter_seconds"):
            scene.update(timing=timing)


class TestTurns:
    def test_all_of_a_long_catch_up_runs_the_oldest_first(self) -> None:
        missed = 300
        timing = {"catch_up": CatchUp.ALL, "end_at": NOON}
        job = a_cron_job(timing=timing, next_run_at=NOON - timedelta(minutes=missed))
        scene = Scene(job, NOON + seconds(120))
        while scene.job.next_run_at:
            scene.sweep()
        first, *rest = (run for run in scene.runs if run.patient)

        def execute(context: AttemptContext) -> None:
            scene.started.append(context.due_at)
            if context.run_id == first.run_id:
                for run in rest:
                    scene.work(run)

        def work(run: Run) -> None:
            a_worker(scene.store, scene.clock, execute).work(scene.store.load([run.key])[run.key])

        work(first)
        while called := [r for r in scene.runs if r.called_at and r.status is RunStatus.QUEUED]:
            assert len(called) == 1
            work(called[0])
        assert scene.started == [run.due_at for run in (first, *rest)]
        assert (scene.job.waiters, scene.job.status) == (0, JobStatus.COMPLETED)

    def test_two_that_end_at_once_call_two(self) -> None:
        job = a_cron_job("*/10 * * * * *", spec={"overlap": Overlap.QUEUE, "max_concurrency": 2})
        first, second, third, fourth = (a_run(job, at=NOW + seconds(10 * n)) for n in range(4))
        store, clock = MemoryStore(), ManualClock(NOW + seconds(100))
        store.create(job, [first, second, third, fourth])

        def load(run: Run) -> JobRun:
            return store.load([run.key])[run.key]

        for run in (first, second):
            seen = load(run)
            assert store.exchange(seen, claimed(seen, "w", clock.now()), {"fence"}) is None
        for run in (third, fourth):
            a_worker(store, clock).work(load(run))
        both = [load(first), load(second)]
        for seen in both:
            assert settle(seen, succeeded(seen.run, None, NOW, NOW), store, clock.now(), by_holder=True)
        assert all(load(run).run.called_at for run in (third, fourth))

    def test_the_oldest_is_found_behind_any_number_of_runs_that_were_skipped(self) -> None:
        job = a_cron_job("*/10 * * * * *", spec={"overlap": Overlap.QUEUE})
        waiting = [a_run(job, at=NOW + seconds(10 * n)) for n in range(100)]
        skipped = [
            a_run(job, at=NOW + seconds(1000 + 10 * n)).evolve(status=RunStatus.SKIPPED, deadline_at=None)
            for n in range(50)
        ]
        store = MemoryStore()
        store.create(job.evolve(waiters=100, turn_from=waiting[0].run_id), [*waiting, *skipped])
        assert call_waiting(job.job_id, store, NOW + seconds(2000)) == 1
        there = store.get_run(waiting[0].key)
        assert there is not None
        assert there.called_at is not None

    def test_a_run_that_was_put_off_meanwhile_is_left_to_its_own_hint(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A twin of the hint took the free place and failed; the target said: not before ten minutes."""
        job = a_cron_job("*/10 * * * * *", running=1)
        run = a_run(job)
        store, clock = MemoryStore(), ManualClock(NOW)
        store.create(job, [run])
        seen = store.load([run.key])[run.key]
        load = store.load

        def fail(_: AttemptContext) -> None:
            raise TransientFailure("busy", retry_after=seconds(600))

        def a_twin_comes(keys: Any) -> Any:
            monkeypatch.undo()
            there = store.get_job(job.job_id)
            assert there is not None
            store.adjust(there, there.evolve(running=0), set())
            a_worker(store, ManualClock(clock.now()), fail).work(load([run.key])[run.key])
            return load(keys)

        monkeypatch.setattr(store, "load", a_twin_comes)
        assert a_worker(store, clock).work(seen) is None
        assert clock.now() < NOW + seconds(60)
        there = store.get_run(run.key)
        assert there is not None
        assert (there.status, there.attempt) == (RunStatus.RETRYING, 1)
