"""What an owner can do to a job, and that it holds against whatever happens at the same moment."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from duetime import changing
from duetime.admission import Admission
from duetime.audit import Action, Actor
from duetime.claiming import Verdict, judge
from duetime.clock import ManualClock
from duetime.errors import Conflict, InvalidField, Stale, Unavailable
from duetime.job import Job, JobSpec
from duetime.memory_store import MemoryStore
from duetime.pair import JobRun
from duetime.planning import plan
from duetime.run import Run
from duetime.status import JobStatus, RunStatus
from duetime.store import Move
from duetime.submission import Intake
from duetime.targets import AllowedTargets, Rule
from duetime.timing import CatchUp

from tests.factories import ME, a_cron_job, a_job, a_spec, a_timing
from tests.inline import Minutes

NOON = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
ALLOWED = AllowedTargets((Rule(python=("duetime_examples.*",)),))


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


class Scene:
    def __init__(self, job: Job, now: datetime = NOON) -> None:
        self.clock = ManualClock(now)
        self.store = MemoryStore()
        self.wakeups = Minutes()
        self.intake = Intake(
            self.store, self.wakeups, self.clock, ALLOWED, Admission(self.store, (), self.clock), lambda: b"k"
        )
        self.changes = changing.Changes(self.intake)
        self.job_id = job.job_id
        self.store.create(job, [])

    @property
    def job(self) -> Job:
        job = self.store.get_job(self.job_id)
        assert job is not None
        return job

    @property
    def runs(self) -> list[Run]:
        return list(self.store.list_runs(self.job_id, limit=100).runs)[::-1]

    def sweep(self) -> None:
        job = self.job
        made = plan(job, self.clock.now())
        for run in made.runs:
            self.store.add_run(run)
        self.store.move_on([Move(job, made.job)])

    def do(self, change: changing.Change, **options: Any) -> Job:
        return self.changes.apply(self.job, change, actor=ME, action=Action.CHANGED, **options)

    def update(self, **spec_changes: Any) -> Job:
        return self.do(changing.update(lambda job: replace(job.spec, **spec_changes), self.intake))

    def wanted(self) -> list[datetime]:
        """The due times of the runs that a worker would start, were each hinted at its time."""
        return [run.due_at for run in self.runs if judge(self.job, run).verdict is Verdict.CLAIMABLE]

    def advance(self, by: timedelta) -> None:
        self.clock.advance(by)


def future(at: datetime) -> JobSpec:
    return a_spec(timing=a_timing("FUTURE", schedule_time=at))


class TestPauseAndResume:
    def test_a_paused_job_starts_nothing_that_was_planned(self) -> None:
        scene = Scene(a_cron_job(next_run_at=NOON + seconds(60)))
        scene.sweep()
        assert len(scene.wanted()) == 3
        scene.do(changing.pause)
        assert scene.wanted() == []
        assert {judge(scene.job, run).reason for run in scene.runs} == {"the job is paused"}

    def test_a_time_whose_run_was_void_by_a_short_pause_happens_all_the_same(self) -> None:
        job = a_cron_job("0 * * * *", next_run_at=NOON + timedelta(hours=1))
        scene = Scene(job, NOON + timedelta(minutes=58))
        scene.sweep()
        scene.do(changing.pause)
        scene.advance(seconds(5))
        scene.do(changing.resume)
        assert scene.wanted() == [NOON + timedelta(hours=1)]

    @pytest.mark.parametrize(
        ("catch_up", "wanted"),
        [(CatchUp.ONE, [5, 6, 7, 8, 9]), (CatchUp.ALL, list(range(1, 10))), (CatchUp.SKIP, [6, 7, 8, 9])],
    )
    def test_times_slept_through_are_treated_by_catch_up(self, catch_up: CatchUp, wanted: list[int]) -> None:
        scene = Scene(a_cron_job(timing={"catch_up": catch_up}, next_run_at=NOON + seconds(60)))
        scene.do(changing.pause)
        scene.advance(timedelta(minutes=5, seconds=30))
        scene.do(changing.resume)
        assert scene.wanted() == [NOON + timedelta(minutes=minute) for minute in wanted]

    def test_skip_skips_a_time_that_was_slept_through_by_seconds_only(self) -> None:
        scene = Scene(a_cron_job(timing={"catch_up": CatchUp.SKIP}, next_run_at=NOON + seconds(60)))
        scene.do(changing.pause)
        scene.advance(seconds(65))
        scene.do(changing.resume)
        assert NOON + seconds(60) not in scene.wanted()

    def test_an_overdue_time_that_nobody_planned_before_the_pause_is_slept_through_too(self) -> None:
        scene = Scene(a_cron_job(timing={"catch_up": CatchUp.ALL}, next_run_at=NOON - timedelta(minutes=3)))
        scene.do(changing.pause)
        scene.do(changing.resume)
        assert scene.wanted()[:4] == [NOON - timedelta(minutes=minute) for minute in (3, 2, 1, 0)]

    def test_a_paused_job_needs_no_wake_up_and_a_resumed_one_does(self) -> None:
        scene = Scene(a_cron_job("0 * * * *", next_run_at=NOON + timedelta(hours=1)))
        scene.do(changing.pause)
        assert scene.wakeups.asked == []
        scene.do(changing.resume)
        assert scene.wakeups.asked == [NOON + timedelta(minutes=58)]

    def test_pausing_twice_changes_nothing_the_second_time(self) -> None:
        scene = Scene(a_cron_job(next_run_at=NOON + seconds(60)))
        assert scene.do(changing.pause) == scene.do(changing.pause)
        assert scene.do(changing.resume) == scene.do(changing.resume)

    def test_resuming_a_job_whose_only_run_has_ended_completes_it(self) -> None:
        job = a_job(status=JobStatus.PAUSED, final_run_id="x", final_ended=True)
        assert Scene(job).do(changing.resume).status is JobStatus.COMPLETED

    def test_resuming_a_job_whose_only_run_is_under_way_leaves_it_to_that_run(self) -> None:
        job = a_job(status=JobStatus.PAUSED, final_run_id="x", running=1)
        assert Scene(job).do(changing.resume).status is JobStatus.SCHEDULED


class TestCancel:
    def test_a_cancelled_job_starts_nothing_and_stays_cancelled(self) -> None:
        scene = Scene(a_cron_job(next_run_at=NOON + seconds(60)))
        scene.sweep()
        after = scene.do(changing.cancel)
        assert (scene.wanted(), after.next_run_at) == ([], None)
        assert scene.do(changing.cancel) == after
        for change in (changing.pause, changing.resume):
            with pytest.raises(Conflict, match="the job is CANCELLED"):
                scene.do(change)

    def test_a_sweep_that_read_the_job_before_it_was_cancelled_cannot_bring_it_back(self) -> None:
        scene = Scene(a_cron_job(next_run_at=NOON + seconds(60)))
        seen = scene.job
        made = plan(seen, scene.clock.now())
        scene.do(changing.cancel)
        for run in made.runs:
            scene.store.add_run(run)
        assert scene.store.move_on([Move(seen, made.job)]) == [scene.job_id]
        assert (scene.wanted(), scene.job.status) == ([], JobStatus.CANCELLED)


class TestUpdate:
    def test_a_rescheduled_job_runs_once_at_its_new_time(self) -> None:
        scene = Scene(a_job(spec=future(NOON + seconds(60)), next_run_at=NOON + seconds(60)))
        scene.sweep()
        later = NOON + timedelta(seconds=90)
        scene.update(timing=a_timing("FUTURE", schedule_time=later))
        assert scene.wanted() == [later]
        old = scene.runs[0]
        assert judge(scene.job, old).reason == "the job was changed before the run was due"

    def test_a_job_moved_far_ahead_waits_with_a_wake_up(self) -> None:
        scene = Scene(a_job(spec=future(NOON + seconds(60)), next_run_at=NOON + seconds(60)))
        scene.update(timing=a_timing("FUTURE", schedule_time=NOON + timedelta(hours=2, seconds=5)))
        assert scene.job.next_run_at == NOON + timedelta(hours=2, seconds=5)
        assert scene.wakeups.asked == [NOON + timedelta(hours=1, minutes=58)]

    def test_a_time_that_was_due_already_still_happens_planned_or_not(self) -> None:
        for swept in (True, False):
            scene = Scene(a_cron_job(next_run_at=NOON), NOON - seconds(1))
            if swept:
                scene.sweep()
            scene.advance(seconds(1.5))
            scene.update(timing=a_timing("CRON", cron_expression="30 18 * * *"))
            assert scene.wanted() == [NOON]

    def test_a_time_due_at_the_very_millisecond_of_the_change_happens_once(self) -> None:
        scene = Scene(a_cron_job(next_run_at=NOON), NOON - seconds(1))
        scene.sweep()
        scene.advance(seconds(1))
        scene.update(priority="high")
        assert scene.wanted().count(NOON) == 1

    def test_another_task_applies_to_the_times_to_come(self) -> None:
        scene = Scene(a_cron_job(next_run_at=NOON + seconds(60)))
        scene.sweep()
        before = scene.wanted()
        scene.update(task={"type": "python", "function": "duetime_examples.greetings:other"})
        assert scene.wanted() == before
        assert {run.generation for run in scene.runs} == {1, 2}

    def test_a_new_name_alters_neither_runs_nor_generation(self) -> None:
        scene = Scene(a_cron_job(next_run_at=NOON + seconds(60)))
        scene.sweep()
        before = scene.runs
        after = scene.update(name="another", tags=("x",))
        assert (after.generation, after.version, scene.runs) == (1, 2, before)

    def test_nothing_to_change_is_no_change(self) -> None:
        scene = Scene(a_cron_job(next_run_at=NOON + seconds(60)))
        assert scene.update(name=scene.job.spec.name).version == 1

    def test_a_paused_job_stays_paused_and_remembers_what_it_slept_through(self) -> None:
        scene = Scene(a_cron_job(timing={"catch_up": CatchUp.ALL}, next_run_at=NOON + seconds(60)))
        scene.do(changing.pause)
        scene.advance(timedelta(minutes=3))
        scene.update(task={"type": "python", "function": "duetime_examples.greetings:other"})
        assert (scene.job.status, scene.wanted()) == (JobStatus.PAUSED, [])
        scene.do(changing.resume)
        assert NOON + seconds(60) in scene.wanted()

    def test_an_interval_is_anchored_anew_only_by_new_times(self) -> None:
        timing = a_timing("INTERVAL", interval_seconds=3600)
        scene = Scene(a_job(spec=a_spec(timing=timing), anchor_at=NOON, next_run_at=NOON + seconds(3600)))
        scene.advance(timedelta(minutes=10))
        scene.update(timing=replace(timing, catch_up=CatchUp.SKIP))
        assert scene.job.next_run_at == NOON + seconds(3600)
        scene.update(timing=replace(timing, interval_seconds=7200))
        assert scene.job.next_run_at == NOON + timedelta(minutes=130)

    def test_a_time_that_has_come_by_its_old_jitter_does_not_come_again_by_the_new(self) -> None:
        job = a_cron_job("0 * * * *", timing={"jitter_seconds": 1})
        scene = Scene(job.evolve(next_run_at=NOON + timedelta(hours=1)), NOON + seconds(2))
        scene.update(timing=replace(job.spec.timing, jitter_seconds=3000))
        assert scene.job.next_run_at is not None
        assert scene.job.next_run_at >= NOON + timedelta(hours=1)

    def test_a_time_in_the_past_is_refused_and_nothing_is_written(self) -> None:
        scene = Scene(a_job(spec=future(NOON + seconds(600)), next_run_at=NOON + seconds(600)))
        before = scene.job
        with pytest.raises(InvalidField, match="schedule_time: lies in the past"):
            scene.update(timing=a_timing("FUTURE", schedule_time=NOON - seconds(1)))
        assert scene.job == before

    def test_a_forbidden_task_is_refused(self) -> None:
        scene = Scene(a_cron_job(next_run_at=NOON + seconds(60)))
        with pytest.raises(InvalidField, match="task"):
            scene.update(task={"type": "python", "function": "os:system"})

    def test_a_completed_job_is_not_changed(self) -> None:
        with pytest.raises(Conflict, match="the job is COMPLETED, and cannot be changed"):
            Scene(a_job(status=JobStatus.COMPLETED)).update(name="another")

    def test_a_job_that_has_many_missed_times_to_make_good_says_so(self) -> None:
        timing = {"catch_up": CatchUp.ALL}
        scene = Scene(a_cron_job(timing=timing, next_run_at=NOON - timedelta(hours=3)))
        with pytest.raises(Conflict, match="missed times to make good"):
            scene.update(priority="high")

    def test_without_its_wake_up_nothing_is_written(self) -> None:
        scene = Scene(a_job(spec=future(NOON + seconds(600)), next_run_at=NOON + seconds(600)))
        before = scene.job
        scene.wakeups.broken = True
        with pytest.raises(Unavailable):
            scene.update(timing=a_timing("FUTURE", schedule_time=NOON + seconds(900)))
        assert (scene.job, scene.runs) == (before, [])

    def test_the_last_run_of_a_changed_job_still_completes_it(self) -> None:
        scene = Scene(a_job(spec=future(NOON), next_run_at=NOON), NOON - seconds(1))
        scene.sweep()
        scene.advance(seconds(2))
        after = scene.update(task={"type": "python", "function": "duetime_examples.greetings:other"})
        assert (after.status, after.final_run_id) == (JobStatus.SCHEDULED, scene.runs[0].run_id)


class TestAgainstOthers:
    def test_two_changes_at_once_both_happen(self) -> None:
        scene = Scene(a_cron_job(next_run_at=NOON + seconds(60)))
        outdated = scene.job
        scene.update(name="another")
        rename = changing.update(lambda job: replace(job.spec, tags=("x",)), scene.intake)
        after = scene.changes.apply(outdated, rename, actor=Actor("somebody"), action=Action.CHANGED)
        assert (after.spec.name, after.spec.tags, after.updated_by) == ("another", ("x",), "somebody")

    def test_a_caller_who_insists_on_a_version_is_told_that_it_is_no_more(self) -> None:
        scene = Scene(a_cron_job(next_run_at=NOON + seconds(60)))
        scene.update(name="another")
        with pytest.raises(Stale, match="at version 2 and not at 1"):
            scene.do(changing.pause, if_match=1)
        assert scene.do(changing.pause, if_match=2).status is JobStatus.PAUSED

    def test_a_job_that_others_change_at_every_try_is_a_conflict(self) -> None:
        scene = Scene(a_cron_job(next_run_at=NOON + seconds(60)))
        scene.store.change = lambda seen, after, runs=(), *, event=None: seen  # type: ignore[method-assign]
        with pytest.raises(Conflict, match="changed by others"):
            scene.do(changing.pause)


class TestRunNow:
    @pytest.mark.parametrize("status", [JobStatus.SCHEDULED, JobStatus.PAUSED, JobStatus.COMPLETED])
    def test_a_manual_run_needs_no_schedule(self, status: JobStatus) -> None:
        scene = Scene(a_cron_job(next_run_at=NOON + seconds(60), status=status))
        run = scene.changes.run_now(scene.job, ME)
        assert (run.manual, run.due_at, run.status) == (True, NOON, RunStatus.QUEUED)
        assert scene.wanted() == [NOON]
        assert scene.job.next_run_at == NOON + seconds(60)

    def test_two_in_the_same_millisecond_are_two(self) -> None:
        scene = Scene(a_cron_job(next_run_at=NOON + seconds(60)))
        assert scene.changes.run_now(scene.job, ME).run_id != scene.changes.run_now(scene.job, ME).run_id

    def test_a_cancelled_job_does_not_run(self) -> None:
        with pytest.raises(Conflict, match="the job is CANCELLED"):
            Scene(job := a_cron_job(status=JobStatus.CANCELLED)).changes.run_now(job, ME)

    def test_a_job_cancelled_at_that_moment_does_not_run(self) -> None:
        scene = Scene(a_cron_job(next_run_at=NOON + seconds(60)))
        run = scene.changes.run_now(scene.job, ME)
        scene.do(changing.cancel)
        assert judge(*JobRun(scene.job, run)).verdict is Verdict.UNWANTED

    def test_it_runs_though_nothing_could_be_woken_for_its_rescue(self) -> None:
        scene = Scene(a_cron_job(next_run_at=NOON + seconds(60)))
        scene.wakeups.broken = True
        scene.changes.run_now(scene.job, ME)
        assert scene.wanted() == [NOON]
