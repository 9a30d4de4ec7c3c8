from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from duetime import dynamo_runs, memory_store
from duetime.audit import Event, Source
from duetime.claiming import JUDGED
from duetime.errors import TransientFailure
from duetime.finishing import (
    accepted,
    after_the_end,
    dead_lettered,
    dropped,
    failed,
    judged_at_the_end,
    succeeded,
)
from duetime.job import Job, Overlap
from duetime.leases import lease_end
from duetime.pair import JobRun
from duetime.retry import BackoffKind, RetryPolicy
from duetime.run import Run, RunKey, planned_run
from duetime.status import JobStatus, RunStatus
from duetime.store import Move, NewJob, Once, Store, WhichRuns
from duetime.timing import CatchUp
from duetime.watch import SLOTS, open_key, shard_of, watch_of

from tests.factories import NOW, a_cron_job, a_job, a_pair, a_run, a_spec, a_timing, claimed_pair

LATER = NOW + timedelta(seconds=1)


def stored(store: Store, seen: JobRun) -> JobRun:
    assert store.create(seen.job, [seen.run]) is None
    return seen


def claim(store: Store, seen: JobRun, executor_id: str = "worker-1") -> JobRun | None:
    return store.exchange(seen, claimed_pair(seen, executor_id), JUDGED)


def held(store: Store, **job_changes: object) -> JobRun:
    seen = stored(store, a_pair(**job_changes))
    assert claim(store, seen) is None
    return claimed_pair(seen)


def job_of(store: Store, run: Run) -> Job:
    job = store.get_job(run.job_id)
    assert job is not None
    return job


def run_of(store: Store, key: RunKey) -> Run:
    run = store.get_run(key)
    assert run is not None
    return run


def end(store: Store, seen: JobRun, after: Run) -> JobRun | None:
    return store.exchange(seen, after_the_end(seen, after), judged_at_the_end(seen))


class TestWritingAndReading:
    def test_a_job_and_its_run_read_back_as_they_were_written(self, store: Store) -> None:
        timing = a_timing(
            "CRON",
            cron_expression="*/5 * * * *",
            timezone="Europe/London",
            start_at=NOW,
            end_at=NOW + timedelta(days=9),
            jitter_seconds=7,
            dst_gap="skip",
            dst_overlap="both",
            catch_up=CatchUp.ALL,
        )
        spec = a_spec(
            timing=timing,
            payload={"amount": 1.5, "whole": 1.0, "empty": [], "text": "ñ \u0000", "none": None},
            task={"type": "http", "url": "https://example.com", "headers": {}},
            retry=RetryPolicy(BackoffKind.FIXED, 7, 70),
            overlap=Overlap.QUEUE,
            max_concurrency=4,
            tags=("payments", "eu"),
        )
        job = a_job(
            spec=spec,
            next_run_at=LATER,
            request_digest="abc",
            last_outcome=RunStatus.FAILED,
            final_run_id="x",
            final_ended=True,
        )
        run = replace(
            a_run(job),
            nominal_at=NOW,
            missed_from=NOW,
            manual=True,
            patient=True,
            hints=3,
            called_at=LATER,
            result={"n": 1.0},
        )
        stored(store, JobRun(job, run))
        assert store.get_job(job.job_id) == job
        assert store.get_run(run.key) == run

    def test_a_job_of_nothing_but_defaults_reads_back(self, store: Store) -> None:
        seen = stored(store, a_pair())
        assert store.get_job(seen.job.job_id) == seen.job

    @pytest.mark.parametrize("runs", [0, 1])
    def test_creating_a_job_again_returns_the_first_and_writes_nothing(self, store: Store, runs: int) -> None:
        first = a_cron_job()
        store.create(first, [a_run(first)][:runs])
        second = a_job(job_id=first.job_id, spec=a_spec(name="another"))
        assert store.create(second, [a_run(second, at=LATER)][:runs]) == first
        assert store.get_job(first.job_id) == first
        assert store.list_runs(first.job_id, limit=10).runs == [a_run(first)][:runs]

    def test_what_is_not_there_is_none(self, store: Store) -> None:
        seen = a_pair()
        assert store.get_job(seen.job.job_id) is None
        assert store.get_run(seen.run.key) is None

    def test_load_leaves_out_what_does_not_exist(self, store: Store) -> None:
        seen = stored(store, a_pair())
        missing = RunKey(seen.job.job_id, "20000101T000000000Z-1-0000")
        assert store.load([seen.run.key, missing, seen.run.key]) == {seen.run.key: seen}
        assert store.load_jobs([seen.job.job_id, a_job().job_id]) == [seen.job]

    def test_load_takes_more_keys_than_one_request_can(self, store: Store) -> None:
        pairs = [stored(store, a_pair()) for _ in range(60)]
        assert store.load(pair.run.key for pair in pairs) == {pair.run.key: pair for pair in pairs}

    def test_runs_are_listed_latest_first_in_pages(self, store: Store) -> None:
        job = a_job()
        runs = [a_run(job, at=NOW + timedelta(minutes=minute)) for minute in range(5)]
        store.create(job, runs)
        first = store.list_runs(job.job_id, limit=3)
        second = store.list_runs(job.job_id, limit=3, before=first.next_before)
        assert [*first.runs, *second.runs] == runs[::-1]
        assert second.next_before is None

    def test_a_page_that_ends_with_the_last_run_is_the_last(self, store: Store) -> None:
        job = a_job()
        store.create(job, [a_run(job), a_run(job, at=LATER)])
        assert store.list_runs(job.job_id, limit=2).next_before is None

    def test_a_job_without_runs_lists_none(self, store: Store) -> None:
        assert store.list_runs(a_job().job_id, limit=5).runs == []

    def test_a_run_is_added_once(self, store: Store) -> None:
        seen = stored(store, a_pair())
        again = a_run(seen.job, error_message="planned again")
        assert not store.add_run(again)
        assert store.get_run(seen.run.key) == seen.run
        assert store.add_run(a_run(seen.job, at=LATER))


