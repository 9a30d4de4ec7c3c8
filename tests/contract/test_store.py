from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from duetime.errors import TransientFailure
from duetime.finishing import dead_lettered, effect_on_job, failed, succeeded
from duetime.job import Job
from duetime.retry import BackoffKind, RetryPolicy
from duetime.run import Run, RunKey
from duetime.status import JobStatus, RunStatus
from duetime.store import JobRun, Store

from tests.factories import NOW, a_job, a_pair, a_run, a_spec, claimed_pair

LATER = NOW + timedelta(seconds=1)


def stored(store: Store, seen: JobRun) -> JobRun:
    assert store.create(seen.job, [seen.run]) is None
    return seen


def held(store: Store, **job_changes: object) -> JobRun:
    seen = stored(store, a_pair(**job_changes))
    after = claimed_pair(seen)
    assert store.claim(seen, after) is None
    return after


def job_of(store: Store, run: Run) -> Job:
    job = store.get_job(run.job_id)
    assert job is not None
    return job


def run_of(store: Store, key: RunKey) -> Run:
    return store.load([key])[key].run


def finish(store: Store, after: Run, *, completes_job: bool = True) -> bool:
    return store.finish(after, effect_on_job(after), completes_job=completes_job)


def test_a_job_and_its_run_read_back_as_they_were_written(store: Store) -> None:
    spec = a_spec(
        payload={"amount": 1.5, "whole": 1.0, "empty": [], "text": "ñ \u0000", "none": None},
        task={"type": "http", "url": "https://example.com", "headers": {}},
        retry=RetryPolicy(BackoffKind.FIXED, 7, 70),
        tags=("payments", "eu"),
    )
    job = a_job(spec=spec, next_run_at=LATER, request_digest="abc", last_outcome=RunStatus.FAILED)
    stored(store, JobRun(job, a_run(job)))
    assert store.get_job(job.job_id) == job
    assert run_of(store, a_run(job).key) == a_run(job)


def test_a_job_without_payload_tags_or_digest_reads_back_without_them(store: Store) -> None:
    seen = stored(store, a_pair())
    assert store.get_job(seen.job.job_id) == seen.job


def test_creating_a_job_again_returns_the_first_and_writes_nothing(store: Store) -> None:
    first = stored(store, a_pair())
    second = a_job(job_id=first.job.job_id, spec=a_spec(name="another"))
    assert store.create(second, [a_run(second, at=LATER)]) == first.job
    assert store.get_job(first.job.job_id) == first.job
    assert store.list_runs(first.job.job_id, limit=10).runs == [first.run]


def test_a_job_that_is_not_there_is_none(store: Store) -> None:
    assert store.get_job(a_job().job_id) is None


def test_load_leaves_out_what_does_not_exist(store: Store) -> None:
    seen = stored(store, a_pair())
    missing = RunKey(seen.job.job_id, "20000101T000000000Z-1-0000")
    assert store.load([seen.run.key, missing, seen.run.key]) == {seen.run.key: seen}


def test_load_takes_more_keys_than_one_request_can(store: Store) -> None:
    pairs = [stored(store, a_pair()) for _ in range(60)]
    assert store.load(pair.run.key for pair in pairs) == {pair.run.key: pair for pair in pairs}


def test_runs_are_listed_latest_first_in_pages(store: Store) -> None:
    job = a_job()
    runs = [a_run(job, at=NOW + timedelta(minutes=minute)) for minute in range(5)]
    store.create(job, runs)
    first = store.list_runs(job.job_id, limit=3)
    second = store.list_runs(job.job_id, limit=3, before=first.next_before)
    assert [*first.runs, *second.runs] == runs[::-1]
    assert second.next_before is None


def test_a_page_that_ends_with_the_last_run_is_the_last(store: Store) -> None:
    job = a_job()
    store.create(job, [a_run(job), a_run(job, at=LATER)])
    assert store.list_runs(job.job_id, limit=2).next_before is None


def test_a_job_without_runs_lists_none(store: Store) -> None:
    assert store.list_runs(a_job().job_id, limit=5).runs == []


def test_a_claim_takes_the_lease_a_place_and_a_new_fence(store: Store) -> None:
    after = held(store)
    assert run_of(store, after.run.key) == after.run
    assert after.run.deadline_at == NOW + timedelta(seconds=15)
    assert (job_of(store, after.run).running, job_of(store, after.run).fence) == (1, 1)


def test_of_many_claims_at_once_exactly_one_wins(store: Store) -> None:
    seen = stored(store, a_pair())

    def claim(worker: int) -> bool:
        return store.claim(seen, claimed_pair(seen, f"worker-{worker}")) is None

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(claim, range(24))) == 1
    assert job_of(store, seen.run).running == 1


def test_a_lost_claim_returns_what_is_there_and_writes_nothing(store: Store) -> None:
    seen = stored(store, a_pair())
    winner = claimed_pair(seen, "winner")
    store.claim(seen, winner)
    there = store.claim(seen, claimed_pair(seen, "loser"))
    assert there is not None
    assert there.run == winner.run
    assert job_of(store, seen.run).fence == 1


