import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from duetime.budget import MOST_EXAMINED, Budget
from duetime.clock import ManualClock
from duetime.job import Job, Priority
from duetime.listing import Criteria, Listed, ListedPage, Part, Standing, bucket_of
from duetime.memory_store import MemoryStore
from duetime.running import Running
from duetime.searching import Question, Search, Wanted
from duetime.status import JobStatus, RunStatus

from tests.factories import NOW, OWNER, a_cron_job, a_job, a_pair, a_spec, a_timing, claimed_pair
from tests.inline import Inline

OTHER = "arn:aws:iam::123456789012:role/other"


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def search(store: MemoryStore) -> Iterator[Search]:
    with ThreadPoolExecutor(4) as threads:
        yield Search(store, store, ManualClock(NOW), threads)


def add(store: MemoryStore, age: int = 0, **changes: Any) -> Job:
    job = a_job(created_at=NOW - timedelta(seconds=age), **changes)
    store.create(job, [])
    return job


def all_pages(search: Search, question: Question, limit: int, most: int = MOST_EXAMINED) -> list[list[Job]]:
    pages, behind = [], None
    while True:
        found = search.find(question, limit=limit, behind=behind, budget=Budget(most))
        pages.append(list(found.jobs))
        if found.behind is None:
            return pages
        behind = found.behind


def all_running(search: Search, question: Question, limit: int, most: int = MOST_EXAMINED) -> list[list[Job]]:
    running = Running(search.store, search.lists, search.clock, search.threads)
    pages, behind = [], None
    while True:
        found = running.find(question, limit=limit, behind=behind, budget=Budget(most))
        pages.append(list(found.jobs))
        if (behind := found.behind) is None:
            return pages


def test_pages_are_full_newest_first_and_together_everything_once(store: MemoryStore, search: Search) -> None:
    rng = random.Random(4)
    mine = [
        # Many of the same millisecond, and of every standing.
        add(
            store,
            age=rng.randrange(40),
            status=rng.choice(list(JobStatus)),
            last_outcome=rng.choice([None, RunStatus.SUCCEEDED, RunStatus.FAILED]),
        )
        for _ in range(300)
    ]
    for _ in range(50):
        add(store, owner=OTHER)
    pages = all_pages(search, Question(OWNER), limit=7)
    assert [len(page) for page in pages] == [7] * 42 + [6]
    listed = [job for page in pages for job in page]
    assert listed == sorted(mine, key=lambda job: (job.created_at, job.job_id), reverse=True)


def test_a_last_page_that_is_just_full_has_nothing_behind_it(store: MemoryStore, search: Search) -> None:
    for age in range(10):
        add(store, age)
    assert [len(page) for page in all_pages(search, Question(OWNER), limit=5)] == [5, 5]


def test_an_owner_without_jobs_has_an_empty_list(search: Search) -> None:
    assert all_pages(search, Question(OWNER), limit=5) == [[]]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Wanted.SCHEDULED, {"waits", "runs", "waits though it failed"}),
        (Wanted.PAUSED, {"sleeps"}),
        (Wanted.CANCELLED, {"cancelled"}),
        (Wanted.COMPLETED, {"done", "given up"}),
        (Wanted.PENDING, {"waits", "waits though it failed"}),
        (Wanted.RUNNING, {"runs"}),
        (Wanted.DONE, {"done"}),
        (Wanted.FAILED, {"given up", "waits though it failed"}),
        (
            None,
            {"waits", "runs", "waits though it failed", "sleeps", "cancelled", "done", "given up"},
        ),
    ],
)
def test_status_means_the_jobs_own_or_what_people_mean(
    store: MemoryStore, search: Search, wanted: Wanted | None, expected: set[str]
) -> None:
    add(store, spec=a_spec(name="waits"))
    add(store, spec=a_spec(name="waits though it failed"), last_outcome=RunStatus.FAILED)
    add(store, spec=a_spec(name="sleeps"), status=JobStatus.PAUSED)
    add(store, spec=a_spec(name="cancelled"), status=JobStatus.CANCELLED, last_outcome=RunStatus.SUCCEEDED)
    add(store, spec=a_spec(name="done"), status=JobStatus.COMPLETED, last_outcome=RunStatus.SUCCEEDED)
    add(store, spec=a_spec(name="given up"), status=JobStatus.COMPLETED, last_outcome=RunStatus.FAILED)
    running = claimed_pair(a_pair(spec=a_spec(name="runs")))
    store.create(running.job, [running.run])
    read = all_running if wanted is Wanted.RUNNING else all_pages
    [page] = read(search, Question(OWNER, wanted), 50)
    assert {job.spec.name for job in page} == expected