class TestClaims:
    def test_a_claim_takes_the_lease_a_place_and_a_new_fence(self, store: Store) -> None:
        after = held(store)
        assert run_of(store, after.run.key) == after.run
        assert after.run.deadline_at == lease_end(NOW)
        assert (job_of(store, after.run).running, job_of(store, after.run).fence) == (1, 1)

    def test_of_many_claims_at_once_exactly_one_wins(self, store: Store) -> None:
        seen = stored(store, a_pair())
        with ThreadPoolExecutor(8) as threads:
            won = threads.map(lambda worker: claim(store, seen, f"worker-{worker}") is None, range(24))
            assert sum(won) == 1
        assert job_of(store, seen.run).running == 1

    def test_a_lost_claim_returns_what_is_there_and_writes_nothing(self, store: Store) -> None:
        seen = stored(store, a_pair())
        claim(store, seen, "winner")
        there = claim(store, seen, "loser")
        assert there is not None
        assert there.run == claimed_pair(seen, "winner").run
        assert job_of(store, seen.run).fence == 1

    @pytest.mark.parametrize("change", [{"version": 1}, {"fence": 5}, {"running": 0}])
    def test_a_claim_fails_when_the_job_changed_since_it_was_judged(
        self, store: Store, change: dict[str, int]
    ) -> None:
        seen = stored(store, a_pair(version=2, running=1, spec=a_spec(max_concurrency=2)))
        outdated = JobRun(seen.job.evolve(**change), seen.run)
        assert claim(store, outdated) == seen
        assert run_of(store, seen.run.key).status is RunStatus.QUEUED


