from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta

import pytest
from duetime.clock import ManualClock
from duetime.dynamo_lists import DynamoLists
from duetime.job import Job, Priority
from duetime.listing import Criteria, Lists, UnderWay, part_of
from duetime.memory_store import MemoryStore
from duetime.run import RunKey
from duetime.running import Running
from duetime.searching import Question, Search, Wanted
from duetime.status import JobStatus, RunStatus
from duetime.store import Store
from duetime.watch import HELD_SLOTS, worker_slot

from tests.factories import NOW, a_cron_job, a_job, a_pair, a_run, a_spec, claimed_pair
from tests.tables import JOBS, RECORDS, RUNS


@dataclass
class Shop:
    store: Store
    lists: Lists
    search: Search

    @property
    def running(self) -> Running:
        return Running(self.store, self.lists, self.search.clock, self.search.threads)


@pytest.fixture
def shop(request: pytest.FixtureRequest, store: Store) -> Iterator[Shop]:
    lists: Lists
    if isinstance(store, MemoryStore):
        lists = store
    else:
        client = request.getfixturevalue("dynamo_client")
        lists = DynamoLists(client, jobs_table=JOBS, runs_table=RUNS, records_table=RECORDS)
    with ThreadPoolExecutor(8) as threads:
        yield Shop(store, lists, Search(store, lists, ManualClock(NOW), threads))


def owner_of(request: pytest.FixtureRequest) -> str:
    """Each test has its own: the tables are shared."""
    return f"arn:aws:iam::123456789012:role/{request.node.name}"


@pytest.mark.parametrize(
    ("wanted", "criteria", "expected"),
    [
        (None, Criteria(), {"a", "b", "c", "d", "e"}),
        (Wanted.PAUSED, Criteria(), {"b"}),
        (Wanted.COMPLETED, Criteria(), {"c", "d"}),
        (Wanted.DONE, Criteria(), {"c"}),
        (Wanted.FAILED, Criteria(), {"d"}),
        (Wanted.RUNNING, Criteria(), {"e"}),
        (Wanted.PENDING, Criteria(), {"a"}),
        (None, Criteria(priority=Priority.MEDIUM), {"a", "b", "c", "e"}),
        (None, Criteria(priority=Priority.HIGH), {"d"}),
        (None, Criteria(tag="x"), {"b"}),
        (None, Criteria(name_prefix="d"), {"d"}),
    ],
)
def test_filters(
    shop: Shop, request: pytest.FixtureRequest, wanted: Wanted | None, criteria: Criteria, expected: set[str]
) -> None:
    owner = owner_of(request)
    done, failed = RunStatus.SUCCEEDED, RunStatus.FAILED
    for job in (
        a_cron_job(spec={"name": "a"}, owner=owner),
        a_job(spec=a_spec(name="b", tags=("x", "y")), owner=owner, status=JobStatus.PAUSED),
        a_job(
            spec=a_spec(name="c", tags=("xx",)), owner=owner, status=JobStatus.COMPLETED, last_outcome=done
        ),
        a_job(
            spec=a_spec(name="d", priority=Priority.HIGH),
            owner=owner,
            status=JobStatus.COMPLETED,
            last_outcome=failed,
        ),
    ):
        shop.store.create(job, [])
    running = claimed_pair(a_pair(spec=a_spec(name="e"), owner=owner))
    shop.store.create(running.job, [running.run])
    find = shop.running.find if wanted is Wanted.RUNNING else shop.search.find
    found = find(Question(owner, wanted, criteria), limit=10)
    assert ({job.spec.name for job in found.jobs}, found.behind) == (expected, None)