@pytest.mark.parametrize(
    "criteria",
    [
        Criteria(priority=Priority.HIGH),
        Criteria(tag="eu"),
        Criteria(name_prefix="Nightly"),
        Criteria(priority=Priority.HIGH, tag="eu", name_prefix="Night"),
    ],
)
def test_the_other_filters_find_the_one_in_hundreds(
    store: MemoryStore, search: Search, criteria: Criteria
) -> None:
    for age in range(400):
        add(store, age)
    wanted = add(store, 200, spec=a_spec(name="Nightly close", priority=Priority.HIGH, tags=("eu", "money")))
    assert all_pages(search, Question(OWNER, criteria=criteria), limit=10) == [[wanted]]


def test_a_range_of_due_times_goes_by_the_next_time_of_each_job(store: MemoryStore, search: Search) -> None:
    for minutes in range(1, 9):
        timing = a_timing("FUTURE", schedule_time=NOW + timedelta(minutes=minutes))
        add(store, spec=a_spec(name=f"in {minutes}", timing=timing))
    store.create(a_cron_job("0 0 1 1 *"), [])
    question = Question(
        OWNER, due_from=NOW + timedelta(minutes=3), due_before=NOW + timedelta(minutes=5, seconds=1)
    )
    [page] = all_pages(search, question, limit=10)
    assert {job.spec.name for job in page} == {"in 3", "in 4", "in 5"}


def test_running_jobs_come_by_the_page_too(store: MemoryStore, search: Search) -> None:
    for age in range(5):
        pair = claimed_pair(a_pair(created_at=NOW - timedelta(seconds=age)))
        store.create(pair.job, [pair.run])
    pages = all_running(search, Question(OWNER, Wanted.RUNNING), limit=2)
    assert [len(page) for page in pages] == [2, 2, 1]


def test_running_jobs_of_everybody_come_owner_by_owner_from_one_reading(
    store: MemoryStore, search: Search
) -> None:
    owners = [f"role/{n}" for n in range(3)]
    for owner in owners * 3:
        pair = claimed_pair(a_pair(owner=owner))
        store.create(pair.job, [pair.run])
    pages = all_running(search, Question(None, Wanted.RUNNING), limit=4)
    first, second, third = owners
    assert [[job.owner for job in page] for page in pages] == [
        [first, first, first, second],
        [second, second, third, third],
        [third],
    ]


def test_where_much_is_under_way_a_page_ends_early_and_goes_on(store: MemoryStore, search: Search) -> None:
    pairs = [claimed_pair(a_pair(), f"worker {n}") for n in range(300)]
    for pair in pairs:
        store.create(pair.job, [pair.run])
    pages = all_running(search, Question(OWNER, Wanted.RUNNING), limit=300, most=200)
    assert len(pages) > 2
    listed = sorted(job.job_id for page in pages for job in page)
    assert listed == sorted(pair.job.job_id for pair in pairs)


def test_a_search_that_read_its_fill_ends_early_and_goes_on_where_it_was(
    store: MemoryStore, search: Search
) -> None:
    for age in range(1500):
        add(store, age)
    wanted = [add(store, age, spec=a_spec(tags=("rare",))) for age in (1400, 1450)]
    pages = all_pages(search, Question(OWNER, criteria=Criteria(tag="rare")), limit=5, most=2000)
    assert len(pages) > 1
    assert [job for page in pages for job in page] == wanted