class TestEnds:
    def test_a_success_frees_the_place_counts_and_completes_the_job(self, store: Store) -> None:
        after = held(store)
        ended = succeeded(after.run, {"answer": 1.0}, NOW, LATER)
        assert end(store, after, ended) is None
        assert run_of(store, after.run.key) == ended
        job = job_of(store, after.run)
        assert (job.status, job.running, job.succeeded, job.failed) == (JobStatus.COMPLETED, 0, 1, 0)
        assert job.last_outcome is RunStatus.SUCCEEDED

    def test_an_end_under_an_older_fence_records_nothing(self, store: Store) -> None:
        after = held(store)
        late = JobRun(after.job, after.run.evolve(fence=0))
        assert end(store, late, succeeded(late.run, None, NOW, LATER)) == after
        assert run_of(store, after.run.key) == after.run
        assert job_of(store, after.run).running == 1

    def test_an_end_recorded_twice_counts_once(self, store: Store) -> None:
        after = held(store)
        ended = succeeded(after.run, None, NOW, LATER)
        assert end(store, after, ended) is None
        assert end(store, after, ended) is not None
        assert job_of(store, after.run).succeeded == 1

    def test_runs_that_end_at_the_same_moment_are_all_counted(self, store: Store) -> None:
        job = a_cron_job(spec={"max_concurrency": 8})
        runs = [a_run(job, at=NOW + timedelta(minutes=minute)) for minute in range(8)]
        store.create(job, runs)
        pairs = []
        for run in runs:
            seen = JobRun(job_of(store, run), run)
            assert claim(store, seen) is None
            pairs.append(claimed_pair(seen))
        with ThreadPoolExecutor(8) as threads:
            ended = threads.map(
                lambda pair: end(store, pair, succeeded(pair.run, None, NOW, LATER)) is None, pairs
            )
            assert all(ended)
        assert (job_of(store, runs[0]).running, job_of(store, runs[0]).succeeded) == (0, 8)

    def test_an_end_fails_when_the_last_run_became_known_meanwhile(self, store: Store) -> None:
        job = a_cron_job()
        seen = stored(store, JobRun(job, a_run(job)))
        claim(store, seen)
        after = claimed_pair(seen)
        assert store.adjust(job, job.evolve(next_run_at=None, final_run_id="last"), {"generation"})
        there = end(store, after, succeeded(after.run, None, NOW, LATER))
        assert there is not None
        assert there.job.final_run_id == "last"

    def test_a_run_between_attempts_keeps_its_place_and_can_be_claimed_again(self, store: Store) -> None:
        after = held(store)
        retrying = failed(after.job, after.run, TransientFailure("503"), NOW, LATER, lambda: 0.5)
        assert end(store, after, retrying) is None
        assert run_of(store, after.run.key) == retrying
        assert job_of(store, after.run).running == 1
        again = JobRun(job_of(store, after.run), retrying)
        assert claim(store, again) is None
        assert run_of(store, after.run.key).attempt == 2
        assert (job_of(store, after.run).running, job_of(store, after.run).fence) == (1, 2)

    def test_a_waiting_run_is_dropped_with_its_reason(self, store: Store) -> None:
        seen = stored(store, a_pair())
        ended = dropped(seen.run, RunStatus.CANCELLED, "paused", LATER)
        assert end(store, seen, ended) is None
        assert run_of(store, seen.run.key) == ended
        assert (job_of(store, seen.run).running, job_of(store, seen.run).status) == (0, JobStatus.COMPLETED)

    def test_dropping_a_run_between_attempts_frees_its_place_once(self, store: Store) -> None:
        after = held(store)
        retrying = failed(after.job, after.run, TransientFailure("503"), NOW, LATER, lambda: 0.5)
        end(store, after, retrying)
        seen = JobRun(job_of(store, after.run), retrying)
        ended = dropped(retrying, RunStatus.CANCELLED, "no", LATER)
        assert end(store, seen, ended) is None
        assert end(store, seen, ended) is not None
        assert job_of(store, after.run).running == 0

    def test_a_run_that_was_claimed_meanwhile_is_not_dropped(self, store: Store) -> None:
        after = held(store)
        waiting = JobRun(after.job, a_run(after.job))
        assert end(store, waiting, dropped(waiting.run, RunStatus.SKIPPED, "no", LATER)) is not None
        assert run_of(store, after.run.key) == after.run

    def test_a_failed_run_is_marked_dead_lettered_once(self, store: Store) -> None:
        after = held(store, spec=a_spec(max_retries=0))
        ended = failed(after.job, after.run, TransientFailure("503"), NOW, LATER, lambda: 0.5)
        assert end(store, after, ended) is None
        dead = dead_lettered(ended, LATER)
        assert [store.advance(ended, dead), store.advance(ended, dead)] == [True, False]
        assert run_of(store, after.run.key) == dead

    def test_a_run_whose_deadline_moved_is_not_advanced(self, store: Store) -> None:
        seen = stored(store, a_pair())
        assert store.advance(seen.run, seen.run.evolve(deadline_at=LATER, hints=1))
        assert not store.advance(seen.run, seen.run.evolve(deadline_at=NOW, hints=1))

    def test_waiters_are_counted_and_cleared_only_as_they_were_seen(self, store: Store) -> None:
        seen = stored(store, a_pair())
        assert store.adjust(seen.job, seen.job.evolve(waiters=1), {"running"})
        assert store.adjust(seen.job, seen.job.evolve(waiters=1), {"running"})
        one = seen.job.evolve(waiters=1)
        assert not store.adjust(one, one.evolve(waiters=0), {"waiters"})
        two = seen.job.evolve(waiters=2)
        assert store.adjust(two, two.evolve(waiters=0), {"waiters"})
        assert job_of(store, seen.run).waiters == 0
        # A tally that was counted down to nothing is still as good as one that never was.
        assert store.adjust(seen.job, seen.job.evolve(waiters=1), {"waiters"})


