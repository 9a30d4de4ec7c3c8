"""The trail of decisions for an instant."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from duetime import explaining
from duetime.audit import Action, changes_between
from duetime.changing import cancel, pause, resume
from duetime.errors import TransientFailure
from duetime.explaining import Explainer, Explanation
from duetime.finishing import dropped, failed, succeeded
from duetime.job import Job
from duetime.memory_store import MemoryStore
from duetime.pair import JobRun
from duetime.planning import plan
from duetime.run import Run, RunKey, manual_run
from duetime.status import JobStatus, RunStatus
from duetime.timing import CatchUp

from tests.factories import ME, OWNER, a_cron_job, a_job, a_spec, a_timing, claimed_pair

SIX = datetime(2026, 11, 18, 6, 0, tzinfo=UTC)
SEVEN = datetime(2026, 11, 18, 7, 0, tzinfo=UTC)
EIGHT = datetime(2026, 11, 18, 8, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def daily(**changes: Any) -> Job:
    """Every day at seven, created at six."""
    return a_cron_job("0 7 * * *", **{"created_at": SIX, "anchor_at": SIX, "next_run_at": SEVEN} | changes)


class Scene:
    def __init__(self, job: Job) -> None:
        self.store = MemoryStore()
        self.job = job
        self.store.create(job, [])

    def plan_at(self, now: datetime) -> Run:
        return self.plan_all_at(now)[-1]

    def plan_all_at(self, now: datetime) -> Sequence[Run]:
        made = plan(self.job, now)
        for run in made.runs:
            self.store.add_run(run)
        self.store.adjust(self.job, made.job, ())
        self.job = made.job
        return made.runs

    def put(self, run: Run) -> None:
        there = self.store.get_run(run.key)
        assert there is not None
        self.store.advance(there, run)

    def do(self, change: Any, action: Action, now: datetime, by: Any = ME) -> None:
        after = change(self.job, by.principal, now).job
        self.store.change(self.job, after, event=by.did(action, self.job.job_id, now))
        self.job = after

    def explain(self, at: datetime, now: datetime = EIGHT) -> Explanation:
        return Explainer(self.store, timedelta(days=30)).explain(self.job, at, now)

    def codes(self, at: datetime, now: datetime = EIGHT) -> list[str]:
        return [step.code for step in self.explain(at, now).steps]


class TestThereWasARun:
    def started(self, scene: Scene, start: datetime = SEVEN) -> JobRun:
        run = scene.plan_at(SEVEN - MINUTE)
        held = claimed_pair(JobRun(scene.job, run))
        return JobRun(held.job, replace(held.run, start_time=start))

    def test_it_ran(self) -> None:
        scene = Scene(daily())
        held = self.started(scene)
        scene.put(succeeded(held.run, None, SEVEN, SEVEN + MINUTE))
        assert scene.codes(SEVEN) == ["scheduled", "ran"]

    def test_it_ran_late_after_its_hint_was_lost(self) -> None:
        scene = Scene(daily())
        held = self.started(scene)
        done = succeeded(held.run, None, SEVEN + timedelta(seconds=30), SEVEN + MINUTE)
        scene.put(replace(done, hints=2))
        steps = scene.explain(SEVEN).steps
        assert [step.code for step in steps] == ["scheduled", "hinted_again", "late", "ran"]
        assert "30.0 s late" in steps[2].detail

    def test_it_is_retried(self) -> None:
        scene = Scene(daily())
        held = self.started(scene)
        error = TransientFailure("503")
        scene.put(failed(scene.job, held.run, error, SEVEN, SEVEN + MINUTE, lambda: 0.5))
        explanation = scene.explain(SEVEN)
        assert explanation.verdict == "retrying"
        assert "503" in explanation.steps[-1].detail

    def test_it_failed_for_good_after_others(self) -> None:
        scene = Scene(daily(spec={"max_retries": 0}))
        held = self.started(scene)
        run = failed(scene.job, held.run, TransientFailure("no"), SEVEN, SEVEN + MINUTE, lambda: 0.5)
        scene.put(run)
        assert scene.codes(SEVEN)[-1] == "failed"

    def test_it_is_running(self) -> None:
        scene = Scene(daily())
        scene.put(self.started(scene).run)
        assert scene.codes(SEVEN) == ["scheduled", "running"]

    def test_it_was_skipped_because_of_another(self) -> None:
        scene = Scene(a_cron_job("* * * * *", created_at=SIX, next_run_at=SEVEN))
        scene.plan_at(SEVEN - MINUTE)
        first, second = sorted(
            scene.store.list_runs(scene.job.job_id, limit=9).runs, key=lambda run: run.run_id
        )[:2]
        scene.put(replace(claimed_pair(JobRun(scene.job, first)).run, start_time=SEVEN))
        scene.put(dropped(second, RunStatus.SKIPPED, "1 of at most 1", SEVEN + MINUTE))
        last = scene.explain(SEVEN + MINUTE).steps[-1]
        assert last.code == "skipped"
        assert first.run_id in last.detail

    def test_it_was_cancelled(self) -> None:
        scene = Scene(daily())
        run = scene.plan_at(SEVEN - MINUTE)
        scene.put(dropped(run, RunStatus.CANCELLED, "it was cancelled by ann", SEVEN))
        assert scene.explain(SEVEN).steps[-1].detail == "it was cancelled by ann"

    def test_nobody_has_claimed_it_and_it_is_late(self) -> None:
        scene = Scene(daily())
        scene.plan_at(SEVEN - MINUTE)
        assert scene.codes(SEVEN, now=SEVEN + MINUTE) == ["scheduled", "late", "queued"]

    def test_it_waits_for_its_turn(self) -> None:
        scene = Scene(daily())
        scene.plan_at(SEVEN - MINUTE)
        scene.job = replace(scene.job, running=1)
        assert scene.codes(SEVEN, now=SEVEN)[-1] == "waiting_for_its_turn"

    def test_it_is_planned_and_its_time_has_not_come(self) -> None:
        scene = Scene(daily())
        scene.plan_at(SEVEN - MINUTE)
        assert scene.codes(SEVEN, now=SEVEN - MINUTE) == ["scheduled", "planned"]

    def test_it_is_planned_but_its_job_is_paused(self) -> None:
        scene = Scene(daily())
        scene.plan_at(SEVEN - MINUTE)
        scene.do(pause, Action.PAUSED, SEVEN - timedelta(seconds=30))
        last = scene.explain(SEVEN, now=SEVEN).steps[-1]
        assert (last.code, last.by) == ("paused", OWNER)

    def test_somebody_asked_for_it(self) -> None:
        scene = Scene(daily())
        scene.store.add_run(manual_run(scene.job, SIX + MINUTE, "ab"))
        steps = scene.explain(SIX + MINUTE).steps
        assert "by hand" in steps[0].detail


class TestThereWasNone:
    def test_the_job_did_not_exist(self) -> None:
        assert Scene(daily()).codes(SIX - MINUTE) == ["not_created"]

    def test_the_schedule_has_no_time_then(self) -> None:
        step = Scene(daily()).explain(SEVEN + timedelta(minutes=5)).steps[-1]
        assert step.code == "not_scheduled"
        assert step.at == SEVEN + timedelta(days=1)

    def test_it_was_paused_by_somebody(self) -> None:
        scene = Scene(daily())
        scene.do(pause, Action.PAUSED, SIX + MINUTE)
        step = scene.explain(SEVEN).steps[-1]
        assert (step.code, step.at, step.by) == ("paused", SIX + MINUTE, OWNER)

    def test_it_slept_and_another_run_stands_for_it(self) -> None:
        scene = Scene(a_cron_job("0 * * * *", created_at=SIX, next_run_at=SEVEN))
        scene.do(pause, Action.PAUSED, SIX + MINUTE)
        woken = resume(scene.job, OWNER, EIGHT + MINUTE)
        event = ME.did(Action.RESUMED, scene.job.job_id, EIGHT + MINUTE)
        scene.store.change(scene.job, woken.job, woken.runs, event=event)
        scene.job = woken.job
        now = EIGHT + 2 * MINUTE
        assert scene.codes(SEVEN, now) == ["paused", "caught_up"]
        assert scene.explain(SEVEN, now).steps[-1].run_id == woken.runs[0].run_id

    def test_it_was_cancelled(self) -> None:
        scene = Scene(daily())
        scene.do(cancel, Action.CANCELLED, SIX + MINUTE)
        assert scene.codes(SEVEN) == ["cancelled"]

    def test_before_start_and_after_end(self) -> None:
        timing = {"start_at": SEVEN + timedelta(days=3), "end_at": SEVEN + timedelta(days=9)}
        scene = Scene(daily(timing=timing, next_run_at=SEVEN + timedelta(days=3)))
        assert scene.codes(SEVEN) == ["before_start"]
        assert scene.codes(SEVEN + timedelta(days=20)) == ["after_end"]

    def test_in_a_gap_of_the_clocks(self) -> None:
        created = datetime(2027, 3, 1, tzinfo=UTC)
        job = a_cron_job(
            "30 2 * * *",
            created_at=created,
            next_run_at=created,
            timing={"timezone": "America/New_York", "dst_gap": "skip"},
        )
        # 02:30 New York on the day that the clocks go forward, as somebody would write it.
        steps = Scene(job).explain(datetime(2027, 3, 14, 7, 30, tzinfo=UTC), now=created).steps
        assert [step.code for step in steps] == ["daylight_saving", "not_scheduled"]
        assert "02:30" in steps[0].detail

    def test_it_lies_ahead(self) -> None:
        scene = Scene(daily())
        assert scene.codes(SEVEN + timedelta(days=2), now=SIX) == ["upcoming"]

    def test_runs_of_that_time_are_no_longer_kept(self) -> None:
        scene = Scene(daily(next_run_at=SEVEN + timedelta(days=60)))
        assert scene.codes(SEVEN, now=SEVEN + timedelta(days=50)) == ["expired"]

    def test_the_sweep_has_not_come(self) -> None:
        assert Scene(daily()).codes(SEVEN, now=SEVEN + MINUTE) == ["not_planned"]

    def test_it_is_missing(self) -> None:
        scene = Scene(daily(next_run_at=SEVEN + timedelta(days=1)))
        assert scene.codes(SEVEN, now=EIGHT) == ["missed"]

    def test_the_schedule_was_another_then(self) -> None:
        """Changed at half past seven from seven to nine: at seven the old one counts."""
        job = daily(next_run_at=EIGHT + timedelta(hours=1))
        changed = replace(job, spec=a_spec(timing=a_timing("CRON", cron_expression="0 9 * * *")))
        scene = Scene(changed)
        change = {"cron_expression": {"from": "0 7 * * *", "to": "0 9 * * *"}}
        scene.store.note(ME.did(Action.CHANGED, job.job_id, SEVEN + timedelta(minutes=30), changes=change))
        assert scene.codes(SEVEN) == ["missed"]
        assert scene.codes(EIGHT) == ["not_scheduled"]

    def test_a_time_before_the_job_was_created_in_the_same_minute(self) -> None:
        created = SEVEN + timedelta(seconds=30)
        scene = Scene(a_cron_job("* * * * *", created_at=created, next_run_at=SEVEN + MINUTE))
        scene.plan_at(created)
        assert scene.codes(SEVEN) == ["not_created"]
        assert scene.codes(SEVEN + MINUTE)[0] == "scheduled"

    def test_it_was_missed_and_catch_up_is_skip(self) -> None:
        timing = {"catch_up": CatchUp.SKIP}
        scene = Scene(a_cron_job("* * * * *", timing=timing, created_at=SIX, next_run_at=SEVEN))
        scene.plan_at(SEVEN + 20 * MINUTE)
        step = scene.explain(SEVEN + 2 * MINUTE).steps[-1]
        assert (step.code, "catch_up is skip" in step.detail) == ("skipped", True)

    def test_what_stands_for_it_is_found_however_many_runs_came_since(self) -> None:
        scene = Scene(a_cron_job("* * * * *", created_at=SIX, next_run_at=SEVEN))
        back = SEVEN + 20 * MINUTE
        stand_in = next(run for run in scene.plan_all_at(back) if run.missed_from)
        for minutes in range(1, 300):
            scene.plan_all_at(back + minutes * MINUTE)
        step = scene.explain(SEVEN + 2 * MINUTE, now=back + 300 * MINUTE).steps[-1]
        assert (step.code, step.run_id) == ("caught_up", stand_in.run_id)

    def test_it_was_paused_however_much_was_done_since(self) -> None:
        scene = Scene(daily())
        scene.do(pause, Action.PAUSED, SIX + MINUTE)
        scene.do(resume, Action.RESUMED, SEVEN + 30 * MINUTE)
        for second in range(450):
            at = SEVEN + 31 * MINUTE + timedelta(seconds=second)
            scene.store.note(ME.did(Action.RAN, scene.job.job_id, at))
        assert scene.codes(SEVEN)[0] == "paused"

    def test_so_much_was_done_since_that_it_is_not_known(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(explaining, "_EVENTS_AT_ONCE", 5)
        scene = Scene(daily())
        for second in range(60):
            scene.store.note(ME.did(Action.RAN, scene.job.job_id, SEVEN + timedelta(seconds=second)))
        assert scene.codes(SEVEN - MINUTE) == ["unknown"]
        # What is known of a run does not depend on it.
        scene.plan_at(SEVEN - MINUTE)
        assert scene.codes(SEVEN)[0] == "scheduled"
        assert scene.codes(SIX - MINUTE) == ["not_created"]

    def test_much_that_was_done_before_does_not_matter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(explaining, "_EVENTS_AT_ONCE", 5)
        scene = Scene(daily())
        for second in range(60):
            scene.store.note(ME.did(Action.RAN, scene.job.job_id, SIX + timedelta(seconds=second)))
        assert scene.codes(SEVEN - 10 * MINUTE) == ["not_scheduled"]
        scene.do(pause, Action.PAUSED, SEVEN + MINUTE)
        assert scene.codes(SEVEN - 10 * MINUTE) == ["not_scheduled"]
        assert scene.codes(SEVEN + 10 * MINUTE) == ["paused"]

    def test_an_interval_that_was_changed_twice_keeps_the_beat_it_had(self) -> None:
        """Every hour from six on, from 06:20 on every half hour, from 08:07 on every ten minutes."""
        timing = a_timing("INTERVAL", interval_seconds=3600)
        scene = Scene(
            a_job(spec=a_spec(timing=timing), created_at=SIX, anchor_at=SIX, next_run_at=SIX + 60 * MINUTE)
        )
        for seconds, minutes in ((1800, 20), (600, 127)):
            spec = replace(scene.job.spec, timing=replace(timing, interval_seconds=seconds))
            now = SIX + minutes * MINUTE
            changed = replace(scene.job, spec=spec, anchor_at=now, next_run_at=SIX + timedelta(days=1))
            changes = changes_between(scene.job, changed)
            event = ME.did(Action.CHANGED, scene.job.job_id, now, changes=changes)
            scene.store.change(scene.job, changed, event=event)
            scene.job = changed
        now = SIX + timedelta(hours=3)
        assert scene.codes(SIX + 90 * MINUTE, now) == ["not_scheduled"]
        assert scene.codes(SIX + 80 * MINUTE, now) == ["missed"]
        assert scene.codes(SIX + 137 * MINUTE, now) == ["missed"]
        assert scene.codes(SIX, now) == ["missed"]

    def test_a_job_that_is_over(self) -> None:
        timing = a_timing("FUTURE", schedule_time=SEVEN)
        job = a_job(spec=a_spec(timing=timing), created_at=SIX, status=JobStatus.COMPLETED)
        assert Scene(job).codes(SEVEN) == ["completed"]


@pytest.mark.parametrize(
    ("at", "width"),
    [(SEVEN, MINUTE), (SEVEN + timedelta(seconds=10), timedelta(seconds=1))],
)
def test_a_whole_minute_is_the_minute_and_a_second_the_second(at: datetime, width: timedelta) -> None:
    explanation = Scene(daily()).explain(at)
    assert explanation.until - explanation.at == width


def test_a_run_key_of_another_job_is_not_looked_at() -> None:
    scene, other = Scene(daily()), daily()
    scene.store.create(other, [plan(other, SEVEN - MINUTE).runs[0]])
    assert scene.codes(SEVEN, now=SEVEN + MINUTE) == ["not_planned"]
    assert scene.store.get_run(RunKey(other.job_id, "x")) is None
