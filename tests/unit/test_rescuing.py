"""What a dead worker left behind, and work that goes on elsewhere."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar

import pytest
from duetime.audit import Actor
from duetime.blobs import MemoryBlobs
from duetime.callback_tokens import digest_of
from duetime.callbacks import Callbacks
from duetime.claiming import JUDGED, claimed
from duetime.clock import ManualClock
from duetime.ending import LONGEST, LOOK_AGAIN
from duetime.errors import Conflict, InvalidField, NotFound, PermanentFailure, TransientFailure, Unavailable
from duetime.finishing import accepted, succeeded
from duetime.job import Job, Overlap
from duetime.leases import LEASE
from duetime.memory_store import MemoryStore
from duetime.pair import JobRun
from duetime.rescuing import Rescuer
from duetime.run import AttemptOutcome, Run, RunKey
from duetime.run_control import RunControl
from duetime.settling import settle
from duetime.shelf import Shelf
from duetime.status import JobStatus, RunStatus
from duetime.tasks.interface import Failed, Finding, StillRunning, Succeeded
from duetime.tasks.work_names import execution_name
from duetime.work_reports import TooSoon, WorkReports

from tests.factories import NOW, a_cron_job, a_pair, a_run, a_spec
from tests.workers import a_worker

ANN = Actor("ann")

TOKEN = "the attempt's secret"
MINUTE = timedelta(minutes=1)


class Container:
    """A kind of task that looks after what it started, as the test says."""

    CAN_LOOK_AFTER: ClassVar[bool] = True
    finding: ClassVar[Finding] = StillRunning()
    ended: ClassVar[list[str]] = []
    answers: ClassVar[bool] = True
    stops_at_once: ClassVar[bool] = True
    # What was started, and by which attempt.
    started: ClassVar[dict[tuple[str, RunKey, int], Mapping[str, Any]]] = {}

    @classmethod
    def look(cls, handle: Mapping[str, Any]) -> Finding:
        if not cls.answers:
            raise TransientFailure("AWS does not answer")
        return cls.finding

    @classmethod
    def end(cls, handle: Mapping[str, Any], reason: str) -> None:
        if not cls.answers:
            raise TransientFailure("AWS does not answer")
        cls.ended.append(reason)
        if cls.stops_at_once and isinstance(cls.finding, StillRunning):
            cls.finding = Failed("stopped")

    @classmethod
    def find(cls, settings: Mapping[str, Any], key: RunKey, attempt: int) -> Mapping[str, Any] | None:
        if not cls.answers:
            raise TransientFailure("AWS does not answer")
        return cls.started.get((settings["function"], key, attempt))


@pytest.fixture(autouse=True)
def container(monkeypatch: pytest.MonkeyPatch) -> None:
    Container.finding, Container.ended, Container.answers = StillRunning(), [], True
    Container.stops_at_once, Container.started = True, {}
    monkeypatch.setattr("duetime.rescuing.find_kind", lambda name: Container)


class Scene:
    """A run that is under way: in a worker, or elsewhere."""

    def __init__(
        self, *, elsewhere: bool = False, handle: bool = False, reports: bool = False, **spec: Any
    ) -> None:
        self.store, self.clock = MemoryStore(), ManualClock(NOW)
        shelf = Shelf(MemoryBlobs(), lambda: 0.5)
        self.rescuer = Rescuer(self.store, shelf, self.clock)
        self.callbacks = Callbacks(self.store, shelf, self.clock)
        self.control = RunControl(self.store, self.clock)
        seen = a_pair(spec=a_spec(timeout_seconds=3600, **spec))
        self.store.create(seen.job, [seen.run])
        self.key = seen.run.key
        held = claimed(seen, "worker-1", NOW, digest_of(TOKEN) if reports else None)
        assert self.store.exchange(seen, held, JUDGED) is None
        if elsewhere:
            after = replace(
                held.run,
                heartbeat_seconds=60,
                times_out_at=NOW + timedelta(hours=1),
                deadline_at=NOW + MINUTE,
                handle={"type": "container"} if handle else None,
            )
            assert self.store.advance(held.run, after)

    @property
    def pair(self) -> JobRun:
        return self.store.load([self.key])[self.key]

    @property
    def run(self) -> Run:
        return self.pair.run

    def rescue(self, after: timedelta) -> Run | None:
        self.clock.wait_until(NOW + after)
        return self.rescuer.rescue(self.pair)


def before_the_write(scene: Scene, monkeypatch: pytest.MonkeyPatch, do: Callable[[], object]) -> None:
    """Somebody else is faster, once."""
    advance = scene.store.advance

    def overtaken(*arguments: Any, **options: Any) -> bool:
        monkeypatch.setattr(scene.store, "advance", advance)
        do()
        return advance(*arguments, **options)

    monkeypatch.setattr(scene.store, "advance", overtaken)


class TestADeadWorker:
    def test_its_run_is_retried_at_once_and_the_attempt_is_on_record(self) -> None:
        scene = Scene()
        run = scene.rescue(MINUTE)
        assert run is not None
        assert (run.status, run.not_before) == (RunStatus.RETRYING, NOW + MINUTE)
        assert run.attempts[-1].outcome is AttemptOutcome.LOST
        assert "worker-1 was not heard of" in (run.error_message or "")
        assert scene.pair.job.running == 1

    def test_after_the_last_attempt_it_has_failed(self) -> None:
        scene = Scene(max_retries=0)
        run = scene.rescue(MINUTE)
        assert run is not None
        assert run.status is RunStatus.FAILED
        assert (scene.pair.job.running, scene.pair.job.status) == (0, JobStatus.COMPLETED)

    def test_the_next_attempt_has_the_checkpoint_and_a_higher_fence(self) -> None:
        scene = Scene()
        scene.store.advance(scene.run, replace(scene.run, checkpoint={"done": 3}), by_holder=True)
        scene.rescue(MINUTE)
        told: list[Any] = []
        worker = a_worker(
            scene.store, scene.clock, lambda context: told.append((context.checkpoint, context.fence))
        )
        worker.work(scene.pair)
        assert told == [({"done": 3}, 2)]

    def test_a_worker_that_renewed_meanwhile_keeps_its_run(self) -> None:
        scene = Scene()
        outdated = scene.pair
        scene.store.renew(scene.run, NOW + timedelta(minutes=5))
        scene.clock.wait_until(NOW + MINUTE)
        assert scene.rescuer.rescue(outdated) is None
        assert scene.run.status is RunStatus.RUNNING

    def test_a_run_whose_cancellation_was_asked_for_is_not_tried_again(self) -> None:
        scene = Scene()
        scene.control.cancel(scene.key, ANN)
        run = scene.rescue(MINUTE)
        assert run is not None
        assert (run.status, scene.run) == (RunStatus.CANCELLED, run)
        assert (run.error_message or "").startswith(
            "it was cancelled by ann; its worker worker-1 was not heard of"
        )
        assert (scene.pair.job.running, scene.pair.job.status) == (0, JobStatus.COMPLETED)

    def test_its_late_answer_is_not_recorded(self) -> None:
        """The worker was not dead, only slow: it comes back after its run was given to another."""
        scene = Scene()
        held = scene.pair
        scene.rescue(MINUTE)
        late = succeeded(held.run, "late", NOW, scene.clock.now())
        assert not settle(held, late, scene.store, scene.clock.now(), by_holder=True)
        assert scene.run.status is RunStatus.RETRYING


class TestWhatADeadWorkerHadStarted:
    """It died between the start and writing down that the work goes on elsewhere."""

    def scene(self, **spec: Any) -> Scene:
        scene = Scene(**spec)
        function = scene.pair.job.spec.task["function"]
        Container.started = {(function, scene.key, 1): {"type": "container", "arn": "arn:1"}}
        return scene

    def test_it_is_found_and_stopped_before_the_next_attempt(self) -> None:
        scene = self.scene()
        run = scene.rescue(MINUTE)
        assert run is not None
        assert (run.status, run.not_before) == (RunStatus.RETRYING, NOW + MINUTE)
        assert (run.attempts[-1].outcome, len(Container.ended)) == (AttemptOutcome.LOST, 1)

    def test_if_it_has_done_its_work_that_counts(self) -> None:
        Container.finding = Succeeded({"paid": 3})
        run = self.scene().rescue(MINUTE)
        assert run is not None
        assert (run.status, run.result) == (RunStatus.SUCCEEDED, {"paid": 3})

    def test_while_it_is_ending_nothing_is_started_beside_it(self) -> None:
        Container.stops_at_once = False
        scene = self.scene()
        assert scene.rescue(MINUTE) is None
        assert (scene.run.status, scene.run.is_elsewhere) == (RunStatus.RUNNING, True)
        assert scene.run.deadline_at == NOW + MINUTE + LOOK_AGAIN
        Container.finding = Failed("exit code 143")
        run = scene.rescue(MINUTE + LOOK_AGAIN)
        assert run is not None
        assert (run.status, run.handle) == (RunStatus.RETRYING, None)
        assert (run.attempts[-1].outcome, len(run.attempts)) == (AttemptOutcome.LOST, 1)
        assert "worker-1 was not heard of" in (run.error_message or "")

    def test_if_aws_does_not_answer_nothing_is_written(self) -> None:
        scene = self.scene()
        before, Container.answers = scene.run, False
        with pytest.raises(TransientFailure):
            scene.rescue(MINUTE)
        assert scene.run == before

    def test_if_it_cannot_be_looked_for_the_run_is_not_tried_again_beside_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: Any) -> None:
            raise PermanentFailure("AccessDenied")

        monkeypatch.setattr(Container, "find", refuse)
        run = self.scene().rescue(MINUTE)
        assert run is not None
        assert (run.status, "cannot be found out: AccessDenied" in (run.error_message or "")) == (
            RunStatus.FAILED,
            True,
        )

    def test_one_that_was_cancelled_is_stopped_and_ends_cancelled(self) -> None:
        scene = self.scene()
        scene.control.cancel(scene.key, ANN)
        run = scene.rescue(MINUTE)
        assert run is not None
        assert (run.status, len(Container.ended)) == (RunStatus.CANCELLED, 1)


class TestAnEndThatTakesTime:
    """A container that was told to stop puts its things away first."""

    def stop(self, how: str) -> Scene:
        Container.stops_at_once = False
        scene = Scene(elsewhere=True, handle=True, reports=how == "LOST")
        if how == "CANCELLED":
            scene.control.cancel(scene.key, ANN)
        assert scene.rescue(timedelta(hours=1) if how == "TIMED_OUT" else MINUTE) is None
        assert (scene.run.status, len(Container.ended)) == (RunStatus.RUNNING, 1)
        return scene

    def later(self, scene: Scene, by: timedelta) -> Run | None:
        return scene.rescue(scene.clock.now() - NOW + by)

    @pytest.mark.parametrize("how", ["CANCELLED", "TIMED_OUT", "LOST"])
    def test_its_end_is_awaited_and_the_reason_remembered(self, how: str) -> None:
        scene = self.stop(how)
        assert self.later(scene, LOOK_AGAIN) is None
        Container.finding = Failed("exit code 143")
        run = self.later(scene, LOOK_AGAIN)
        assert run is not None
        assert run.status is (RunStatus.CANCELLED if how == "CANCELLED" else RunStatus.RETRYING)
        assert (run.attempts[-1].outcome, run.handle) == (AttemptOutcome(how), None)

    @pytest.mark.parametrize("how", ["CANCELLED", "TIMED_OUT", "LOST"])
    def test_the_report_of_its_end_is_as_good(self, how: str) -> None:
        scene = self.stop(how)
        run = scene.rescuer.conclude(scene.pair, Failed("exit code 143"))
        assert run is not None
        assert run.attempts[-1].outcome is AttemptOutcome(how)

    def test_a_sign_of_life_does_not_put_its_end_off(self) -> None:
        scene = self.stop("LOST")
        before = scene.run.deadline_at
        scene.clock.advance(timedelta(seconds=5))
        assert scene.callbacks.heartbeat(scene.key, TOKEN).deadline_at == before

    def test_one_that_never_ends_is_not_tried_again_beside_itself(self) -> None:
        scene = self.stop("TIMED_OUT")
        run = self.later(scene, LONGEST)
        assert run is not None
        assert (run.status, "it has not ended since" in (run.error_message or "")) == (RunStatus.FAILED, True)

    @pytest.mark.parametrize("how", ["CANCELLED", "TIMED_OUT", "LOST"])
    @pytest.mark.parametrize("by_report", [True, False])
    def test_one_that_shuts_down_in_good_order_was_stopped_all_the_same(
        self, how: str, by_report: bool
    ) -> None:
        """A container that heeds SIGTERM may well exit with 0."""
        scene = self.stop(how)
        Container.finding = Succeeded({"exit_code": 0})
        finding = Container.finding
        run = scene.rescuer.conclude(scene.pair, finding) if by_report else self.later(scene, LOOK_AGAIN)
        assert run is not None
        assert run.attempts[-1].outcome is AttemptOutcome(how)

    def test_a_report_that_comes_while_it_is_being_stopped_finds_that_on_record(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        scene = Scene(elsewhere=True, handle=True)
        scene.control.cancel(scene.key, ANN)

        def end(*_: Any) -> None:
            scene.rescuer.conclude(scene.pair, Succeeded({"exit_code": 0}))

        monkeypatch.setattr(Container, "end", end)
        scene.rescue(MINUTE)
        assert scene.run.status is RunStatus.CANCELLED

    @pytest.mark.parametrize("how", ["CANCELLED", "TIMED_OUT"])
    def test_one_that_had_ended_well_before_it_was_told_has_ended_well(self, how: str) -> None:
        Container.finding = Succeeded("done")
        scene = Scene(elsewhere=True, handle=True)
        if how == "CANCELLED":
            scene.control.cancel(scene.key, ANN)
        run = scene.rescue(timedelta(hours=1))
        assert run is not None
        assert (run.status, Container.ended) == (RunStatus.SUCCEEDED, [])


class TestElsewhere:
    def test_work_that_can_be_looked_at_and_lives_is_given_more_time(self) -> None:
        scene = Scene(elsewhere=True, handle=True)
        assert scene.rescue(MINUTE) is None
        assert scene.run.deadline_at == NOW + 2 * MINUTE

    @pytest.mark.parametrize(
        ("finding", "status"),
        [
            (Succeeded({"exit_code": 0}), RunStatus.SUCCEEDED),
            (Failed("exit code 1"), RunStatus.RETRYING),
            (Failed("no such image", is_permanent=True), RunStatus.FAILED),
        ],
    )
    def test_what_is_found_ended_has_ended(self, finding: Finding, status: RunStatus) -> None:
        Container.finding = finding
        scene = Scene(elsewhere=True, handle=True)
        run = scene.rescue(MINUTE)
        assert run is not None
        assert (run.status, run.handle) == (status, None)

    def test_work_that_nobody_can_look_at_and_that_is_silent_is_lost(self) -> None:
        run = Scene(elsewhere=True, reports=True).rescue(MINUTE)
        assert run is not None
        assert (run.status, run.attempts[-1].outcome) == (RunStatus.RETRYING, AttemptOutcome.LOST)
        assert run.error_message == "nothing was heard of it for 60 s"

    def test_work_that_lives_but_was_to_report_and_does_not_is_stopped_and_lost(self) -> None:
        run = Scene(elsewhere=True, handle=True, reports=True).rescue(MINUTE)
        assert run is not None
        assert run.attempts[-1].outcome is AttemptOutcome.LOST
        assert Container.ended == ["nothing was heard of it for 60 s"]

    def test_work_whose_time_is_up_is_really_stopped(self) -> None:
        run = Scene(elsewhere=True, handle=True).rescue(timedelta(hours=1))
        assert run is not None
        assert run.attempts[-1].outcome is AttemptOutcome.TIMED_OUT
        assert len(Container.ended) == 1

    def test_cancelled_work_is_really_stopped(self) -> None:
        scene = Scene(elsewhere=True, handle=True)
        scene.control.cancel(scene.key, ANN)
        assert scene.run.deadline_at == NOW
        run = scene.rescue(timedelta(seconds=1))
        assert run is not None
        assert (run.status, Container.ended) == (RunStatus.CANCELLED, ["it was cancelled by ann"])

    def test_if_aws_does_not_answer_nothing_is_written_and_the_next_patrol_tries_again(self) -> None:
        scene = Scene(elsewhere=True, handle=True)
        before = scene.run
        Container.answers = False
        for after in (MINUTE, timedelta(hours=1)):
            with pytest.raises(TransientFailure):
                scene.rescue(after)
        assert scene.run == before

    def test_what_cannot_be_stopped_is_not_tried_again_beside_itself(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_: Any) -> None:
            raise PermanentFailure("AccessDenied")

        monkeypatch.setattr(Container, "end", refuse)
        run = Scene(elsewhere=True, handle=True).rescue(timedelta(hours=1))
        assert run is not None
        assert run.status is RunStatus.FAILED
        assert "could not be stopped: AccessDenied" in (run.error_message or "")


class TestCallbacks:
    def scene(self) -> Scene:
        return Scene(elsewhere=True, reports=True)

    def test_a_heartbeat_extends_the_lease_and_saves_a_checkpoint(self) -> None:
        scene = self.scene()
        scene.clock.advance(timedelta(seconds=50))
        run = scene.callbacks.heartbeat(scene.key, TOKEN, {"done": 1})
        assert run.deadline_at == NOW + timedelta(seconds=110)
        assert scene.run.checkpoint == {"done": 1}

    def test_a_heartbeat_does_not_extend_the_attempts_time(self) -> None:
        scene = self.scene()
        scene.clock.advance(timedelta(minutes=59, seconds=30))
        assert scene.callbacks.heartbeat(scene.key, TOKEN).deadline_at == NOW + timedelta(hours=1)

    def test_a_heartbeat_tells_that_cancellation_was_asked_for_and_does_not_put_it_off(self) -> None:
        scene = self.scene()
        scene.control.cancel(scene.key, ANN)
        scene.clock.advance(timedelta(seconds=5))
        run = scene.callbacks.heartbeat(scene.key, TOKEN)
        assert (run.cancel_requested, run.deadline_at) == ("ann", NOW)

    def test_a_heartbeat_that_meets_a_cancellation_does_not_put_it_off(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        scene = self.scene()
        scene.clock.advance(timedelta(seconds=30))
        before_the_write(scene, monkeypatch, lambda: scene.control.cancel(scene.key, ANN))
        run = scene.callbacks.heartbeat(scene.key, TOKEN)
        assert (run.cancel_requested, run.deadline_at, scene.run) == ("ann", scene.clock.now(), run)

    def test_a_heartbeat_that_meets_the_worker_who_writes_it_down_does_not_shorten_the_lease(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        scene = Scene(reports=True)

        def accept() -> None:
            hour = NOW + timedelta(hours=1)
            after = accepted(scene.run, timedelta(minutes=5), None, hour, scene.clock.now())
            assert scene.store.advance(scene.run, after, by_holder=True)

        before_the_write(scene, monkeypatch, accept)
        scene.clock.advance(timedelta(seconds=10))
        run = scene.callbacks.heartbeat(scene.key, TOKEN)
        assert run.deadline_at == scene.clock.now() + timedelta(minutes=5)
        assert scene.run == run

    @pytest.mark.parametrize("retry", [True, False])
    def test_a_failure_after_cancellation_was_asked_for_is_the_cancellation(self, retry: bool) -> None:
        scene = self.scene()
        scene.control.cancel(scene.key, ANN)
        run = scene.callbacks.fail(scene.key, TOKEN, "stopped as you asked", retry=retry, retry_after=None)
        assert (run.status, run.error_message) == (
            RunStatus.CANCELLED,
            "it was cancelled by ann; stopped as you asked",
        )
        assert scene.run == run

    def test_a_completion_after_cancellation_was_asked_for_is_one(self) -> None:
        scene = self.scene()
        scene.control.cancel(scene.key, ANN)
        assert scene.callbacks.complete(scene.key, TOKEN, None).status is RunStatus.SUCCEEDED

    @pytest.mark.parametrize(
        "key",
        [
            RunKey("x", "y"),
            RunKey("", ""),
            RunKey("3f1f7c52-9d5c-4a44-8f1b-6d1a2c9f0b11", "y" * 2000),
            RunKey("x" * 3000, "20261118T070000123Z-1-3f1f7c529d5c4a44"),
        ],
    )
    def test_what_cannot_be_a_runs_id_is_not_asked_for(
        self, monkeypatch: pytest.MonkeyPatch, key: RunKey
    ) -> None:
        scene = self.scene()
        monkeypatch.setattr(scene.store, "load", lambda _: 1 / 0)
        sayings: list[Callable[[], Run]] = [
            lambda: scene.callbacks.heartbeat(key, TOKEN),
            lambda: scene.callbacks.complete(key, TOKEN, None),
            lambda: scene.callbacks.fail(key, TOKEN, "x", retry=True, retry_after=None),
        ]
        for say in sayings:
            with pytest.raises(NotFound):
                say()

    def test_a_heartbeat_before_the_worker_has_written_it_down_keeps_the_workers_lease(self) -> None:
        scene = Scene(reports=True)
        deadline = scene.run.deadline_at
        assert deadline is not None
        assert scene.callbacks.heartbeat(scene.key, TOKEN).deadline_at == deadline
        assert deadline >= NOW + LEASE

    def test_completion_ends_the_run_with_its_result(self) -> None:
        scene = self.scene()
        run = scene.callbacks.complete(scene.key, TOKEN, {"paid": 3})
        assert (run.status, run.result, scene.run) == (RunStatus.SUCCEEDED, {"paid": 3}, run)
        assert scene.pair.job.status is JobStatus.COMPLETED

    @pytest.mark.parametrize(("retry", "status"), [(True, RunStatus.RETRYING), (False, RunStatus.FAILED)])
    def test_a_failure_may_be_worth_another_attempt_or_not(self, retry: bool, status: RunStatus) -> None:
        scene = self.scene()
        delay = timedelta(seconds=30) if retry else None
        run = scene.callbacks.fail(scene.key, TOKEN, "no", retry=retry, retry_after=delay)
        assert run.status is status
        if retry:
            assert run.not_before == NOW + timedelta(seconds=30)

    def test_the_token_of_an_attempt_that_is_over_is_refused(self) -> None:
        scene = self.scene()
        scene.rescue(MINUTE)
        before = scene.run
        sayings: list[Callable[[], Run]] = [
            lambda: scene.callbacks.heartbeat(scene.key, TOKEN),
            lambda: scene.callbacks.complete(scene.key, TOKEN, None),
            lambda: scene.callbacks.fail(scene.key, TOKEN, "x", retry=True, retry_after=None),
        ]
        for say in sayings:
            with pytest.raises(Conflict, match="another has begun"):
                say()
        assert scene.run == before

    @pytest.mark.parametrize("token", ["", "wrong", TOKEN + " "])
    def test_another_token_is_refused(self, token: str) -> None:
        scene = self.scene()
        with pytest.raises(Conflict):
            scene.callbacks.complete(scene.key, token, None)

    def test_a_run_without_a_token_takes_none(self) -> None:
        scene = Scene()
        with pytest.raises(Conflict):
            scene.callbacks.complete(scene.key, "", None)

    def test_a_run_that_does_not_exist_is_not_found(self) -> None:
        with pytest.raises(NotFound):
            self.scene().callbacks.complete(RunKey("x", "y"), TOKEN, None)

    def test_a_checkpoint_is_bounded(self) -> None:
        scene = self.scene()
        with pytest.raises(InvalidField, match="checkpoint"):
            scene.callbacks.heartbeat(scene.key, TOKEN, "x" * 5000)


class TestReports:
    def scene(self, **changes: Any) -> tuple[Scene, WorkReports]:
        scene = Scene(elsewhere=True, handle=True)
        there = scene.run
        handle = {"type": "ecs", "container": "main", "completion": "exit", "task_arn": "arn:task"} | changes
        scene.store.advance(there, replace(there, handle=handle))
        return scene, WorkReports(scene.store, scene.rescuer)

    def stopped(self, scene: Scene, exit_code: int, attempt: int = 1) -> dict[str, Any]:
        return {
            "lastStatus": "STOPPED",
            "taskArn": "arn:task",
            "startedBy": f"duetime/{scene.key.job_id}/{scene.key.run_id}/{attempt}",
            "containers": [{"name": "main", "exitCode": exit_code}],
        }

    def test_the_end_of_a_container_ends_its_run(self) -> None:
        scene, reports = self.scene()
        run = reports.take("aws.ecs", self.stopped(scene, 0))
        assert run is not None
        assert (run.status, run.result) == (RunStatus.SUCCEEDED, {"exit_code": 0, "task_arn": "arn:task"})

    def test_a_container_that_failed_is_retried(self) -> None:
        scene, reports = self.scene()
        run = reports.take("aws.ecs", self.stopped(scene, 1))
        assert run is not None
        assert run.status is RunStatus.RETRYING

    def test_a_report_that_comes_twice_or_late_changes_nothing(self) -> None:
        scene, reports = self.scene()
        reports.take("aws.ecs", self.stopped(scene, 1))
        before = scene.run
        assert reports.take("aws.ecs", self.stopped(scene, 0)) is None
        assert scene.run == before

    def test_a_report_of_another_attempt_changes_nothing(self) -> None:
        scene, reports = self.scene()
        assert reports.take("aws.ecs", self.stopped(scene, 0, attempt=7)) is None

    @pytest.mark.parametrize("started_by", ["", "ecs-svc/1", "duetime/x/y/1"])
    def test_somebody_elses_container_is_nobodys(self, started_by: str) -> None:
        _, reports = self.scene()
        assert reports.take("aws.ecs", {"lastStatus": "STOPPED", "startedBy": started_by}) is None

    def test_a_report_that_overtakes_its_worker_comes_back(self) -> None:
        scene = Scene()
        reports = WorkReports(scene.store, scene.rescuer)
        with pytest.raises(TooSoon):
            reports.take("aws.ecs", self.stopped(scene, 0))

    def test_the_end_of_an_execution_ends_its_run(self) -> None:
        scene, reports = self.scene(type="states", execution_arn="arn:execution")
        run = reports.take("aws.states", self.succeeded(scene))
        assert run is not None
        assert run.result == {"paid": 3}

    def succeeded(self, scene: Scene, arn: str = "arn:execution") -> dict[str, Any]:
        name = execution_name(scene.key, 1)
        return {"name": name, "executionArn": arn, "status": "SUCCEEDED", "output": '{"paid": 3}'}

    def test_an_execution_that_only_bears_the_name_is_not_believed(self) -> None:
        """Whoever may start executions of any state machine in the account can give them this name."""
        scene, reports = self.scene(type="states", execution_arn="arn:execution")
        assert (
            reports.take("aws.states", self.succeeded(scene, "arn:aws:states:r:1:execution:evil:n")) is None
        )
        assert reports.take("aws.states", self.succeeded(scene) | {"executionArn": None}) is None
        assert scene.run.status is RunStatus.RUNNING

    def test_an_execution_says_nothing_of_a_container_nor_the_other_way_round(self) -> None:
        scene, reports = self.scene(execution_arn="arn:execution")
        assert reports.take("aws.states", self.succeeded(scene)) is None
        scene, reports = self.scene(type="states")
        assert reports.take("aws.ecs", self.stopped(scene, 0)) is None

    def test_a_container_that_only_bears_the_name_is_not_believed(self) -> None:
        scene, reports = self.scene()
        assert reports.take("aws.ecs", self.stopped(scene, 0) | {"taskArn": "arn:another"}) is None
        assert scene.run.status is RunStatus.RUNNING

    def test_the_end_of_what_was_cancelled_is_its_cancellation(self) -> None:
        """The event of its end overtakes the watcher who stopped it."""
        scene, reports = self.scene()
        scene.control.cancel(scene.key, ANN)
        run = reports.take("aws.ecs", self.stopped(scene, 143))
        assert run is not None
        assert (run.status, scene.run) == (RunStatus.CANCELLED, run)


class TestRunControl:
    def test_a_run_that_waits_ends_at_once(self) -> None:
        scene = Scene()
        job = a_cron_job()
        run = a_run(job)
        scene.store.create(job, [run])
        after = scene.control.cancel(run.key, ANN)
        assert (after.status, after.error_message) == (RunStatus.CANCELLED, "it was cancelled by ann")
        assert scene.control.cancel(run.key, Actor("bob")) == after

    def test_a_run_under_way_is_told_to(self) -> None:
        scene = Scene()
        lease = scene.run.deadline_at
        after = scene.control.cancel(scene.key, ANN)
        assert (after.status, after.cancel_requested, after.deadline_at) == (RunStatus.RUNNING, "ann", lease)

    def test_asking_again_brings_a_deadline_that_is_far_away_back(self) -> None:
        scene = Scene(elsewhere=True)
        scene.control.cancel(scene.key, ANN)
        far = replace(scene.run, deadline_at=NOW + timedelta(days=1))
        assert scene.store.advance(scene.run, far)
        after = scene.control.cancel(scene.key, Actor("bob"))
        assert (after.cancel_requested, after.deadline_at, scene.run) == ("ann", NOW, after)

    def test_a_run_that_fails_meanwhile_does_not_keep_a_jobs_others_from_being_cancelled(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        job = a_cron_job(spec={"max_concurrency": 3})
        runs = [a_run(job, at=NOW + timedelta(minutes=n)) for n in range(3)]
        store = MemoryStore()
        store.create(job, runs)
        for run in runs:
            seen = store.load([run.key])[run.key]
            assert store.exchange(seen, claimed(seen, "w", NOW), JUDGED) is None
        load = store.load

        def load_and_fail(keys: Any) -> Any:
            monkeypatch.setattr(store, "load", load)
            there = load(keys)
            for seen in there.values():
                store.advance(seen.run, seen.run.evolve(status=RunStatus.FAILED))
            return load(keys)

        monkeypatch.setattr(store, "load", load_and_fail)
        there = store.get_job(job.job_id)
        assert there is not None
        RunControl(store, ManualClock(NOW)).cancel_all(there, ANN)
        found = [store.get_run(run.key) for run in runs]
        assert [run and run.cancel_requested for run in found] == ["ann", "ann", None]

    def test_cancelling_a_job_cancels_all_that_is_open_of_it(self) -> None:
        job = a_cron_job(spec={"max_concurrency": 3, "overlap": Overlap.QUEUE})
        runs = [a_run(job, at=NOW + timedelta(minutes=n)) for n in range(4)]
        store, clock = MemoryStore(), ManualClock(NOW)
        store.create(job, runs)
        for run in runs[:2]:
            seen = store.load([run.key])[run.key]
            assert store.exchange(seen, claimed(seen, "w", NOW), JUDGED) is None
        there = store.get_job(job.job_id)
        assert there is not None
        RunControl(store, clock).cancel_all(there, ANN)
        found = [store.get_run(run.key) for run in runs]
        assert [(run and run.status, run and run.cancel_requested) for run in found] == [
            (RunStatus.RUNNING, "ann"),
            (RunStatus.RUNNING, "ann"),
            (RunStatus.CANCELLED, None),
            (RunStatus.CANCELLED, None),
        ]

    def long_under_way(self) -> tuple[MemoryStore, Job, Run]:
        """A run of yesterday, and thousands that were skipped since."""
        store, job = MemoryStore(), a_cron_job("*/10 * * * * *")
        old = a_run(job, at=NOW - timedelta(days=1))
        store.create(job, [old])
        seen = store.load([old.key])[old.key]
        assert store.exchange(seen, claimed(seen, "w", NOW), JUDGED) is None
        for n in range(2000):
            run = a_run(job, at=NOW - timedelta(seconds=10 * n))
            store.add_run(replace(run, status=RunStatus.SKIPPED, end_time=NOW, deadline_at=None))
        there = store.get_job(job.job_id)
        assert there is not None
        return store, there, old

    def test_what_is_under_way_for_long_is_found_without_reading_the_history(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store, job, old = self.long_under_way()
        pages, list_runs = [0], store.list_runs

        def count(*job_id: Any, **how: Any) -> Any:
            pages[0] += 1
            return list_runs(*job_id, **how)

        monkeypatch.setattr(store, "list_runs", count)
        RunControl(store, ManualClock(NOW)).cancel_all(job, ANN)
        assert store.load([old.key])[old.key].run.cancel_requested == "ann"
        assert pages[0] <= 4

    def test_an_index_that_is_a_moment_behind_is_read_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        store, job, old = self.long_under_way()
        answers: list[list[RunKey]] = [[], [], [old.key]]
        monkeypatch.setattr(store, "holders", lambda job: answers.pop(0))
        RunControl(store, ManualClock(NOW)).cancel_all(job, ANN)
        assert store.load([old.key])[old.key].run.cancel_requested == "ann"

    def test_what_cannot_be_found_is_told_and_not_passed_over(self, monkeypatch: pytest.MonkeyPatch) -> None:
        store, job, _ = self.long_under_way()
        monkeypatch.setattr(store, "holders", lambda job: [])
        with pytest.raises(Unavailable, match="not all of its runs"):
            RunControl(store, ManualClock(NOW)).cancel_all(job, ANN)

    def dead(self, **job: Any) -> JobRun:
        seen = a_pair(**job)
        return JobRun(
            seen.job,
            replace(seen.run, status=RunStatus.DEAD_LETTERED, attempt=4, end_time=NOW, deadline_at=None),
        )

    def test_a_dead_letter_is_given_as_many_attempts_more_as_a_new_run_has(self) -> None:
        seen = self.dead(status=JobStatus.COMPLETED)
        store, clock = MemoryStore(), ManualClock(NOW)
        store.create(seen.job, [seen.run])
        after = RunControl(store, clock).redrive(seen, ANN)
        assert after is not None
        assert (after.status, after.attempt, after.max_attempt) == (RunStatus.QUEUED, 4, 8)
        assert RunControl(store, clock).redrive(seen, ANN) is None
        a_worker(store, clock).work(store.load([seen.run.key])[seen.run.key])
        done = store.get_run(seen.run.key)
        assert done is not None
        assert (done.status, done.attempt) == (RunStatus.SUCCEEDED, 5)

    def test_a_dead_letter_of_a_cancelled_job_stays_dead(self) -> None:
        with pytest.raises(Conflict, match="CANCELLED"):
            RunControl(MemoryStore(), ManualClock(NOW)).redrive(self.dead(status=JobStatus.CANCELLED), ANN)

    @pytest.mark.parametrize("status", [RunStatus.FAILED, RunStatus.DEAD_LETTERED])
    def test_a_run_that_has_failed_cannot_be_cancelled(self, status: RunStatus) -> None:
        job, run = self.dead()
        store = MemoryStore()
        store.create(job, [replace(run, status=status)])
        with pytest.raises(Conflict, match="cannot be cancelled"):
            RunControl(store, ManualClock(NOW)).cancel(run.key, ANN)