class TestChanges:
    def test_a_change_writes_what_differs_and_the_runs_that_follow(self, store: Store) -> None:
        job = a_cron_job()
        store.create(job, [])
        after = job.evolve(version=2, generation=2, spec=a_spec(name="another", timing=job.spec.timing))
        run = a_run(after)
        assert store.change(job, after, [run]) is None
        assert (store.get_job(job.job_id), store.get_run(run.key)) == (after, run)

    def test_a_change_leaves_alone_a_run_that_exists_already(self, store: Store) -> None:
        job = a_cron_job()
        there, new = a_run(job), a_run(job, at=LATER)
        store.create(job, [there])
        again = replace(there, error_message="planned again")
        assert store.change(job, job.evolve(version=2, generation=2), [again, new]) is None
        assert (store.get_run(there.key), store.get_run(new.key)) == (there, new)

    @pytest.mark.parametrize(
        "moved", [{"next_run_at": LATER}, {"final_run_id": "last"}, {"final_ended": True}]
    )
    def test_a_change_to_a_job_that_a_sweep_or_an_end_has_moved_writes_nothing(
        self, store: Store, moved: dict[str, object]
    ) -> None:
        job = a_cron_job()
        store.create(job, [])
        assert store.adjust(job, job.evolve(**moved), {"generation"})
        there = store.change(job, job.evolve(version=2, generation=2))
        assert there == job.evolve(**moved)

    @pytest.mark.parametrize("with_runs", [True, False])
    def test_a_change_to_an_outdated_version_writes_nothing(self, store: Store, with_runs: bool) -> None:
        job = a_cron_job(version=3)
        store.create(job, [])
        outdated = replace(job, version=2)
        runs = [a_run(job)] if with_runs else []
        assert store.change(outdated, outdated.evolve(version=3, generation=2), runs) == job
        assert store.get_job(job.job_id) == job
        assert store.get_run(a_run(job).key) is None

    def test_a_change_to_a_job_that_completed_meanwhile_writes_nothing(self, store: Store) -> None:
        job = a_cron_job(status=JobStatus.COMPLETED, next_run_at=None)
        store.create(job, [])
        outdated = replace(job, status=JobStatus.SCHEDULED)
        paused = outdated.evolve(status=JobStatus.PAUSED, version=2)
        assert store.change(outdated, paused) == job

    def test_a_change_leaves_alone_what_claims_and_ends_wrote_meanwhile(self, store: Store) -> None:
        job = a_cron_job()
        seen = stored(store, JobRun(job, a_run(job)))
        claim(store, seen)
        assert store.change(job, job.evolve(version=2, spec=a_spec(name="another"))) is None
        there = job_of(store, seen.run)
        assert (there.running, there.fence, there.version) == (1, 1, 2)


class TestWaiting:
    def place(self, store: Store, job: Job, until: timedelta = timedelta(hours=1)) -> list[str]:

        found = store.waiting(shard_of(job.job_id), until=NOW + until, limit=100)
        return [place.job_id for place in found if place.job_id == job.job_id]

    def test_a_job_is_found_by_its_shard_before_its_time(self, store: Store) -> None:
        job = a_cron_job(next_run_at=NOW + timedelta(minutes=5))
        store.create(job, [])
        assert self.place(store, job) == [job.job_id]
        assert self.place(store, job, timedelta(minutes=5)) == []

    @pytest.mark.parametrize(
        "change", [{"status": JobStatus.PAUSED}, {"status": JobStatus.CANCELLED}, {"next_run_at": None}]
    )
    def test_a_job_that_does_not_wait_is_not_found(self, store: Store, change: dict[str, object]) -> None:
        job = a_cron_job()
        store.create(job, [])
        assert store.change(job, job.evolve(version=2, **change)) is None
        assert self.place(store, job) == []

    def test_a_paused_job_keeps_its_time_and_is_found_again_when_resumed(self, store: Store) -> None:
        job = a_cron_job(status=JobStatus.PAUSED)
        store.create(job, [])
        assert store.get_job(job.job_id) == job
        store.change(job, job.evolve(status=JobStatus.SCHEDULED, version=2))
        assert self.place(store, job) == [job.job_id]

    def test_the_jobs_of_a_shard_come_in_order_and_in_pages(self, store: Store) -> None:

        jobs: list[Job] = []
        while len(jobs) < 7:
            job = a_cron_job(next_run_at=NOW - timedelta(days=999) + timedelta(seconds=(len(jobs) * 5) % 7))
            if shard_of(job.job_id) == 11:
                jobs.append(job)
                store.create(job, [])
        expected = sorted((job.next_run_at, job.job_id) for job in jobs)
        until = NOW - timedelta(days=998)
        first = store.waiting(11, until=until, limit=3)
        second = store.waiting(11, until=until, limit=3, after=first[-1])
        third = store.waiting(11, until=until, limit=3, after=second[-1])
        assert [len(first), len(second), len(third)] == [3, 3, 1]
        assert [tuple(place) for place in (*first, *second, *third)] == expected


