"""What becomes of open runs that nobody moved in time."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from duetime.blobs import MemoryBlobs
from duetime.claiming import JUDGED
from duetime.clock import ManualClock
from duetime.errors import TransientFailure
from duetime.finishing import dropped
from duetime.hints import Hint
from duetime.memory_store import MemoryStore
from duetime.pair import JobRun
from duetime.patrolling import MOST_HINTS, PAGE, PUT_BACK, TIME_PER_SLOT, Patroller, PatrolReport
from duetime.rescuing import Rescuer
from duetime.run import PATIENCE, Run, RunKey
from duetime.shelf import Shelf
from duetime.status import JobStatus, RunStatus
from duetime.watch import SLOTS

from tests.factories import NOW, a_cron_job, a_job, a_pair, a_run, claimed_pair
from tests.inline import Inline


class Queues:
    def __init__(self) -> None:
        self.hints: list[tuple[RunKey, datetime]] = []
        self.letters: list[Run] = []
        self.refuse = False

    def send_hints(self, hints: Sequence[Hint], now: datetime) -> Collection[RunKey]:
        self.hints += [(hint.key, now) for hint in hints]
        return []

    def send_dead_letters(self, runs: Sequence[Run]) -> Collection[RunKey]:
        if self.refuse:
            return [run.key for run in runs]
        self.letters += runs
        return []


class Scene:
    def __init__(self, *pairs: JobRun) -> None:
        self.store, self.clock, self.queues = MemoryStore(), ManualClock(NOW), Queues()
        for job, run in pairs:
            self.store.create(job, [run])

    def patrol(self) -> PatrolReport:
        rescuer = Rescuer(self.store, Shelf(MemoryBlobs(), lambda: 0.5), self.clock)
        return Patroller(self.store, self.queues, rescuer, self.clock, Inline()).patrol()

    def pair(self, seen: JobRun) -> JobRun:
        return self.store.load([seen.run.key])[seen.run.key]


def test_a_run_within_its_time_is_left_alone_but_is_a_reason_to_come_back() -> None:
    seen = a_pair()
    scene = Scene(seen)
    scene.clock.advance(PATIENCE - timedelta(milliseconds=1))
    report = scene.patrol()
    late = scene.clock.now()
    left = JobRun(seen.job, replace(seen.run, late_at=late))
    assert (report.anything_open, report.hinted, scene.pair(seen)) == (True, [], left)


def test_where_nothing_is_open_there_is_no_reason_to_come_back() -> None:
    job, run = a_pair()
    ended = dropped(run, RunStatus.CANCELLED, "no", NOW)
    assert not Scene(JobRun(job, ended)).patrol().anything_open


def test_a_lost_hint_is_sent_again_later_each_time_and_in_the_end_the_run_fails() -> None:
    seen = a_pair()
    scene = Scene(seen)
    waits = []
    while (run := scene.pair(seen).run).status is RunStatus.QUEUED:
        assert run.deadline_at is not None
        waits.append(run.deadline_at - scene.clock.now())
        scene.clock.wait_until(run.deadline_at)
        scene.patrol()
    assert waits == [PATIENCE] + [PATIENCE * 2**n for n in range(MOST_HINTS)]
    assert len(scene.queues.hints) == MOST_HINTS
    assert run.status is RunStatus.FAILED
    assert "undeliverable" in (run.error_message or "")
    assert (scene.pair(seen).job.failed, scene.pair(seen).job.status) == (1, JobStatus.COMPLETED)


def test_an_undeliverable_run_becomes_a_dead_letter_though_the_stream_is_blocked() -> None:
    seen = a_pair()
    failed = replace(seen.run, status=RunStatus.FAILED, end_time=NOW)
    scene = Scene(JobRun(seen.job, failed))
    scene.clock.advance(PATIENCE)
    scene.queues.refuse = True
    scene.patrol()
    assert scene.pair(seen).run.status is RunStatus.FAILED
    scene.queues.refuse = False
    scene.clock.advance(PUT_BACK)
    scene.patrol()
    assert [run.run_id for run in scene.queues.letters] == [seen.run.run_id]
    assert scene.pair(seen).run.status is RunStatus.DEAD_LETTERED


def test_a_retrying_run_that_is_undeliverable_frees_its_place() -> None:
    job, run = a_pair(running=1)
    retrying = replace(run, status=RunStatus.RETRYING, attempt=1, hints=MOST_HINTS)
    scene = Scene(JobRun(job, retrying))
    scene.clock.advance(PATIENCE)
    scene.patrol()
    assert (scene.pair(JobRun(job, run)).job.running) == 0


def test_a_live_run_is_not_touched() -> None:
    seen = a_pair()
    scene = Scene(seen)
    scene.store.exchange(seen, claimed_pair(seen), JUDGED)
    held = scene.pair(seen)
    scene.clock.advance(timedelta(seconds=14))
    scene.patrol()
    assert scene.pair(seen) == held


def test_a_run_that_somebody_moved_meanwhile_is_not_hinted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two watchers see the same run; one of them wins."""
    seen = a_pair()
    scene = Scene(seen)
    scene.clock.advance(PATIENCE)
    load = scene.store.load

    def load_and_lose(keys: Iterable[RunKey]) -> Mapping[RunKey, JobRun]:
        found = load(keys)
        monkeypatch.undo()
        scene.patrol()
        return found

    monkeypatch.setattr(scene.store, "load", load_and_lose)
    scene.patrol()
    assert (len(scene.queues.hints), scene.pair(seen).run.hints) == (1, 1)


