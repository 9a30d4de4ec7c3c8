"""Lists that callers see: of whom, in which pages."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from duetime.api import executions as executions_module
from duetime.api.caller import Caller
from duetime.api.dead_letters import DeadLetters, Whose
from duetime.api.executions import Executions
from duetime.api.finding import Filter, Finder
from duetime.api.history import read_history
from duetime.api.page_tokens import PageTokens
from duetime.audit import Action, Event, changes_between
from duetime.budget import A_QUERY, MOST_EXAMINED, Budget
from duetime.clock import ManualClock
from duetime.errors import NotFound
from duetime.finishing import dead_lettered, dropped
from duetime.health import Examiner, Stage
from duetime.job import Job, Priority
from duetime.listing import BUCKETS
from duetime.memory_store import MemoryStore
from duetime.pair import JobRun
from duetime.run import Run, RunKey
from duetime.run_control import RunControl
from duetime.searching import Search, Wanted
from duetime.status import RunStatus
from duetime.watch import HELD_SLOTS

from tests.factories import ME, NOW, OWNER, a_cron_job, a_job, a_pair, a_run, a_spec, a_timing, claimed_pair

OTHER = "arn:aws:iam::123456789012:role/other"
TOKENS = PageTokens(lambda: b"k" * 32)
OWNER_CALLS, OTHER_CALLS, ADMIN_CALLS = Caller(OWNER), Caller(OTHER), Caller("admin", is_admin=True)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


class TestFinding:
    @pytest.fixture
    def finder(self, store: MemoryStore, threads: ThreadPoolExecutor) -> Finder:
        for owner in (OTHER, OWNER):
            store.know_owner(owner)
            for age in range(5):
                store.create(a_job(owner=owner, created_at=NOW - timedelta(seconds=age)), [])
        return Finder(Search(store, store, ManualClock(NOW), threads), TOKENS)

    def owners(self, finder: Finder, caller: Caller, **wanted: str) -> list[list[str]]:
        pages, token = [], None
        while True:
            page = finder.page(Filter(**wanted), caller, limit=3, page_token=token)  # type: ignore[arg-type]
            pages.append([job.owner for job in page.jobs])
            if (token := page.next_page_token) is None:
                return pages

    def test_everybody_sees_their_own(self, finder: Finder) -> None:
        assert self.owners(finder, OWNER_CALLS) == [[OWNER] * 3, [OWNER] * 2]
        assert self.owners(finder, OWNER_CALLS, user_id=OWNER) == [[OWNER] * 3, [OWNER] * 2]
        assert self.owners(finder, OWNER_CALLS, user_id=OTHER) == [[]]

    def test_an_admin_sees_owner_by_owner_and_pages_are_full(self, finder: Finder) -> None:
        first, second = sorted([OWNER, OTHER])
        assert self.owners(finder, ADMIN_CALLS) == [
            [first] * 3,
            [first, first, second],
            [second] * 3,
            [second],
        ]
        assert self.owners(finder, ADMIN_CALLS, user_id=OTHER) == [[OTHER] * 3, [OTHER] * 2]

    def test_an_admin_passes_idle_owners_over_some_at_a_time(
        self, finder: Finder, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for n in range(200):
            store.know_owner(f"arn:aws:iam::123456789012:role/idle-{n}")
        queries, read = [0], store.listed

        def count(*part: Any, **how: Any) -> Any:
            queries[0] += 1
            return read(*part, **how)

        monkeypatch.setattr(store, "listed", count)
        found: list[str] = []
        pages, token = 0, None
        while True:
            page = finder.page(Filter(), ADMIN_CALLS, limit=50, page_token=token)
            found += [job.owner for job in page.jobs]
            pages += 1
            # The owner at which the budget ends is looked at to its end.
            assert queries[0] <= (MOST_EXAMINED // A_QUERY) + 3 * BUCKETS
            queries[0] = 0
            if (token := page.next_page_token) is None:
                break
        assert (pages > 3, sorted(found)) == (True, sorted([OWNER, OTHER] * 5))

    def test_what_runs_is_read_once_for_all_owners(
        self, finder: Finder, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for n in range(50):
            store.know_owner(f"arn:aws:iam::123456789012:role/idle-{n}")
        for owner in [OWNER, OTHER] * 2:
            pair = claimed_pair(a_pair(owner=owner))
            store.create(pair.job, [pair.run])
        reads, read = [0], store.under_way

        def count(*slot: Any, **how: Any) -> Any:
            reads[0] += 1
            return read(*slot, **how)

        monkeypatch.setattr(store, "under_way", count)
        first, second = sorted([OWNER, OTHER])
        running: Any = Wanted.RUNNING
        assert self.owners(finder, ADMIN_CALLS, status=running) == [[first, first, second], [second]]
        assert reads == [2 * len(HELD_SLOTS)]
        assert self.owners(finder, OTHER_CALLS, status=running) == [[OTHER] * 2]
        assert self.owners(finder, OTHER_CALLS, status=running, user_id=OWNER) == [[]]
        assert self.owners(finder, ADMIN_CALLS, status=running, user_id=OWNER) == [[OWNER] * 2]


class TestDeadLetters:
    def a_letter(self, store: MemoryStore, owner: str = OWNER, seconds: int = 0) -> Run:
        seen = a_pair(owner=owner)
        ended_at = NOW + timedelta(seconds=seconds)
        failed = dropped(seen.run, RunStatus.FAILED, "no", ended_at)
        letter = replace(dead_lettered(failed, ended_at), end_time=ended_at)
        store.create(seen.job, [letter])
        return letter

    def test_an_owners_come_latest_first_in_full_pages(self, store: MemoryStore) -> None:
        letters = [self.a_letter(store, seconds=n // 2) for n in range(7)]
        self.a_letter(store, OTHER)
        found: list[Run] = []
        token = None
        for size in (3, 3, 1):
            page = DeadLetters(store, TOKENS).page(Whose(), OWNER_CALLS, limit=3, page_token=token)
            assert len(page.runs) == size
            found += page.runs
            token = page.next_page_token
        assert token is None
        assert {run.run_id for run in found} == {run.run_id for run in letters}
        times = [run.end_time for run in found]
        assert times == sorted(times, key=str, reverse=True)

    def test_others_are_for_admins(self, store: MemoryStore) -> None:
        letter = self.a_letter(store)
        letters = DeadLetters(store, TOKENS)
        assert letters.page(Whose(user_id=OWNER), OTHER_CALLS, limit=3, page_token=None).runs == ()
        assert letters.page(Whose(user_id=OWNER), ADMIN_CALLS, limit=3, page_token=None).runs == [letter]
        with pytest.raises(NotFound):
            letters.page(Whose(job_id=letter.job_id), OTHER_CALLS, limit=3, page_token=None)
        mine = letters.page(Whose(job_id=letter.job_id), OWNER_CALLS, limit=3, page_token=None)
        assert mine.runs == [letter]

    def test_redriving_many_is_on_record(self, store: MemoryStore) -> None:
        letter = self.a_letter(store)
        control = RunControl(store, ManualClock(NOW))
        letters = DeadLetters(store, TOKENS)
        done = letters.redrive(Whose(), OWNER_CALLS, control, limit=10, page_token=None)
        assert [run.run_id for run in done.runs] == [letter.run_id]
        assert [e.action for e in store.events(letter.job_id, limit=5).events] == [Action.REDRIVEN]


class TestExecutions:
    def test_by_worker_and_by_owner(self, store: MemoryStore, threads: ThreadPoolExecutor) -> None:
        def running(owner: str, worker: str) -> str:
            pair = claimed_pair(a_pair(owner=owner), worker)
            store.create(pair.job, [pair.run])
            return pair.run.run_id

        mine, here, theirs = running(OWNER, "w1"), running(OWNER, "w2"), running(OTHER, "w1")
        executions = Executions(store, store, TOKENS, threads)

        def ids(worker: str | None, user: str | None, caller: Caller) -> set[str]:
            runs, token = executions.page(worker, user, caller, limit=10, page_token=None)
            assert token is None
            return {run.run_id for run in runs}

        assert ids("w1", None, OWNER_CALLS) == {mine}
        assert ids(None, None, OWNER_CALLS) == {mine, here}
        assert ids("w1", None, ADMIN_CALLS) == {mine, theirs}
        assert ids(None, OTHER, ADMIN_CALLS) == {theirs}
        assert ids(None, OTHER, OWNER_CALLS) == set()

    def test_by_the_page(self, store: MemoryStore, threads: ThreadPoolExecutor) -> None:
        for _ in range(5):
            pair = claimed_pair(a_pair(), "w")
            store.create(pair.job, [pair.run])
        executions, seen, token = Executions(store, store, TOKENS, threads), set(), None
        for size in (2, 2, 1):
            runs, token = executions.page("w", None, OWNER_CALLS, limit=2, page_token=token)
            assert len(runs) == size
            seen |= {run.key for run in runs}
        assert (token, len(seen)) == (None, 5)

    def test_a_backlog_is_not_read_and_a_page_that_read_its_fill_ends_early(
        self, store: MemoryStore, threads: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = a_cron_job(owner=OTHER)
        store.create(job, [a_run(job, at=NOW + timedelta(seconds=n)) for n in range(500)])
        held = [claimed_pair(a_pair(owner=OTHER), f"worker {n}") for n in range(300)]
        held += [claimed_pair(a_pair(), f"worker {n}") for n in range(20)]
        for pair in held:
            store.create(pair.job, [pair.run])
        examined: list[int] = []
        read = store.under_way

        def count(*slot: Any, **how: Any) -> Any:
            page = read(*slot, **how)
            examined.append(page.examined)
            return page

        monkeypatch.setattr(store, "under_way", count)
        monkeypatch.setattr(executions_module, "Budget", lambda: Budget(200))
        executions = Executions(store, store, TOKENS, threads)
        found: list[RunKey] = []
        pages, token = 0, None
        while True:
            runs, token = executions.page(None, None, OWNER_CALLS, limit=100, page_token=token)
            found += [run.key for run in runs]
            pages += 1
            if token is None:
                break
        assert pages > 2
        assert sorted(found) == sorted(pair.run.key for pair in held[300:])
        # Nothing of the backlog: with all the budget there is, one page reads what is under way, and that once.
        monkeypatch.setattr(executions_module, "Budget", Budget)
        examined.clear()
        runs, token = executions.page(None, None, OWNER_CALLS, limit=100, page_token=None)
        assert (len(runs), token, sum(examined), len(examined)) == (20, None, len(held), len(HELD_SLOTS))


class TestHistory:
    @pytest.mark.parametrize("events", [0, 1, 2, 3, 5])
    def test_it_ends_with_the_creation(self, store: MemoryStore, events: int) -> None:
        job = a_job(created_from="203.0.113.7")
        for n in range(events):
            store.note(ME.did(Action.PAUSED, job.job_id, NOW + timedelta(seconds=n)))
        found: list[Event] = []
        before = None
        while True:
            page, before = read_history(job, store, limit=2, before=before)
            assert len(page) <= 2
            found += page
            if before is None:
                break
        assert [event.action for event in found] == ["paused"] * events + ["created"]
        assert found[-1].source.address == "203.0.113.7"

    def test_what_changed_is_told_but_not_what_may_be_secret(self) -> None:
        before = a_job(spec=a_spec(task={"type": "http", "url": "a", "headers": {"k": "secret"}}))
        after = replace(
            before,
            spec=replace(
                before.spec,
                priority=Priority.HIGH,
                tags=("a",),
                timing=a_timing("FUTURE", schedule_time=NOW),
                task={"type": "http", "url": "b", "headers": {"k": "other"}},
                payload={"card": 1},
            ),
        )
        changes = changes_between(before, after)
        assert changes["priority"] == {"from": "medium", "to": "high"}
        assert changes["tags"] == {"from": [], "to": ["a"]}
        assert changes["schedule_type"] == {"from": "IMMEDIATE", "to": "FUTURE"}
        assert changes["schedule_time"] == {"from": None, "to": "2026-11-18T07:00:00.123Z"}
        assert changes["task"] == {"fields": ["headers", "url"]}
        assert changes["payload"] == {"fields": []}
        assert "secret" not in str(changes)
        assert "other" not in str(changes)


class TestHealth:
    def ages(self, store: MemoryStore, threads: ThreadPoolExecutor, seconds: int) -> dict[Stage, float]:
        clock = ManualClock(NOW + timedelta(seconds=seconds))
        health = Examiner(store, clock, threads).examine()
        assert health.is_behind == any(age > timedelta(seconds=60) for age in health.oldest.values())
        return {stage: age.total_seconds() for stage, age in health.oldest.items() if age}

    def a_stored(self, store: MemoryStore, job: Job, *runs: Run) -> None:
        store.create(job, list(runs))

    def test_nothing_to_do_is_healthy(self, store: MemoryStore, threads: ThreadPoolExecutor) -> None:
        self.a_stored(store, a_cron_job(next_run_at=NOW + timedelta(hours=1)))
        assert self.ages(store, threads, 0) == {}

    def test_the_age_of_the_oldest_at_each_stage(
        self, store: MemoryStore, threads: ThreadPoolExecutor
    ) -> None:
        self.a_stored(store, a_cron_job(next_run_at=NOW - timedelta(seconds=5)))
        queued = a_job()
        self.a_stored(store, queued, a_run(queued))
        held = claimed_pair(a_pair())
        self.a_stored(store, held.job, held.run)
        lost = a_pair()
        self.a_stored(store, lost.job, dropped(lost.run, RunStatus.FAILED, "x", NOW))
        found = self.ages(store, threads, 100)
        assert found[Stage.WAITING] == 105
        assert found[Stage.QUEUED] == 100
        assert found[Stage.FAILED] == 100
        assert held.run.deadline_at is not None
        assert found[Stage.RUNNING] == (NOW + timedelta(seconds=100) - held.run.deadline_at).total_seconds()

    def test_what_is_under_way_is_not_undone(self, store: MemoryStore, threads: ThreadPoolExecutor) -> None:
        held = claimed_pair(JobRun(*a_pair()))
        self.a_stored(store, held.job, held.run)
        assert self.ages(store, threads, 1) == {}