def test_what_the_index_says_is_checked_on_the_job(store: MemoryStore, search: Search) -> None:
    """An index is a moment behind: a job that was paused meanwhile is not SCHEDULED."""
    job = add(store)
    stale = [Listed(job.created_at, job.job_id)]
    paused = job.evolve(status=JobStatus.PAUSED)
    store.adjust(job, paused, ())
    assert search._fitting(stale, Question(OWNER), Criteria(status=JobStatus.SCHEDULED)) == []
    assert search._fitting(stale, Question(OTHER), Criteria()) == []


class Watched:
    """A store's lists, with what is done before the n-th of them is read, and what was read."""

    def __init__(self, store: MemoryStore, before: dict[int, Callable[[], object]] | None = None) -> None:
        self._store, self._before = store, before or {}
        self.read: list[tuple[Part, int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def listed(self, part: Part, criteria: Criteria, **how: Any) -> ListedPage:
        self._before.get(len(self.read), lambda: None)()
        page = self._store.listed(part, criteria, **how)
        self.read.append((part, page.examined))
        return page


@pytest.mark.parametrize("moment", range(0, 400, 8))
def test_a_job_that_ends_while_its_list_is_read_is_on_one_page(store: MemoryStore, moment: int) -> None:
    """Whichever reading it ends before; all in one bucket, so that there are many rounds."""
    jobs: list[Job] = []
    while len(jobs) < 60:
        job = a_job(created_at=NOW - timedelta(seconds=len(jobs)))
        if bucket_of(job.job_id) == 0:
            store.create(job, [])
            jobs.append(job)
    ends = partial(store.adjust, jobs[40], jobs[40].evolve(status=JobStatus.COMPLETED), ())
    lists: Any = Watched(store, {moment: ends})
    search = Search(store, lists, ManualClock(NOW), Inline())
    pages = all_pages(search, Question(OWNER), limit=50)
    assert [job.job_id for page in pages for job in page] == [job.job_id for job in jobs]


def test_a_due_range_reads_nothing_that_has_ended(store: MemoryStore) -> None:
    for age in range(50):
        add(store, age, status=JobStatus.COMPLETED)
    due = a_cron_job()
    store.create(due, [])
    store.create(a_job(status=JobStatus.PAUSED), [])
    lists: Any = Watched(store)
    search = Search(store, lists, ManualClock(NOW), Inline())
    in_a_day = NOW + timedelta(days=1)
    assert all_pages(search, Question(OWNER, due_before=in_a_day), limit=5) == [[due]]
    assert {part.standing for part, _ in lists.read} == {Standing.LIVE}
    lists.read.clear()
    for wanted in (Wanted.PAUSED, Wanted.CANCELLED, Wanted.COMPLETED, Wanted.DONE):
        assert all_pages(search, Question(OWNER, wanted, due_before=in_a_day), limit=5) == [[]]
    assert lists.read == []


def test_a_round_loads_no_more_jobs_than_a_search_may_look_at(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [a_cron_job(created_at=NOW - timedelta(seconds=n)) for n in range(1500)]
    for job in jobs:
        store.create(job, [])
    loaded: list[str] = []
    load_jobs = store.load_jobs

    def count(job_ids: Iterable[str]) -> Sequence[Job]:
        wanted = list(job_ids)
        loaded.extend(wanted)
        return load_jobs(wanted)

    monkeypatch.setattr(store, "load_jobs", count)
    search = Search(store, store, ManualClock(NOW), Inline())
    question, behind = Question(OWNER, due_before=NOW), None
    seen: set[str] = set()
    while True:
        # Nothing fits, and so every job is looked at.
        found = search.find(question, limit=5, behind=behind, budget=Budget(2000))
        assert (list(found.jobs), len(loaded) <= 1000) == ([], True)
        seen.update(loaded)
        loaded.clear()
        if (behind := found.behind) is None:
            break
    assert seen == {job.job_id for job in jobs}