def test_an_index_that_is_a_moment_behind_misleads_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = a_pair()
    scene = Scene(seen)
    scene.clock.advance(PATIENCE)
    stale = {slot: scene.store.open_runs(slot, limit=PAGE) for slot in SLOTS}
    ended = dropped(seen.run, RunStatus.CANCELLED, "no", NOW)
    scene.store.advance(seen.run, ended)
    monkeypatch.setattr(scene.store, "open_runs", lambda slot, **_: stale[slot])
    scene.patrol()
    assert (scene.queues.hints, scene.pair(seen).run) == ([], ended)


@pytest.mark.parametrize("count", [PAGE, 3 * PAGE])
def test_after_a_long_outage_every_page_of_overdue_runs_is_found(count: int) -> None:
    job = a_cron_job("*/10 * * * * *")
    runs: list[Run] = []
    second = 0
    while len(runs) < count:
        run = a_run(job, at=NOW + timedelta(seconds=(second := second + 1)))
        if Scene(JobRun(job, run)).store.open_runs(9, limit=1):
            runs.append(run)
    scene = Scene()
    scene.store.create(job, runs)
    scene.clock.advance(timedelta(days=14))
    assert len(scene.patrol().hinted) == count


def test_two_jobs_runs_go_to_their_own_queues() -> None:
    pairs = [a_pair() for _ in range(5)]
    scene = Scene(*pairs)
    scene.clock.advance(PATIENCE)
    scene.patrol()
    assert {key for key, _ in scene.queues.hints} == {pair.run.key for pair in pairs}


