from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from duetime.job import Job
from duetime.planning import CATCH_UP_LIMIT, HORIZON, STEP, Agenda, plan
from duetime.run import Run
from duetime.schedules import jitter_for
from duetime.status import JobStatus, RunStatus
from duetime.timing import CatchUp

from tests.factories import a_cron_job, a_job, a_spec, a_timing

NOON = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


def times(runs: tuple[Run, ...]) -> list[datetime]:
    return [run.due_at for run in runs]


def an_interval_job(seconds: int, **changes: Any) -> Job:
    timing = a_timing("INTERVAL", interval_seconds=seconds, **changes.pop("timing", {}))
    return a_job(spec=a_spec(timing=timing), **{"anchor_at": NOON, "next_run_at": NOON} | changes)


class TestOrdinaryTimes:
    def test_a_job_each_minute_is_planned_four_at_a_time(self) -> None:
        made = plan(a_cron_job(next_run_at=NOON), NOON)
        assert times(made.runs) == [NOON, NOON + minutes(1), NOON + minutes(2), NOON + minutes(3)]
        assert made.job.next_run_at == NOON + HORIZON

    def test_a_cron_with_seconds_is_planned_with_its_seconds(self) -> None:
        made = plan(a_cron_job("*/10 * * * * *", next_run_at=NOON), NOON)
        assert len(made.runs) == 24
        assert {run.due_at.second for run in made.runs} == {0, 10, 20, 30, 40, 50}

    def test_planning_twice_plans_once(self) -> None:
        job = a_cron_job(next_run_at=NOON)
        first, second = plan(job, NOON), plan(job, NOON + timedelta(seconds=30))
        assert [run.run_id for run in second.runs[:4]] == [run.run_id for run in first.runs]

    def test_a_new_generation_has_new_ids(self) -> None:
        job = a_cron_job(next_run_at=NOON)
        other = plan(job.evolve(generation=2), NOON)
        assert {run.run_id for run in plan(job, NOON).runs}.isdisjoint(run.run_id for run in other.runs)

    def test_a_job_that_waits_for_later_is_left_as_it_is(self) -> None:
        job = a_cron_job(next_run_at=NOON + HORIZON)
        assert plan(job, NOON) == type(plan(job, NOON))(job, ())

    @pytest.mark.parametrize("status", [JobStatus.PAUSED, JobStatus.CANCELLED, JobStatus.COMPLETED])
    def test_a_job_that_is_not_scheduled_is_left_as_it_is(self, status: JobStatus) -> None:
        job = a_cron_job(next_run_at=NOON, status=status)
        assert (plan(job, NOON).runs, plan(job, NOON).job) == ((), job)

    def test_jitter_moves_the_due_time_and_not_the_id(self) -> None:
        job = a_cron_job(timing={"jitter_seconds": 30})
        jitter = jitter_for(job.job_id, 30)
        made = plan(job.evolve(next_run_at=NOON + jitter), NOON)
        assert times(made.runs)[0] == NOON + jitter
        assert made.runs[0].nominal_at == NOON
        assert made.runs[0].run_id.startswith("20261118T120000000Z-1-")
        assert made.job.next_run_at == made.runs[-1].due_at + minutes(1)

    def test_end_at_goes_by_the_nominal_time(self) -> None:
        job = a_cron_job(timing={"jitter_seconds": 59, "end_at": NOON + minutes(1)})
        jitter = jitter_for(job.job_id, 59)
        made = plan(job.evolve(next_run_at=NOON + jitter), NOON)
        assert [run.nominal_at for run in made.runs] == [NOON, NOON + minutes(1)]


class TestTheLastTime:
    def test_a_job_that_runs_once_has_its_last_run_planned(self) -> None:
        job = a_job(anchor_at=NOON, next_run_at=NOON)
        made = plan(job, NOON)
        assert times(made.runs) == [NOON]
        assert (made.job.next_run_at, made.job.final_run_id) == (None, made.runs[0].run_id)
        assert (made.job.final_ended, made.job.status) == (False, JobStatus.SCHEDULED)

    def test_the_last_of_a_series_is_known_as_such(self) -> None:
        made = plan(an_interval_job(60, timing={"end_at": NOON + minutes(2)}), NOON)
        assert times(made.runs) == [NOON, NOON + minutes(1), NOON + minutes(2)]
        assert made.job.final_run_id == made.runs[-1].run_id

    def test_a_series_that_ended_in_an_outage_with_skip_is_completed(self) -> None:
        timing = {"end_at": NOON + minutes(2), "catch_up": CatchUp.SKIP}
        made = plan(an_interval_job(60, timing=timing), NOON + minutes(60))
        assert [run.status for run in made.runs] == [RunStatus.SKIPPED]
        assert made.job.status is JobStatus.COMPLETED

    def test_it_is_not_completed_while_a_run_of_it_is_under_way(self) -> None:
        timing = {"end_at": NOON + minutes(2), "catch_up": CatchUp.SKIP}
        made = plan(an_interval_job(60, timing=timing, running=1), NOON + minutes(60))
        assert (made.job.status, made.job.final_ended) == (JobStatus.SCHEDULED, True)


