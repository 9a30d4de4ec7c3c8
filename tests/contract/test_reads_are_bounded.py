"""An owner with 10,000 jobs among 10,000 of others: what the first page of any filter reads is bounded."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from duetime.api.caller import Caller
from duetime.api.executions import Executions
from duetime.api.finding import Filter, Finder
from duetime.api.page_tokens import PageTokens
from duetime.batches import in_batches
from duetime.budget import MOST_EXAMINED
from duetime.clock import ManualClock
from duetime.dynamo_items import job_to_item, run_to_item
from duetime.dynamo_lists import DynamoLists
from duetime.dynamo_store import DynamoStore
from duetime.job import Job, Priority
from duetime.listing import BUCKETS, ENDED_JOBS
from duetime.searching import Search, Wanted
from duetime.status import JobStatus, RunStatus
from duetime.timing import ScheduleType

from tests.factories import NOW, a_cron_job, a_job, a_pair, a_run, a_spec, a_timing, claimed_pair
from tests.tables import JOBS, RECORDS, RUNS

OWNER = "arn:aws:iam::123456789012:role/busy"
OTHERS = [f"arn:aws:iam::123456789012:role/other-{n}" for n in range(10)]
EACH = 10_000
PAGE = 25
BUSY = "arn:aws:iam::123456789012:role/at-work"


@dataclass
class Reads:
    """What a client read: requests, and items that DynamoDB looked at for them."""

    requests: int = 0
    items: int = 0
    owners: set[str] = field(default_factory=set)

    def watch(self, client: Any) -> None:
        client.meta.events.register("after-call.dynamodb", self._note)

    def _note(self, model: Any, parsed: Any, **_: Any) -> None:
        self.requests += 1
        self.items += parsed.get("ScannedCount", 0)
        loaded = [item for items in parsed.get("Responses", {}).values() for item in items]
        self.items += len(loaded)
        self.owners |= {item["owner"]["S"] for item in loaded if "owner" in item}
        assert model.name != "Scan"


def a_crowd(owner: str, count: int) -> Iterator[Job]:
    """Mostly old ones that are done; some wait, a few are paused, failed or special."""
    for n in range(count):
        changes: dict[str, Any] = {"owner": owner, "created_at": NOW - timedelta(seconds=n)}
        if n % 10 == 0:
            yield a_cron_job("0 7 * * *", **changes)
        elif n % 1000 == 1:
            yield a_job(**changes, status=JobStatus.PAUSED)
        elif n % 1000 == 2:
            yield a_job(**changes, status=JobStatus.COMPLETED, last_outcome=RunStatus.FAILED)
        elif n % 3000 == 3:
            spec = a_spec(name="Nightly close", priority=Priority.HIGH, tags=("rare",))
            yield a_job(**changes, spec=spec, status=JobStatus.COMPLETED)
        else:
            timing = a_timing("FUTURE", schedule_time=NOW)
            outcome = RunStatus.SUCCEEDED
            spec = a_spec(timing=timing)
            yield a_job(**changes, spec=spec, status=JobStatus.COMPLETED, last_outcome=outcome)


@pytest.fixture(scope="module")
def crowded(dynamo_client: Any) -> Any:
    jobs = list(a_crowd(OWNER, EACH))
    for other in OTHERS:
        jobs += a_crowd(other, EACH // len(OTHERS))
    for batch in in_batches(jobs, 25):
        puts = [{"PutRequest": {"Item": job_to_item(job)}} for job in batch]
        dynamo_client.batch_write_item(RequestItems={JOBS: puts})
    return dynamo_client


# For each filter: how many jobs fit, and how many items the first page may read. What the index tells by its key is
# read by the page; what it tells by an attribute costs as many entries as there are in that part of the owner's list.
LIVE = EACH // 10 + EACH // 1000
A_PAGE = 3 * BUCKETS * 16 + 4 * PAGE
QUESTIONS = [
    (Filter(), EACH, A_PAGE),
    (Filter(status=Wanted.SCHEDULED), EACH // 10, A_PAGE),
    (Filter(status=Wanted.PENDING), EACH // 10, A_PAGE),
    (Filter(status=Wanted.PAUSED), EACH // 1000, LIVE + PAGE),
    (Filter(status=Wanted.FAILED), EACH // 1000, LIVE + 2 * PAGE),
    (Filter(status=Wanted.RUNNING), 0, PAGE),
    (Filter(status=Wanted.COMPLETED), EACH - LIVE, A_PAGE),
    (Filter(status=Wanted.DONE), EACH - LIVE - EACH // 1000, A_PAGE),
    (Filter(status=Wanted.CANCELLED), 0, EACH),
    (Filter(priority=Priority.MEDIUM), EACH - 4, A_PAGE),
    (Filter(priority=Priority.HIGH), 4, EACH + PAGE),
    (Filter(tag="rare"), 4, EACH + PAGE),
    (Filter(name_prefix="Nightly"), 4, EACH + PAGE),
    (Filter(schedule_type=ScheduleType.CRON, status=Wanted.SCHEDULED), EACH // 10, A_PAGE),
    (Filter(status=Wanted.SCHEDULED, due_before=NOW + timedelta(days=2)), EACH // 10, A_PAGE),
    (Filter(status=Wanted.SCHEDULED, due_before=NOW), 0, 2 * LIVE + PAGE),
]


@pytest.mark.parametrize(("wanted", "fitting", "bound"), QUESTIONS)
def test_the_first_page_of_any_filter(crowded: Any, wanted: Filter, fitting: int, bound: int) -> None:
    reads = Reads()
    reads.watch(crowded)
    try:
        with ThreadPoolExecutor(8) as threads:
            store = DynamoStore(crowded, jobs_table=JOBS, runs_table=RUNS, records_table=RECORDS)
            lists = DynamoLists(crowded, jobs_table=JOBS, runs_table=RUNS, records_table=RECORDS)
            search = Search(store, lists, ManualClock(NOW), threads)
            finder = Finder(search, PageTokens(lambda: b"k" * 32))
            page = finder.page(wanted, Caller(OWNER), limit=PAGE, page_token=None)
    finally:
        crowded.meta.events.unregister("after-call.dynamodb", reads._note)
    # Full unless it is the last.
    assert len(page.jobs) == min(PAGE, fitting)
    assert (page.next_page_token is None) == (fitting <= PAGE)
    assert reads.items <= bound <= MOST_EXAMINED
    assert reads.owners <= {OWNER}


BACKLOG = 2000


@pytest.fixture(scope="module")
def backlog(dynamo_client: Any) -> Any:
    """One job of another owner with many runs that wait, and one of mine of which a run is under way."""
    job = a_cron_job(owner=OTHERS[0])
    held = claimed_pair(a_pair(owner=BUSY), "the busy worker")
    runs = [a_run(job, at=NOW + timedelta(seconds=n)) for n in range(BACKLOG)]
    jobs = [{"PutRequest": {"Item": job_to_item(each)}} for each in (job, held.job)]
    dynamo_client.batch_write_item(RequestItems={JOBS: jobs})
    for batch in in_batches([*runs, held.run], 25):
        puts = [{"PutRequest": {"Item": run_to_item(run)}} for run in batch]
        dynamo_client.batch_write_item(RequestItems={RUNS: puts})
    return dynamo_client


def test_what_runs_is_found_without_reading_what_waits(backlog: Any) -> None:
    store = DynamoStore(backlog, jobs_table=JOBS, runs_table=RUNS, records_table=RECORDS)
    lists = DynamoLists(backlog, jobs_table=JOBS, runs_table=RUNS, records_table=RECORDS)
    tokens = PageTokens(lambda: b"k" * 32)
    reads = Reads()
    reads.watch(backlog)
    try:
        with ThreadPoolExecutor(8) as threads:
            finder = Finder(Search(store, lists, ManualClock(NOW), threads), tokens)
            page = finder.page(Filter(status=Wanted.RUNNING), Caller(BUSY), limit=PAGE, page_token=None)
            runs, _ = Executions(store, lists, tokens, threads).page(
                None, None, Caller(BUSY), limit=PAGE, page_token=None
            )
            held = store.holders(page.jobs[0])
    finally:
        backlog.meta.events.unregister("after-call.dynamodb", reads._note)
    assert ([job.owner for job in page.jobs], [run.key for run in runs]) == ([BUSY], list(held))
    # Three questions; other tests have left some that are under way.
    assert reads.items < BACKLOG // 4


def test_the_crowd_is_what_it_should_be() -> None:
    jobs = list(a_crowd(OWNER, EACH))
    assert sum(job.status not in ENDED_JOBS for job in jobs) == LIVE