class TestMovingOn:
    def test_jobs_move_on_each_for_itself(self, store: Store) -> None:

        jobs = [a_cron_job() for _ in range(30)]
        for job in jobs:
            store.create(job, [])
        changed = jobs[7]
        store.change(changed, changed.evolve(generation=2, version=2))
        moves = [Move(job, job.evolve(next_run_at=LATER)) for job in jobs]
        assert store.move_on(moves) == [changed.job_id]
        assert [job.next_run_at for job in store.load_jobs([jobs[0].job_id])] == [LATER]
        assert [job.next_run_at for job in store.load_jobs([changed.job_id])] == [NOW]
        # A second sweep, from what the first one read, moves nothing back.
        assert set(store.move_on(moves)) == {job.job_id for job in jobs}

    def test_a_job_with_nothing_left_to_plan_leaves_the_index(self, store: Store) -> None:

        job = a_cron_job()
        store.create(job, [])
        after = job.evolve(next_run_at=None, final_run_id="last")
        assert store.move_on([Move(job, after)]) == []
        assert store.get_job(job.job_id) == after

    def test_a_job_is_completed_only_if_nothing_of_it_runs(self, store: Store) -> None:

        job = a_cron_job()
        seen = stored(store, JobRun(job, a_run(job)))
        claim(store, seen)
        after = job.evolve(next_run_at=None, final_ended=True, status=JobStatus.COMPLETED)
        assert store.move_on([Move(job, after)]) == [job.job_id]


class TestWatch:
    def watched(self, store: Store, run: Run) -> list[RunKey]:

        watch = watch_of(run)
        assert watch is not None
        found = store.open_runs(next(n for n in SLOTS if open_key(n) == watch.key), limit=100)
        return [place.key for place in found if place[:2] == (run.deadline_at, run.key)]

    def test_an_open_run_is_watched_until_it_ends(self, store: Store) -> None:
        seen = stored(store, a_pair())
        assert self.watched(store, seen.run) == [seen.run.key]
        claim(store, seen)
        after = claimed_pair(seen)
        assert self.watched(store, seen.run) == []
        assert self.watched(store, after.run) == [seen.run.key]
        end(store, after, succeeded(after.run, None, NOW, LATER))
        assert self.watched(store, after.run) == []

    def test_watched_runs_come_by_deadline_and_in_pages(self, store: Store) -> None:

        job = a_cron_job()
        early = NOW - timedelta(days=900)
        runs: list[Run] = []
        minute = 0
        while len(runs) < 5:
            run = a_run(job, at=early + timedelta(minutes=(minute := minute + 1)))
            run = run.evolve(deadline_at=early + timedelta(seconds=(7 * minute) % 11))
            watch = watch_of(run)
            if watch and watch.key == "open#3":
                runs.append(run)
        store.create(job, runs)
        first = store.open_runs(3, limit=3)
        second = store.open_runs(3, limit=3, after=first[-1])
        by_deadline = sorted(runs, key=lambda run: (run.deadline_at, run.key))
        expected = [(run.deadline_at, run.key) for run in by_deadline]
        assert [place[:2] for place in (*first, *second)][:5] == expected
        assert [place.waits_since for place in first] == [run.not_before for run in by_deadline[:3]]

    def test_runs_that_wait_too_long_are_counted_and_the_unmarked_among_them_named(
        self, store: Store
    ) -> None:
        job = a_cron_job()
        # Long ago, so that they stand before what other tests have left on the index.
        early = NOW - timedelta(days=1900)
        runs: list[Run] = []
        minute = 0
        while len(runs) < 6:
            run = a_run(job, at=early + timedelta(minutes=(minute := minute + 1)))
            run = run.evolve(not_before=early, deadline_at=early + timedelta(seconds=len(runs)))
            watch = watch_of(run)
            if watch and watch.key == "open#5":
                runs.append(run)
        forgotten, marked, put_off, under_way, later, last = runs
        marked = marked.evolve(late_at=NOW)
        put_off = put_off.evolve(put_off_at=NOW)
        later = later.evolve(not_before=early + timedelta(seconds=1))
        between = under_way.evolve(status=RunStatus.RUNNING).evolve(status=RunStatus.RETRYING)
        store.create(job, [forgotten, marked, put_off, between, later, last])
        # What is between attempts stands elsewhere.
        number, unmarked = store.waiting_late(5, due_before=early + timedelta(milliseconds=500), limit=4)
        assert (number, list(unmarked)) == (2, [forgotten.key])
        number, unmarked = store.waiting_late(5, due_before=early + timedelta(milliseconds=500), limit=5)
        assert (number, list(unmarked)) == (3, [forgotten.key, last.key])
        assert store.waiting_late(5, due_before=early, limit=6).number == 0

    def test_a_mark_takes_a_run_off_the_unmarked(self, store: Store) -> None:
        seen = stored(store, a_pair())
        watch = watch_of(seen.run)
        assert watch is not None
        slot = next(n for n in SLOTS if open_key(n) == watch.key)
        assert seen.run.key in store.waiting_late(slot, due_before=LATER, limit=1000).unmarked
        assert store.advance(seen.run, replace(seen.run, late_at=LATER))
        assert seen.run.key not in store.waiting_late(slot, due_before=LATER, limit=1000).unmarked
        assert run_of(store, seen.run.key).late_at == LATER


