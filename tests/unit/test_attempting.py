"""One attempt: what the task does, and what that makes of the run."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from duetime.audit import Actor
from duetime.blobs import MemoryBlobs
from duetime.callback_tokens import is_token_of
from duetime.clock import ManualClock
from duetime.errors import PermanentFailure, TransientFailure
from duetime.heart import Heart
from duetime.logbook import LogShelf, MemoryLogs
from duetime.memory_store import MemoryStore
from duetime.pair import JobRun
from duetime.run import AttemptOutcome, Run
from duetime.run_control import RunControl
from duetime.status import JobStatus, RunStatus
from duetime.stopping import StopReason
from duetime.tasks import Accepted, AttemptContext

from tests.factories import NOW, a_pair, a_spec
from tests.workers import a_worker


class Scene:
    def __init__(
        self, do: Callable[["Scene", AttemptContext], Any], *, lives_for: float = 900, **spec: Any
    ) -> None:
        self.clock, self.store = ManualClock(NOW), MemoryStore()
        self.heart = Heart(self.store, self.clock, by_itself=False)
        self.shelf = LogShelf(MemoryLogs(), MemoryBlobs())
        seen = a_pair(spec=a_spec(**spec))
        self.store.create(seen.job, [seen.run])
        self.key = seen.run.key
        self.contexts: list[AttemptContext] = []

        def execute(context: AttemptContext) -> Any:
            self.contexts.append(context)
            return do(self, context)

        self.worker = a_worker(
            self.store,
            self.clock,
            execute,
            heart=self.heart,
            shelf=self.shelf,
            lives_for=timedelta(seconds=lives_for),
        )

    def work(self) -> Run | None:
        self.clock.wait_until(self.run.not_before)
        return self.worker.work(self.pair)

    def pass_time(self, seconds: int) -> None:
        for _ in range(seconds):
            self.clock.advance(timedelta(seconds=1))
            self.heart.beat()

    @property
    def pair(self) -> JobRun:
        return self.store.load([self.key])[self.key]

    @property
    def run(self) -> Run:
        return self.pair.run


def test_a_long_attempt_keeps_its_lease_and_is_recorded() -> None:
    scene = Scene(lambda scene, _: scene.pass_time(100), timeout_seconds=120)
    run = scene.work()
    assert run is not None
    assert (run.status, run.deadline_at) == (RunStatus.SUCCEEDED, None)
    assert scene.run == run


def stopped_after(seconds: int) -> Callable[[Scene, AttemptContext], Any]:
    def task(scene: Scene, context: AttemptContext) -> Any:
        scene.pass_time(seconds)
        assert context.stop.reason is not None
        raise RuntimeError("whatever a task does when it is stopped")

    return task


def test_an_attempt_that_takes_too_long_is_recorded_as_timed_out_and_retried() -> None:
    scene = Scene(stopped_after(31), timeout_seconds=30)
    run = scene.work()
    assert run is not None
    assert (run.status, run.attempts[-1].outcome) == (RunStatus.RETRYING, AttemptOutcome.TIMED_OUT)
    assert "did not end within its time" in (run.error_message or "")


def test_an_attempt_that_the_worker_cannot_finish_in_its_own_time_is_recorded_and_never_cut_off() -> None:
    scene = Scene(stopped_after(60), timeout_seconds=600, lives_for=60)
    run = scene.work()
    assert run is not None
    assert run.attempts[-1].outcome is AttemptOutcome.TIMED_OUT
    assert "the worker's own time was up" in (run.error_message or "")
    assert scene.contexts[0].stop.reason is StopReason.OUT_OF_TIME


def test_a_cancelled_attempt_ends_its_run() -> None:
    def task(scene: Scene, context: AttemptContext) -> Any:
        scene.store.advance(scene.run, scene.run.evolve(cancel_requested="ann"), by_holder=True)
        return stopped_after(6)(scene, context)

    scene = Scene(task)
    run = scene.work()
    assert run is not None
    assert (run.status, run.error_message) == (RunStatus.CANCELLED, "it was cancelled by ann")
    assert run.attempts[-1].outcome is AttemptOutcome.CANCELLED
    assert (scene.pair.job.running, scene.pair.job.status) == (0, JobStatus.COMPLETED)


def test_a_worker_that_lost_its_lease_records_nothing() -> None:
    def task(scene: Scene, context: AttemptContext) -> Any:
        scene.store.advance(scene.run, scene.run.evolve(fence=99), by_holder=True)
        return stopped_after(6)(scene, context)

    scene = Scene(task)
    assert scene.work() is None
    assert scene.run.status is RunStatus.RUNNING


def test_a_task_that_ends_as_it_is_told_to_stop_has_ended() -> None:
    def task(scene: Scene, context: AttemptContext) -> Any:
        context.stop.give(StopReason.CANCELLED)
        return "done"

    run = Scene(task).work()
    assert run is not None
    assert (run.status, run.result) == (RunStatus.SUCCEEDED, "done")


def test_the_next_attempt_finds_the_checkpoint_a_higher_fence_and_its_own_number() -> None:
    def task(_: Scene, context: AttemptContext) -> Any:
        if context.attempt == 1:
            context.save_checkpoint({"done": 40})
            raise TransientFailure("503")
        return context.checkpoint

    scene = Scene(task)
    scene.work()
    run = scene.work()
    assert run is not None
    assert run.result == {"done": 40}
    assert [(context.attempt, context.fence) for context in scene.contexts] == [(1, 1), (2, 2)]
    assert len({context.idempotency_key for context in scene.contexts}) == 1


@pytest.mark.parametrize(("value", "kind"), [("x" * 5000, PermanentFailure)])
def test_a_checkpoint_is_bounded(value: Any, kind: type[Exception]) -> None:
    run = Scene(lambda _, context: context.save_checkpoint(value)).work()
    assert run is not None
    assert (run.status, "more than 4096" in (run.error_message or "")) == (RunStatus.FAILED, True)


def test_templates_are_filled_for_each_attempt() -> None:
    task = {"type": "http", "url": "https://x.example.com/{{payload.id}}", "body": {"n": "{{attempt}}"}}
    scene = Scene(lambda _, context: context.settings, task=task, payload={"id": 7})
    run = scene.work()
    assert run is not None
    assert run.result == {"type": "http", "url": "https://x.example.com/7", "body": {"n": 1}}


def test_a_template_that_leads_nowhere_is_a_permanent_failure() -> None:
    run = Scene(lambda *_: None, task={"type": "http", "url": "{{payload.url}}"}).work()
    assert run is not None
    assert (run.status, "leads nowhere" in (run.error_message or "")) == (RunStatus.FAILED, True)


def test_what_is_logged_is_kept_and_a_secret_appears_nowhere() -> None:
    def task(_: Scene, context: AttemptContext) -> Any:
        context.redactor.keep_secret("hunter2-hunter2")
        context.log("using hunter2-hunter2")
        if context.attempt == 1:
            raise TransientFailure("refused hunter2-hunter2")
        return {"echo": "hunter2-hunter2"}

    scene = Scene(task)
    first, second = scene.work(), scene.work()
    assert first is not None
    assert second is not None
    assert (first.error_message, second.result) == ("refused [secret]", {"echo": "[secret]"})
    lines = [line.text for piece in scene.shelf.store.pieces(scene.key) for line in piece.lines]
    assert lines == ["using [secret]", "using [secret]"]


def test_what_is_logged_can_be_read_while_the_run_goes_on() -> None:
    read: list[str] = []

    def task(scene: Scene, context: AttemptContext) -> Any:
        context.log("begun")
        scene.pass_time(6)
        read.extend(line.text for piece in scene.shelf.store.pieces(scene.key) for line in piece.lines)

    Scene(task).work()
    assert read == ["begun"]


def failing(
    times: int, do: Callable[..., Any], error: type[Exception] = ConnectionError
) -> Callable[..., Any]:
    """The first so many times it raises, after or instead of doing it; then it does it."""
    left = [times]

    def attempt(*arguments: Any, **options: Any) -> Any:
        if options.get("by_holder") and left[0]:
            left[0] -= 1
            raise error
        return do(*arguments, **options)

    return attempt


class TestTheOutcome:
    def test_it_is_written_down_though_the_store_fails_for_a_while(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        scene = Scene(lambda *_: "done")
        monkeypatch.setattr(scene.store, "exchange", failing(5, scene.store.exchange))
        run = scene.work()
        assert run is not None
        assert (run.status, scene.run, len(scene.contexts)) == (RunStatus.SUCCEEDED, run, 1)

    def test_once_the_lease_is_over_it_is_not_ours_to_write(self, monkeypatch: pytest.MonkeyPatch) -> None:
        scene = Scene(lambda *_: "done")
        monkeypatch.setattr(scene.store, "exchange", failing(10**6, scene.store.exchange))
        with pytest.raises(ConnectionError):
            scene.work()
        lease = scene.run.deadline_at
        assert lease is not None
        assert lease - timedelta(seconds=3) <= scene.clock.now() < lease

    def test_if_only_the_answer_was_lost_what_was_written_counts(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        scene = Scene(lambda *_: "done")
        exchange = scene.store.exchange
        lost: list[bool] = []

        def write_and_lose(*arguments: Any, **options: Any) -> Any:
            there = exchange(*arguments, **options)
            if options.get("by_holder") and not lost:
                lost.append(True)
                raise ConnectionError
            return there

        monkeypatch.setattr(scene.store, "exchange", write_and_lose)
        run = scene.work()
        assert run is not None
        assert (run.status, scene.pair.job.succeeded, scene.pair.job.running) == (RunStatus.SUCCEEDED, 1, 0)

    def test_the_lease_is_kept_while_a_large_result_and_a_long_log_are_stored(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def task(_: Scene, context: AttemptContext) -> Any:
            for _line in range(100):
                context.log("x" * 1000)
            return "y" * 10_000

        scene = Scene(task)
        put, lasting = scene.shelf.blobs.put, []

        def slow_put(*arguments: Any) -> None:
            scene.pass_time(40)
            assert scene.run.deadline_at is not None
            lasting.append(scene.run.deadline_at > scene.clock.now())
            put(*arguments)

        monkeypatch.setattr(scene.shelf.blobs, "put", slow_put)
        run = scene.work()
        assert run is not None
        assert (run.status, lasting) == (RunStatus.SUCCEEDED, [True, True])
        scene.pass_time(60)
        assert scene.run == run

    def test_a_checkpoint_that_was_saved_after_the_last_heartbeat_is_not_undone(self) -> None:
        def task(scene: Scene, context: AttemptContext) -> Any:
            context.save_checkpoint({"done": 1})
            scene.pass_time(6)
            context.save_checkpoint({"done": 2})
            raise TransientFailure("503")

        scene = Scene(task)
        scene.work()
        assert scene.run.checkpoint == {"done": 2}

    @pytest.mark.parametrize("error", [TransientFailure("503"), PermanentFailure("400")])
    def test_a_failure_after_its_cancellation_was_asked_for_is_its_cancellation(
        self, error: Exception
    ) -> None:
        """Asked for between two heartbeats: the worker has not seen it."""

        def task(scene: Scene, _: AttemptContext) -> Any:
            RunControl(scene.store, scene.clock).cancel(scene.key, Actor("ann"))
            raise error

        scene = Scene(task)
        run = scene.work()
        assert run is not None
        assert (run.status, run.error_message) == (RunStatus.CANCELLED, f"it was cancelled by ann; {error}")
        assert (scene.run, run.attempts[-1].outcome) == (run, AttemptOutcome.CANCELLED)
        assert (scene.pair.job.running, scene.pair.job.failed) == (0, 0)

    def test_what_was_done_before_its_cancellation_was_heard_of_is_done(self) -> None:
        def task(scene: Scene, _: AttemptContext) -> Any:
            RunControl(scene.store, scene.clock).cancel(scene.key, Actor("ann"))
            return "paid"

        scene = Scene(task)
        run = scene.work()
        assert run is not None
        assert (run.status, scene.run.cancel_requested) == (RunStatus.SUCCEEDED, None)


class TestWorkThatGoesOnElsewhere:
    TASK = {"type": "http", "url": "https://x.example.com/", "callback": {"heartbeat_seconds": 60}}  # noqa: RUF012

    def test_the_lease_becomes_as_long_as_its_system_may_be_silent(self) -> None:
        accepted = Accepted(timedelta(seconds=60), {"type": "x"})
        scene = Scene(lambda *_: accepted, task=self.TASK, timeout_seconds=3600)
        run = scene.work()
        assert run is not None
        assert (run.status, run.is_elsewhere, run.handle) == (RunStatus.RUNNING, True, {"type": "x"})
        assert run.deadline_at == NOW + timedelta(seconds=60)
        assert run.times_out_at == NOW + timedelta(seconds=3600)
        assert scene.pair.job.running == 1

    def test_a_cancellation_during_its_start_is_the_watchers_at_once(self) -> None:
        def task(scene: Scene, _: AttemptContext) -> Any:
            RunControl(scene.store, scene.clock).cancel(scene.key, Actor("ann"))
            return Accepted(timedelta(days=1), {"type": "x"})

        scene = Scene(task, task=self.TASK, timeout_seconds=3 * 86_400)
        scene.work()
        assert (scene.run.cancel_requested, scene.run.handle) == ("ann", {"type": "x"})
        assert scene.run.deadline_at == scene.clock.now()

    def test_a_handle_is_bounded(self) -> None:
        scene = Scene(lambda *_: Accepted(timedelta(seconds=60), {"type": "x" * 5000}), task=self.TASK)
        run = scene.work()
        assert run is not None
        assert (run.status, "handle is" in (run.error_message or "")) == (RunStatus.FAILED, True)

    def test_the_attempt_has_a_secret_of_which_only_the_digest_is_kept(self) -> None:
        scene = Scene(lambda *_: Accepted(timedelta(seconds=60)), task=self.TASK)
        scene.work()
        token = scene.contexts[0].callback_token
        assert token is not None
        assert is_token_of(token, scene.run.callback_digest)
        assert token not in repr(scene.run)

    def test_a_task_that_does_not_report_has_none(self) -> None:
        scene = Scene(lambda *_: None)
        scene.work()
        assert scene.contexts[0].callback_token is None

    def test_work_that_was_reported_done_before_its_worker_wrote_it_down_is_done(self) -> None:
        def task(scene: Scene, _: AttemptContext) -> Any:
            ended = scene.run.evolve(status=RunStatus.SUCCEEDED, deadline_at=None)
            scene.store.advance(scene.run, ended, by_holder=True)
            return Accepted(timedelta(seconds=60))

        scene = Scene(task, task=self.TASK)
        assert scene.work() is None
        assert scene.run.status is RunStatus.SUCCEEDED