def test_pages_of_jobs_of_the_same_millisecond(shop: Shop, request: pytest.FixtureRequest) -> None:
    owner = owner_of(request)
    jobs = [a_job(owner=owner, created_at=NOW + timedelta(milliseconds=n // 40)) for n in range(100)]
    for job in jobs:
        shop.store.create(job, [])
    listed: list[Job] = []
    behind = None
    for _ in range(9):
        found = shop.search.find(Question(owner), limit=12, behind=behind)
        listed += found.jobs
        behind = found.behind
    assert behind is None
    assert listed == sorted(jobs, key=lambda job: (job.created_at, job.job_id), reverse=True)


def test_a_job_that_ends_moves_to_another_part(shop: Shop, request: pytest.FixtureRequest) -> None:
    job = a_cron_job(owner=owner_of(request))
    shop.store.create(job, [])
    after = job.evolve(status=JobStatus.CANCELLED, next_run_at=None)
    assert shop.lists.count_listed(part_of(job), limit=5) == 1
    assert shop.store.change(job, after) is None
    assert shop.lists.count_listed(part_of(job), limit=5) == 0
    assert shop.lists.count_listed(part_of(after), limit=5) == 1


def test_what_is_under_way_is_known_by_its_owner_and_worker(
    shop: Shop, request: pytest.FixtureRequest
) -> None:
    owner = owner_of(request)
    pair = claimed_pair(a_pair(owner=owner), "worker-7")
    shop.store.create(pair.job, [pair.run])
    waiting = a_pair(owner=owner)
    shop.store.create(waiting.job, [waiting.run])
    assert pair.run.deadline_at
    found = shop.lists.under_way(worker_slot("worker-7"), owner=owner, limit=1000).runs
    assert found == [UnderWay(pair.run.key, owner, "worker-7", pair.run.deadline_at)]
    assert found[0] in shop.lists.under_way(worker_slot("worker-7"), limit=1000).runs


def test_what_is_under_way_is_read_apart_from_what_waits_and_by_the_page(
    shop: Shop, request: pytest.FixtureRequest
) -> None:
    owner, worker = owner_of(request), f"worker of {owner_of(request)}"
    held = [claimed_pair(a_pair(owner=owner), worker) for _ in range(5)]
    for pair in held:
        shop.store.create(pair.job, [pair.run])
    job = a_cron_job(owner=owner)
    shop.store.create(job, [a_run(job, at=NOW + timedelta(seconds=n)) for n in range(50)])
    slot, after = worker_slot(worker), None
    found: list[RunKey] = []
    while True:
        page = shop.lists.under_way(slot, owner=owner, limit=2, after=after)
        assert page.examined <= 2
        found += [run.key for run in page.runs]
        if (after := page.until) is None:
            break
    assert sorted(found) == sorted(pair.run.key for pair in held)
    everything = [run.key for slot in HELD_SLOTS for run in shop.lists.under_way(slot, limit=1000).runs]
    assert all(seen.run.holds_place for seen in shop.store.load(everything).values())


def test_between_attempts_a_run_still_holds_its_place(shop: Shop, request: pytest.FixtureRequest) -> None:
    pair = claimed_pair(a_pair(owner=owner_of(request)))
    run = pair.run.evolve(status=RunStatus.RETRYING)
    shop.store.create(pair.job, [run])
    assert list(shop.store.holders(pair.job)) == [run.key]
    found = shop.running.find(Question(owner_of(request), Wanted.RUNNING), limit=10)
    assert [job.job_id for job in found.jobs] == [pair.job.job_id]


def test_the_runs_that_hold_a_place_in_a_job(shop: Shop, request: pytest.FixtureRequest) -> None:
    owner = owner_of(request)
    mine, other = (claimed_pair(a_pair(owner=owner)) for _ in range(2))
    for pair in (mine, other):
        shop.store.create(pair.job, [pair.run, a_run(pair.job, at=NOW + timedelta(hours=1))])
    assert list(shop.store.holders(mine.job)) == [mine.run.key]


def test_owners_are_remembered(shop: Shop, request: pytest.FixtureRequest) -> None:
    owner = owner_of(request)
    shop.lists.know_owner(owner)
    shop.lists.know_owner(owner)
    assert list(shop.lists.owners()).count(owner) == 1