class TestAudits:
    def test_how_far_a_job_was_audited_is_written_once_by_whoever_is_first(self, store: Store) -> None:
        job = a_cron_job()
        store.create(job, [])
        judged = {"generation", "audited_until"}
        assert store.adjust(job, replace(job, audited_until=NOW), judged)
        assert not store.adjust(job, replace(job, audited_until=LATER), judged)
        first = store.get_job(job.job_id)
        assert first is not None
        assert first.audited_until == NOW
        assert store.adjust(first, replace(first, audited_until=LATER), judged)

    def test_an_entry_whose_token_follows_from_what_it_says_is_written_once(self, store: Store) -> None:
        job = a_cron_job()
        store.create(job, [])
        missed = Event(job_id=job.job_id, at=NOW, action="missed", by="duetime", token="missed-1")
        assert (store.note(missed), store.note(missed)) == (True, False)
        assert list(store.events(job.job_id, limit=10).events) == [missed]


class TestHolders:
    def test_a_lease_is_renewed_by_its_holder_who_learns_what_was_asked_of_it(self, store: Store) -> None:
        after = held(store)
        asked = replace(after.run, cancel_requested="ann")
        assert store.advance(after.run, asked, by_holder=True)
        renewed = store.renew(after.run, LATER)
        assert renewed == replace(asked, deadline_at=LATER)
        assert run_of(store, after.run.key) == renewed

    def test_a_lease_that_another_holds_is_not_renewed(self, store: Store) -> None:
        after = held(store)
        assert store.renew(replace(after.run, fence=0), LATER) is None
        assert run_of(store, after.run.key) == after.run

    def test_a_lease_of_a_run_that_has_ended_is_not_renewed(self, store: Store) -> None:
        after = held(store)
        end(store, after, succeeded(after.run, None, NOW, LATER))
        assert store.renew(after.run, LATER) is None

    def test_a_lease_of_work_that_goes_on_elsewhere_is_not_the_workers_to_renew(self, store: Store) -> None:
        after = held(store)
        elsewhere = accepted(after.run, timedelta(hours=1), None, NOW + timedelta(days=1), NOW)
        assert store.advance(after.run, elsewhere, by_holder=True)
        assert store.renew(after.run, LATER) is None
        assert run_of(store, after.run.key) == elsewhere

    def test_who_begins_or_ends_a_run_must_know_that_its_cancellation_was_asked_for(
        self, store: Store
    ) -> None:
        after = held(store)
        asked = replace(after.run, cancel_requested="ann")
        assert store.advance(after.run, asked)
        done = after_the_end(after, succeeded(after.run, None, NOW, LATER))
        for by_holder in (True, False):
            there = store.exchange(after, done, judged_at_the_end(after), by_holder=by_holder)
            assert there is not None
            assert there.run == asked
        assert not store.advance(after.run, replace(after.run, hints=1))
        seen = JobRun(after.job, asked)
        assert store.exchange(seen, done, judged_at_the_end(seen), by_holder=True) is None
        assert run_of(store, after.run.key).cancel_requested is None

    def test_the_holder_need_not_know_the_deadline_and_undoes_nothing(self, store: Store) -> None:
        after = held(store)
        assert store.renew(after.run, LATER)
        saved = replace(after.run, checkpoint={"done": 1})
        assert store.advance(after.run, saved, by_holder=True)
        there = run_of(store, after.run.key)
        assert (there.deadline_at, there.checkpoint) == (LATER, {"done": 1})
        assert not store.advance(after.run, replace(after.run, hints=1))

    def test_an_end_by_the_holder_counts_whatever_the_deadline(self, store: Store) -> None:
        after = held(store)
        store.renew(after.run, LATER)
        done = after_the_end(after, succeeded(after.run, "x", NOW, LATER))
        assert store.exchange(after, done, judged_at_the_end(after), by_holder=True) is None
        assert run_of(store, after.run.key).status is RunStatus.SUCCEEDED

    def test_everything_about_work_elsewhere_reads_back(self, store: Store) -> None:
        after = held(store)
        full = replace(
            after.run,
            heartbeat_seconds=60,
            handle={"type": "ecs", "n": 1.5},
            times_out_at=LATER,
            callback_digest="abc",
            cancel_requested="ann",
            checkpoint=[1],
            result_key="r",
            log_key="l",
        )
        assert store.advance(after.run, full, by_holder=True)
        assert run_of(store, after.run.key) == full