class TestAPoisonousRun:
    """One that cannot be looked after, beside others in the same slot."""

    def scene(self, status: RunStatus, **changes: Any) -> tuple[Scene, list[JobRun]]:
        pairs = [claimed_pair(a_pair()) for _ in range(3)]
        runs = [replace(pair.run, status=status, **changes) for pair in pairs]
        # The first on the index is the one that poisons.
        runs[0] = replace(runs[0], deadline_at=NOW)
        poisoned = [JobRun(pair.job, run) for pair, run in zip(pairs, runs, strict=True)]
        scene = Scene(*poisoned)
        scene.clock.advance(timedelta(minutes=5))
        return scene, poisoned

    def refusing(self, do: Callable[..., Any], key: RunKey) -> Callable[..., Any]:
        def attempt(seen: Any, *arguments: Any, **options: Any) -> Any:
            run = seen.run if isinstance(seen, JobRun) else seen
            if run.key == key:
                raise RuntimeError("ValidationException: Item size has exceeded the maximum allowed size")
            return do(seen, *arguments, **options)

        return attempt

    def statuses(self, scene: Scene, pairs: Sequence[JobRun]) -> list[RunStatus]:
        return [scene.pair(pair).run.status for pair in pairs]

    @pytest.mark.parametrize("error", [RuntimeError("a plug-in"), TransientFailure("AWS does not answer")])
    def test_it_is_reported_and_put_back_and_the_others_are_rescued(
        self, monkeypatch: pytest.MonkeyPatch, error: Exception
    ) -> None:
        scene, pairs = self.scene(RunStatus.RUNNING)
        rescue = Rescuer.rescue

        def rescue_but_one(rescuer: Rescuer, seen: JobRun) -> Run | None:
            if seen.run.key == pairs[0].run.key:
                raise error
            return rescue(rescuer, seen)

        monkeypatch.setattr(Rescuer, "rescue", rescue_but_one)
        report = scene.patrol()
        assert self.statuses(scene, pairs) == [RunStatus.RUNNING, RunStatus.RETRYING, RunStatus.RETRYING]
        assert report.unanswered == [(pairs[0].run.key, error)]
        assert scene.pair(pairs[0]).run.deadline_at == scene.clock.now() + PUT_BACK
        assert scene.patrol().unanswered == []
        scene.clock.advance(PUT_BACK)
        assert scene.patrol().unanswered == [(pairs[0].run.key, error)]

    @pytest.mark.parametrize(
        ("status", "hints", "others"),
        [
            (RunStatus.RETRYING, 0, RunStatus.RETRYING),
            (RunStatus.RETRYING, MOST_HINTS, RunStatus.FAILED),
            (RunStatus.FAILED, 0, RunStatus.DEAD_LETTERED),
        ],
    )
    def test_one_that_cannot_be_written_does_not_keep_the_others_waiting(
        self, monkeypatch: pytest.MonkeyPatch, status: RunStatus, hints: int, others: RunStatus
    ) -> None:
        scene, pairs = self.scene(status, hints=hints, end_time=NOW)
        poison = pairs[0].run.key
        for verb in ("advance", "exchange"):
            monkeypatch.setattr(scene.store, verb, self.refusing(getattr(scene.store, verb), poison))
        report = scene.patrol()
        assert [key for key, _ in report.unanswered] == [poison]
        assert self.statuses(scene, pairs) == [status, others, others]
        assert len(report.hinted) == (2 if others is RunStatus.RETRYING else 0)

    def test_one_that_cannot_be_read_does_not_hide_the_others(self, monkeypatch: pytest.MonkeyPatch) -> None:
        scene, pairs = self.scene(RunStatus.RUNNING)
        poison, load = pairs[0].run.key, scene.store.load

        def load_but_one(keys: Iterable[RunKey]) -> Mapping[RunKey, JobRun]:
            wanted = list(keys)
            if poison in wanted:
                raise ValueError("an item that nobody understands")
            return load(wanted)

        monkeypatch.setattr(scene.store, "load", load_but_one)
        assert len(scene.patrol().rescued) == 2

    @pytest.mark.parametrize("verb", ["send_hints", "send_dead_letters"])
    def test_a_queue_that_fails_is_reported_and_the_runs_are_found_again(
        self, monkeypatch: pytest.MonkeyPatch, verb: str
    ) -> None:
        status = RunStatus.RETRYING if verb == "send_hints" else RunStatus.FAILED
        scene, pairs = self.scene(status, end_time=NOW)
        monkeypatch.setattr(scene.queues, verb, lambda *_: 1 / 0)
        assert len(scene.patrol().unanswered) == 3
        monkeypatch.undo()
        scene.clock.advance(timedelta(minutes=2))
        report = scene.patrol()
        assert len(report.hinted + report.dead_lettered) == len(pairs)

    def test_a_slot_that_cannot_be_read_is_reported_and_the_others_are_looked_at(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        scene, pairs = self.scene(RunStatus.RUNNING)
        (slot,) = [slot for slot in SLOTS if scene.store.open_runs(slot, limit=1)]
        open_runs = scene.store.open_runs

        def read(number: int, **options: Any) -> Any:
            if number == (slot + 1) % len(SLOTS):
                raise ConnectionError
            return open_runs(number, **options)

        monkeypatch.setattr(scene.store, "open_runs", read)
        report = scene.patrol()
        assert (len(report.rescued), len(report.unread), report.anything_open) == (len(pairs), 1, True)

    def test_a_slot_takes_so_long_and_no_longer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        scene, pairs = self.scene(RunStatus.RUNNING)
        rescue = Rescuer.rescue

        def slow(rescuer: Rescuer, seen: JobRun) -> Run | None:
            scene.clock.advance(TIME_PER_SLOT)
            return rescue(rescuer, seen)

        monkeypatch.setattr(Rescuer, "rescue", slow)
        assert [len(scene.patrol().rescued) for _ in pairs] == [1, 1, 1]


def test_a_job_is_not_needed_for_its_runs_rescue_to_be_judged() -> None:
    """A run without its job (a table restored in part) is passed over, not a reason to stop."""
    job = a_job()
    scene = Scene()
    scene.store.add_run(a_run(job))
    scene.clock.advance(PATIENCE)
    assert scene.patrol().hinted == []