def test_a_claim_fails_when_the_job_changed_since_it_was_judged(store: Store) -> None:
    seen = stored(store, a_pair(version=2))
    outdated = JobRun(seen.job.evolve(version=1), seen.run)
    assert store.claim(outdated, claimed_pair(outdated)) == seen
    assert run_of(store, seen.run.key).status is RunStatus.QUEUED


def test_a_claim_fails_when_another_run_took_the_last_place(store: Store) -> None:
    job = a_job()
    first, second = a_run(job), a_run(job, at=LATER)
    store.create(job, [first, second])
    store.claim(JobRun(job, first), claimed_pair(JobRun(job, first)))
    stale = JobRun(job.evolve(fence=1), second)
    assert store.claim(stale, claimed_pair(stale)) is not None
    assert run_of(store, second.key).status is RunStatus.QUEUED


def test_a_success_frees_the_place_counts_and_completes_the_job(store: Store) -> None:
    after = held(store)
    ended = succeeded(after.run, {"answer": 1.0}, NOW, LATER)
    assert finish(store, ended)
    assert run_of(store, after.run.key) == ended
    job = job_of(store, after.run)
    assert (job.status, job.running, job.succeeded, job.failed) == (JobStatus.COMPLETED, 0, 1, 0)
    assert job.last_outcome is RunStatus.SUCCEEDED


def test_a_finish_under_an_older_fence_records_nothing(store: Store) -> None:
    after = held(store)
    late = succeeded(after.run, None, NOW, LATER).evolve(fence=0)
    assert not finish(store, late)
    assert run_of(store, after.run.key) == after.run
    assert job_of(store, after.run).running == 1


def test_a_finish_recorded_twice_counts_once(store: Store) -> None:
    after = held(store)
    ended = succeeded(after.run, None, NOW, LATER)
    assert [finish(store, ended), finish(store, ended)] == [True, False]
    assert job_of(store, after.run).succeeded == 1


@pytest.mark.parametrize("change", [{"next_run_at": LATER}, {"generation": 2}])
def test_a_job_with_more_to_come_is_not_completed(store: Store, change: dict[str, object]) -> None:
    job = a_job()
    run = a_run(job)
    stored(store, seen := JobRun(job.evolve(**change), run))
    after = claimed_pair(seen)
    store.claim(seen, after)
    assert finish(store, succeeded(after.run, None, NOW, LATER))
    assert (job_of(store, run).status, job_of(store, run).succeeded) == (JobStatus.SCHEDULED, 1)


def test_a_run_between_attempts_keeps_its_place_and_can_be_claimed_again(store: Store) -> None:
    after = held(store)
    retrying = failed(after.job, after.run, TransientFailure("503"), NOW, LATER, lambda: 0.5)
    assert finish(store, retrying, completes_job=False)
    assert run_of(store, after.run.key) == retrying
    assert job_of(store, after.run).running == 1
    again = JobRun(job_of(store, after.run), retrying)
    second = claimed_pair(again)
    assert store.claim(again, second) is None
    assert (second.run.attempt, second.run.fence) == (2, 2)
    assert job_of(store, after.run).running == 1


def test_a_waiting_run_is_dropped_with_its_reason(store: Store) -> None:
    seen = stored(store, a_pair())
    ended = seen.run.evolve(
        status=RunStatus.CANCELLED, error_message="paused", deadline_at=None, modified_time=LATER
    )
    assert store.drop(seen.run, ended)
    assert run_of(store, seen.run.key) == ended
    assert job_of(store, seen.run).running == 0


def test_dropping_a_run_between_attempts_frees_its_place(store: Store) -> None:
    after = held(store)
    retrying = failed(after.job, after.run, TransientFailure("503"), NOW, LATER, lambda: 0.5)
    finish(store, retrying, completes_job=False)
    assert store.drop(retrying, retrying.evolve(status=RunStatus.CANCELLED, deadline_at=None))
    assert job_of(store, after.run).running == 0
    assert not store.drop(retrying, retrying.evolve(status=RunStatus.CANCELLED, deadline_at=None))
    assert job_of(store, after.run).running == 0


def test_a_run_that_was_claimed_meanwhile_is_not_dropped(store: Store) -> None:
    after = held(store)
    waiting = a_run(after.job)
    assert not store.drop(waiting, waiting.evolve(status=RunStatus.SKIPPED))
    assert run_of(store, waiting.key) == after.run


def test_a_failed_run_is_marked_dead_lettered_once(store: Store) -> None:
    after = held(store, spec=a_spec(max_retries=0))
    ended = failed(after.job, after.run, TransientFailure("503"), NOW, LATER, lambda: 0.5)
    assert finish(store, ended)
    dead = dead_lettered(ended, LATER)
    assert [store.mark_dead_lettered(dead), store.mark_dead_lettered(dead)] == [True, False]
    assert run_of(store, after.run.key) == dead