class TestQueued:
    def test_queued_runs_are_found_the_oldest_first_within_their_bounds(self, store: Store) -> None:
        job = a_cron_job()
        runs = [a_run(job, at=NOW + timedelta(minutes=minute)) for minute in range(6)]
        runs[2] = replace(runs[2], status=RunStatus.SKIPPED, end_time=NOW, deadline_at=None)
        store.create(job, runs)
        found = store.queued_runs(job.job_id, since=runs[1].run_id, until=runs[4].run_id, limit=10)
        assert found == [runs[1], runs[3], runs[4]]
        assert store.queued_runs(job.job_id, since="0", until="~", limit=2) == runs[:2]


class TestDeadLetters:
    def letter(self, store: Store, owner: str, minute: int) -> Run:
        job = a_job(owner=owner)
        run = replace(
            a_run(job),
            status=RunStatus.DEAD_LETTERED,
            end_time=NOW + timedelta(minutes=minute),
            deadline_at=None,
        )
        store.create(job, [run])
        return run

    def test_an_owners_are_found_the_latest_first_in_pages_and_nobody_elses(self, store: Store) -> None:
        owner = f"arn:aws:iam::1:role/{a_job().job_id}"
        letters = [self.letter(store, owner, minute) for minute in range(5)]
        self.letter(store, "arn:aws:iam::1:role/other", 9)
        first = store.dead_letters(owner, limit=3)
        second = store.dead_letters(owner, limit=3, before=first[-1])
        assert [place.key for place in (*first, *second)] == [letter.key for letter in letters[::-1]]

    def test_one_that_was_redriven_is_no_more(self, store: Store) -> None:
        owner = f"arn:aws:iam::1:role/{a_job().job_id}"
        letter = self.letter(store, owner, 0)
        assert store.advance(letter, letter.evolve(status=RunStatus.QUEUED, deadline_at=LATER))
        assert store.dead_letters(owner, limit=3) == []


class TestAudit:
    def an_event(self, job_id: str, seconds: int = 0, **details: object) -> Event:
        return Event(
            job_id=job_id,
            at=NOW + timedelta(seconds=seconds),
            action="paused",
            by="ann",
            source=Source("203.0.113.7", "curl", "r-1"),
            **details,  # type: ignore[arg-type]
        )

    def test_an_entry_reads_back_the_latest_first_and_by_the_page(self, store: Store) -> None:
        job = a_job()
        events = [
            self.an_event(job.job_id, n, changes={"name": {"from": "a", "to": "b"}}, run_id="x", detail="d")
            for n in range(5)
        ]
        for event in events:
            assert store.note(event)
        assert not store.note(events[0])
        first = store.events(job.job_id, limit=3)
        assert list(first.events) == events[:1:-1]
        second = store.events(job.job_id, limit=3, before=first.next_before)
        assert (list(second.events), second.next_before) == ([events[1], events[0]], None)

    def test_a_change_and_its_entry_are_written_together_or_not_at_all(self, store: Store) -> None:
        job = a_cron_job()
        store.create(job, [])
        paused = job.evolve(status=JobStatus.PAUSED, version=2)
        event = self.an_event(job.job_id)
        assert store.change(job, paused, event=event) is None
        assert store.change(job, paused, event=self.an_event(job.job_id)) is not None
        assert list(store.events(job.job_id, limit=9).events) == [event]

    def test_a_run_moves_on_with_its_entry_or_not_at_all(self, store: Store) -> None:
        seen = stored(store, a_pair())
        after = dropped(seen.run, RunStatus.CANCELLED, "why", LATER)
        event = self.an_event(seen.job.job_id)
        assert store.advance(seen.run, after, event=event)
        assert not store.advance(seen.run, after, event=self.an_event(seen.job.job_id))
        assert list(store.events(seen.job.job_id, limit=9).events) == [event]

    def test_the_end_of_a_pair_takes_its_entry_along(self, store: Store) -> None:
        seen = held(store)
        after = after_the_end(seen, succeeded(seen.run, None, NOW, LATER))
        event = self.an_event(seen.job.job_id)
        assert store.exchange(seen, after, judged_at_the_end(seen), event=event) is None
        assert list(store.events(seen.job.job_id, limit=9).events) == [event]

    def test_a_run_is_added_once_under_a_key(self, store: Store) -> None:
        job = a_cron_job()
        store.create(job, [])
        once, event = Once(f"run#{job.job_id}", "key"), self.an_event(job.job_id)
        first, second = a_run(job), a_run(job, at=LATER)
        assert store.add_run_once(first, once, event=event) is None
        assert store.add_run_once(second, once, event=self.an_event(job.job_id)) == first.run_id
        assert store.list_runs(job.job_id, limit=9).runs == [first]
        assert list(store.events(job.job_id, limit=9).events) == [event]