class TestCatchingUp:
    def job(self, catch_up: CatchUp, expression: str = "* * * * *") -> Job:
        return a_cron_job(expression, timing={"catch_up": catch_up}, next_run_at=NOON)

    @pytest.mark.parametrize("catch_up", list(CatchUp))
    def test_a_little_late_is_not_missed(self, catch_up: CatchUp) -> None:
        made = plan(self.job(catch_up), NOON + timedelta(seconds=59))
        assert times(made.runs)[0] == NOON
        assert made.runs[0].status is RunStatus.QUEUED
        assert not made.runs[0].patient

    def test_one_runs_the_latest_once_and_goes_on(self) -> None:
        now = NOON + minutes(90.5)
        made = plan(self.job(CatchUp.ONE), now)
        assert times(made.runs) == [NOON + minutes(minute) for minute in (90, 91, 92, 93, 94)]
        assert made.runs[0].missed_from == NOON
        assert made.runs[1].missed_from is None

    def test_a_missed_run_is_given_time_from_now_on(self) -> None:
        now = NOON + minutes(90.5)
        deadline = plan(self.job(CatchUp.ONE), now).runs[0].deadline_at
        assert deadline is not None
        assert deadline > now

    def test_all_runs_each_of_them_in_order_and_patiently(self) -> None:
        made = plan(self.job(CatchUp.ALL), NOON + minutes(9.5))
        assert times(made.runs)[:10] == [NOON + minutes(minute) for minute in range(10)]
        assert {run.patient for run in made.runs[:10]} == {True}
        assert {run.patient for run in made.runs[10:]} == {False}

    def test_all_is_planned_in_steps_until_it_is_done(self) -> None:
        job, now = self.job(CatchUp.ALL), NOON + minutes(120.5)
        found: list[datetime] = []
        while job.next_run_at and job.next_run_at <= now:
            made = plan(job, now)
            assert 0 < len(made.runs) <= STEP
            found += times(made.runs)
            job = made.job
        assert found == [NOON + minutes(minute) for minute in range(125)]

    def test_all_is_bounded_and_says_from_when_on_times_were_dropped(self) -> None:
        now = NOON + minutes(5000)
        made = plan(self.job(CatchUp.ALL), now)
        assert times(made.runs)[0] == now - minutes(CATCH_UP_LIMIT - 1)
        assert made.runs[0].missed_from == NOON

    def test_skip_leaves_one_record_and_goes_on(self) -> None:
        made = plan(self.job(CatchUp.SKIP), NOON + minutes(90.5))
        skipped, *rest = made.runs
        assert (skipped.status, skipped.due_at, skipped.missed_from) == (
            RunStatus.SKIPPED,
            NOON + minutes(89),
            NOON,
        )
        assert skipped.deadline_at is None
        assert "catch_up is skip" in (skipped.error_message or "")
        # 12:90 is late by half a minute only.
        assert times(tuple(rest)) == [NOON + minutes(minute) for minute in (90, 91, 92, 93, 94)]

    def test_a_years_outage_of_a_busy_job_is_not_walked_through(self) -> None:
        job = a_cron_job("*/10 * * * * *", next_run_at=NOON)
        looked_at = 0
        agenda = Agenda.of(job)
        original = agenda.schedule.fires_after

        class Counting:
            shortest_gap_seconds = 10

            def fires_after(self, after: datetime) -> Any:
                nonlocal looked_at
                for fire in original(after):
                    looked_at += 1
                    yield fire

        counting = Agenda(Counting(), agenda.jitter)
        assert counting.latest_due(1, NOON, NOON + timedelta(days=365)) == [NOON + timedelta(days=365)]
        assert looked_at < 10

    def test_a_job_that_runs_once_and_was_missed_runs_late(self) -> None:
        timing = a_timing("FUTURE", schedule_time=NOON)
        made = plan(a_job(spec=a_spec(timing=timing), next_run_at=NOON), NOON + timedelta(days=14))
        assert times(made.runs) == [NOON]
        assert made.job.final_run_id == made.runs[0].run_id