class TestManyAtOnce:
    def test_many_jobs_are_written_with_their_runs_and_what_is_there_is_told(self, store: Store) -> None:
        jobs = [a_job(spec=a_spec(name=f"job {n}")) for n in range(120)]
        new = [NewJob(job, [a_run(job)] if n % 2 else []) for n, job in enumerate(jobs)]
        store.create(jobs[7], [])
        answers = store.create_many(new)
        assert [n for n, there in enumerate(answers) if there] == [7]
        assert {job.job_id for job in store.load_jobs(job.job_id for job in jobs)} == {j.job_id for j in jobs}
        assert store.list_runs(jobs[7].job_id, limit=5).runs == []
        assert store.list_runs(jobs[9].job_id, limit=5).runs == [a_run(jobs[9])]


class TestListingRuns:
    def test_by_status_and_by_time(self, store: Store) -> None:
        job = a_cron_job()
        runs = [a_run(job, at=NOW + timedelta(minutes=n)) for n in range(30)]
        store.create(job, runs)
        for run in runs[::3]:
            assert store.advance(run, dropped(run, RunStatus.SKIPPED, "why", LATER))
        page = store.list_runs(job.job_id, limit=4, which=WhichRuns(RunStatus.SKIPPED))
        assert [run.run_id for run in page.runs] == [runs[n].run_id for n in (27, 24, 21, 18)]
        rest = store.list_runs(
            job.job_id, limit=9, which=WhichRuns(RunStatus.SKIPPED), before=page.next_before
        )
        assert [run.run_id for run in rest.runs] == [runs[n].run_id for n in (15, 12, 9, 6, 3, 0)]
        assert store.list_runs(job.job_id, limit=9, since="3", before="2").runs == []
        assert store.queued_runs(job.job_id, since="3", until="2", limit=9) == []
        between = store.list_runs(job.job_id, limit=9, since=runs[3].run_id, before=runs[6].run_id)
        assert [run.run_id for run in between.runs] == [runs[n].run_id for n in (5, 4, 3)]

    def test_by_when_they_are_due_which_is_their_jitter_after_what_their_ids_say(self, store: Store) -> None:
        job = a_cron_job()
        jitter = timedelta(minutes=20)
        runs = [planned_run(job, NOW + timedelta(minutes=10 * n), NOW, jitter=jitter) for n in range(6)]
        store.create(job, runs)
        which = WhichRuns(due_from=NOW + timedelta(minutes=30), due_before=NOW + timedelta(minutes=50))
        found = store.list_runs(job.job_id, limit=9, which=which)
        assert (found.runs, found.next_before) == ([runs[2], runs[1]], None)

    def test_a_page_of_what_is_rare_ends_early_and_the_next_goes_on(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(dynamo_runs, "MOST_RUNS_READ", 20)
        monkeypatch.setattr(memory_store, "MOST_RUNS_READ", 20)
        job = a_cron_job()
        runs = [a_run(job, at=NOW + timedelta(minutes=n)) for n in range(90)]
        store.create(job, [])
        for run in runs:
            store.add_run(run)
        assert store.advance(runs[5], dropped(runs[5], RunStatus.SKIPPED, "why", LATER))
        found: list[Run] = []
        pages, before = 0, None
        while True:
            page = store.list_runs(job.job_id, limit=3, which=WhichRuns(RunStatus.SKIPPED), before=before)
            found += page.runs
            pages += 1
            if (before := page.next_before) is None:
                break
        assert [run.run_id for run in found] == [runs[5].run_id]
        assert pages == 5

    def test_the_oldest_first(self, store: Store) -> None:
        job = a_cron_job()
        runs = [a_run(job, at=NOW + timedelta(minutes=n)) for n in range(10)]
        store.create(job, runs)
        found = store.runs_from(job.job_id, since=runs[3].run_id, until=runs[8].run_id, limit=4)
        assert list(found) == runs[3:7]
        assert store.runs_from(job.job_id, since="3", until="2", limit=4) == []
