"""Every nominal time of a recurring job has exactly one run; and where it has not, the auditor says so, once."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from duetime import changing
from duetime.audit import Action
from duetime.auditing import Auditor, AuditReport
from duetime.claiming import claimed
from duetime.clock import ManualClock
from duetime.due_messages import Audit
from duetime.errors import PermanentFailure, TransientFailure
from duetime.finishing import dead_lettered, failed, voided
from duetime.job import Job
from duetime.memory_store import MemoryStore
from duetime.pair import JobRun
from duetime.planning import HORIZON, plan
from duetime.run import Run, RunKey, planned_run
from duetime.run_control import redriven
from duetime.status import JobStatus, RunStatus
from duetime.submission import waiting_from
from duetime.sweeping import AUDITED_AFTER, AUDITED_AT_ONCE, Sweeper
from duetime.timing import CatchUp
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.factories import OWNER, a_job, a_spec, a_timing
from tests.inline import DueMessages, Inline, Minutes

NOON = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
KEPT = timedelta(days=7)


@dataclass
class Scene:
    """One job, and all that happens to it."""

    job_id: str = ""
    store: MemoryStore = field(default_factory=MemoryStore)
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOON))
    due_queue: DueMessages = field(default_factory=DueMessages)

    @classmethod
    def of(cls, schedule_type: str = "CRON", *, job_id: str = "", **timing: Any) -> "Scene":
        if schedule_type == "CRON":
            timing.setdefault("cron_expression", "* * * * *")
        scene = cls()
        created = a_job(
            job_id=job_id or str(uuid.uuid4()),
            spec=a_spec(timing=a_timing(schedule_type, **timing)),
            created_at=NOON,
            updated_at=NOON,
            anchor_at=NOON,
        )
        made = plan(waiting_from(created, NOON), NOON)
        scene.store.create(made.job, made.runs)
        scene.job_id = created.job_id
        return scene

    @property
    def job(self) -> Job:
        job = self.store.get_job(self.job_id)
        assert job is not None
        return job

    @property
    def runs(self) -> list[Run]:
        return sorted(self.store._runs.values(), key=lambda run: run.run_id)

    @property
    def told(self) -> list[tuple[str, datetime]]:
        events = self.store.events(self.job_id, limit=1000).events
        return sorted((event.action, event.at) for event in events if event.by == "duetime")

    def sweep(self) -> None:
        sweeper = Sweeper(self.store, Minutes(), self.due_queue, self.clock, Inline())
        sweeper.sweep(sweeper.look())

    def audit(self) -> AuditReport:
        return Auditor(self.store, self.clock, Inline(), KEPT).audit([self.job_id])

    def change(self, change: Callable[[Job, str, datetime], Any]) -> None:
        before = self.job
        made = change(before, OWNER, self.clock.now())
        if made.job != before:
            assert self.store.change(before, made.job, made.runs) is None

    def remove(self, runs: Sequence[Run]) -> None:
        for run in runs:
            del self.store._runs[RunKey(run.job_id, run.run_id)]

    def advance_sweeping(self, by: timedelta) -> None:
        for _ in range(by // MINUTE):
            self.clock.advance(MINUTE)
            self.sweep()


def nominal(run: Run) -> datetime:
    return run.nominal_at or run.due_at


def test_where_all_is_well_every_time_is_matched_once() -> None:
    scene = Scene.of()
    scene.advance_sweeping(10 * MINUTE)
    report = scene.audit()
    # The job came to be at noon, which is a time of its own.
    assert (report.matched, report.missed, report.duplicated, report.findings) == (11, 0, 0, [])
    assert scene.job.audited_until == NOON + 10 * MINUTE
    assert scene.audit().matched == 0
    scene.advance_sweeping(2 * MINUTE)
    assert scene.audit().matched == 2


def test_a_run_that_is_gone_is_told_of_once() -> None:
    scene = Scene.of()
    scene.advance_sweeping(5 * MINUTE)
    lost = scene.runs[3]
    scene.remove([lost])
    report = scene.audit()
    assert (report.matched, report.missed) == (5, 1)
    (finding,) = report.findings
    assert (finding.action, finding.nominal_at, finding.run_id) == (Action.MISSED, lost.due_at, lost.run_id)
    (event,) = scene.store.events(scene.job_id, limit=10).events
    assert (event.action, event.by, event.at, event.run_id) == ("missed", "duetime", lost.due_at, lost.run_id)
    assert scene.audit().missed == 0


def test_two_audits_at_once_count_and_tell_once() -> None:
    scene = Scene.of()
    scene.advance_sweeping(5 * MINUTE)
    scene.remove(scene.runs[:1])
    seen = scene.job

    class Slow(MemoryStore):
        """Has read the job before the other audit was done."""

        def load_jobs(self, job_ids: Any) -> Sequence[Job]:
            return [seen]

    slow = Slow()
    slow.__dict__.update(scene.store.__dict__)
    first = scene.audit()
    second = Auditor(slow, scene.clock, Inline(), KEPT).audit([scene.job_id])
    assert (first.missed, second.missed, second.matched) == (1, 0, 0)
    assert len(scene.told) == 1


def test_a_run_in_any_status_matches_its_time() -> None:
    scene = Scene.of()
    scene.advance_sweeping(4 * MINUTE)
    for run, status in zip(scene.runs, RunStatus, strict=False):
        scene.store._runs[run.key] = replace(run, status=status)
    assert scene.audit().missed == 0


def test_what_one_run_stands_for_after_an_outage_is_not_missed() -> None:
    scene = Scene.of("INTERVAL", interval_seconds=10)
    scene.clock.advance(timedelta(hours=5))
    scene.sweep()
    report = scene.audit()
    assert (report.missed, scene.told) == (0, [])
    assert report.matched > 1


def test_what_nobody_has_planned_yet_is_late_and_not_missed() -> None:
    scene = Scene.of()
    scene.clock.advance(timedelta(hours=1))
    report = scene.audit()
    assert (report.matched, report.missed) == (4, 0)


@pytest.mark.parametrize("change", [changing.pause, changing.cancel])
def test_a_job_that_wants_no_runs_misses_none(change: Callable[..., Any]) -> None:
    scene = Scene.of()
    scene.advance_sweeping(2 * MINUTE)
    scene.change(change)
    scene.clock.advance(timedelta(hours=1))
    assert scene.audit() == AuditReport()


def test_a_job_that_has_run_its_course_is_audited_to_its_end() -> None:
    scene = Scene.of(end_at=NOON + 3 * MINUTE)
    scene.clock.advance(5 * MINUTE)
    scene.sweep()
    scene.store._jobs[scene.job_id] = replace(scene.job, status=JobStatus.COMPLETED)
    scene.remove(scene.runs[1:2])
    report = scene.audit()
    assert (report.matched, report.missed) == (len(scene.runs), 1)


def test_what_does_not_recur_is_not_audited() -> None:
    scene = Scene.of("FUTURE", schedule_time=NOON + MINUTE)
    scene.advance_sweeping(5 * MINUTE)
    scene.remove(scene.runs)
    assert (scene.audit(), scene.job.audited_until) == (AuditReport(), None)


def test_a_run_whose_retention_is_over_is_not_missed() -> None:
    scene = Scene.of(cron_expression="0 12 * * *")
    scene.remove(scene.runs)
    scene.clock.advance(KEPT)
    assert scene.audit().missed == 0


def test_a_time_that_two_generations_attempted_is_told_of() -> None:
    scene = Scene.of()
    scene.clock.advance(30 * SECOND)
    scene.change(changing.update(lambda job: replace(job.spec, timeout_seconds=5), _intake(scene)))
    # The claim of the old run won its race by a hair.
    due_at = NOON + MINUTE
    twins = [run for run in scene.runs if run.due_at == due_at]
    assert [run.generation for run in twins] == [1, 2]
    scene.advance_sweeping(2 * MINUTE)
    for run in twins:
        scene.store._runs[run.key] = replace(run, attempt=1)
    report = scene.audit()
    assert (report.duplicated, report.missed) == (1, 0)
    assert scene.told == [("duplicated", due_at)]
    assert report.findings[0].run_id == twins[0].run_id


@pytest.mark.parametrize("attempts", [(0, 1), (1, 0), (0, 0)])
def test_a_run_that_was_made_void_is_no_double(attempts: tuple[int, int]) -> None:
    scene = Scene.of()
    scene.clock.advance(30 * SECOND)
    scene.change(changing.update(lambda job: replace(job.spec, timeout_seconds=5), _intake(scene)))
    twins = [run for run in scene.runs if run.due_at == NOON + MINUTE]
    for run, attempt in zip(twins, attempts, strict=True):
        scene.store._runs[run.key] = replace(run, attempt=attempt)
    scene.advance_sweeping(2 * MINUTE)
    assert scene.audit().duplicated == 0


def test_one_job_that_cannot_be_audited_does_not_keep_the_others_from_it() -> None:
    scene = Scene.of()
    broken = a_job(spec=a_spec(timing=a_timing("CRON", cron_expression="* * * * *", timezone="Gone/Zone")))
    scene.store.create(broken, [])
    scene.advance_sweeping(2 * MINUTE)
    scene.clock.advance(timedelta(days=1))
    report = Auditor(scene.store, scene.clock, Inline(), KEPT).audit([broken.job_id, scene.job_id])
    assert [job_id for job_id, _ in report.unread] == [broken.job_id]
    assert report.matched > 0


class TestAsking:
    def test_a_sweep_asks_for_an_audit_of_what_recurs_after_the_last_time_it_planned(self) -> None:
        scene = Scene.of()
        scene.clock.advance(MINUTE)
        scene.sweep()
        (delayed,) = scene.due_queue.delayed
        assert delayed.message == Audit((scene.job_id,))
        last = scene.runs[-1].due_at
        assert timedelta(seconds=delayed.delay_seconds) == last + AUDITED_AFTER - scene.clock.now()
        assert HORIZON <= timedelta(seconds=delayed.delay_seconds) <= timedelta(seconds=900)

    def test_nothing_is_asked_for_what_runs_once(self) -> None:
        scene = Scene.of("FUTURE", schedule_time=NOON + 10 * MINUTE)
        scene.clock.advance(8 * MINUTE)
        scene.sweep()
        assert (len(scene.runs), scene.due_queue.sent) == (1, [])

    def test_many_jobs_share_few_messages(self) -> None:
        scene = Scene()
        for _ in range(AUDITED_AT_ONCE + 1):
            scene.store.create(
                a_job(
                    spec=a_spec(timing=a_timing("CRON", cron_expression="* * * * *")),
                    created_at=NOON,
                    next_run_at=NOON,
                ),
                [],
            )
        scene.sweep()
        audits = [message for message in scene.due_queue.sent if isinstance(message, Audit)]
        assert sorted(len(audit.job_ids) for audit in audits) == [1, AUDITED_AT_ONCE]

    def test_a_queue_that_refuses_does_not_undo_the_sweep(self) -> None:
        class Refusing(DueMessages):
            def send(self, messages: Any) -> None:
                raise RuntimeError("no")

        scene = Scene.of()
        scene.clock.advance(MINUTE)
        sweeper = Sweeper(scene.store, Minutes(), Refusing(), scene.clock, Inline())
        report = sweeper.sweep(sweeper.look())
        assert (report.jobs, report.unwritten, len(report.unasked)) == (1, [], 1)


def _intake(scene: Scene) -> Any:
    from duetime.admission import Admission, Quota
    from duetime.submission import Intake
    from duetime.targets import AllowedTargets

    allowed = AllowedTargets.from_blocks(
        [{"principals": ["*"], "http_private_addresses": [], "python": ["*"], "arns": []}]
    )
    admission = Admission(scene.store, [Quota(("*",), 100)], scene.clock)
    return Intake(scene.store, Minutes(), scene.clock, allowed, admission, lambda: b"k")


schedules = st.one_of(
    st.fixed_dictionaries(
        {"schedule_type": st.just("INTERVAL"), "interval_seconds": st.sampled_from([10, 60, 90, 600])}
    ),
    st.fixed_dictionaries(
        {
            "schedule_type": st.just("CRON"),
            "cron_expression": st.sampled_from(["* * * * *", "*/5 * * * *", "*/20 * * * * *", "3,4 * * * *"]),
        }
    ),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("wait"), st.sampled_from([0, 1, 5, 30, 59, 60, 61, 200, 300, 1000])),
        st.tuples(st.sampled_from(["sweep", "audit", "pause", "resume", "task"]), st.just(0)),
        st.tuples(st.just("jitter"), st.integers(0, 55)),
        st.tuples(st.just("interval"), st.sampled_from([10, 13, 60, 90])),
        st.tuples(st.just("catch_up"), st.sampled_from(list(CatchUp))),
    ),
    max_size=25,
)


def _live(scene: Scene, story: Sequence[tuple[str, Any]]) -> None:
    for step, value in story:
        spec = scene.job.spec
        match step:
            case "wait":
                scene.clock.advance(timedelta(seconds=value, milliseconds=value))
            case "sweep":
                scene.sweep()
            case "audit":
                report = scene.audit()
                assert (report.missed, report.duplicated, report.unread) == (0, 0, [])
            case "pause":
                scene.change(changing.pause)
            case "resume":
                scene.change(changing.resume)
            case _:
                if step == "task":
                    new = replace(spec, timeout_seconds=spec.timeout_seconds % 100 + 1)
                elif step == "interval" and spec.timing.interval_seconds:
                    new = replace(spec, timing=replace(spec.timing, interval_seconds=value))
                elif step == "interval":
                    new = spec
                else:
                    field = "jitter_seconds" if step == "jitter" else "catch_up"
                    new = replace(spec, timing=replace(spec.timing, **{field: value}))
                _update(scene, new)


def _update(scene: Scene, spec: Any) -> None:
    from duetime.errors import Conflict, InvalidField

    try:
        scene.change(changing.update(lambda _: spec, _intake(scene)))
    except InvalidField:
        # A jitter that is longer than the period.
        return
    except Conflict:
        # It has many missed times to make good first; a person would try again.
        scene.sweep()


@settings(max_examples=300, deadline=None)
@given(
    schedules,
    # The jitter follows from it.
    st.uuids(),
    st.sampled_from(list(CatchUp)),
    st.integers(0, 9),
    steps,
    st.sampled_from([0, 90, 290, 900]),
    st.sets(st.integers(0, 30)),
)
def test_whatever_happens_to_a_job_only_what_was_removed_is_missed(
    timing: dict[str, Any],
    job_id: uuid.UUID,
    catch_up: CatchUp,
    jitter: int,
    story: list[tuple[str, Any]],
    pause_seconds: int,
    places: set[int],
) -> None:
    scene = Scene.of(**timing, job_id=str(job_id), catch_up=catch_up, jitter_seconds=jitter)
    _live(scene, story)
    scene.change(changing.resume)
    scene.sweep()
    scene.clock.advance(pause_seconds * SECOND)
    scene.sweep()

    job, now = scene.job, scene.clock.now()
    assert job.audited_until is not None
    ours = [
        run
        for run in scene.runs
        if run.generation == job.generation
        and job.audited_until < run.due_at <= now
        # One that stands for others would take these with it.
        and run.missed_from is None
    ]
    removed = [run for place, run in enumerate(ours) if place in places]
    scene.remove(removed)
    report = scene.audit()
    assert sorted(found.nominal_at for found in report.findings) == sorted(map(nominal, removed))
    assert (report.missed, report.duplicated, report.unread) == (len(removed), 0, [])
    assert [at for _, at in scene.told] == sorted(map(nominal, removed))[:20]


def test_the_planned_run_of_a_time_is_the_one_expected() -> None:
    """The auditor works out ids, and does not read what planning wrote about them."""
    scene = Scene.of(jitter_seconds=5)
    scene.advance_sweeping(2 * MINUTE)
    job = scene.job
    for run in scene.runs:
        assert planned_run(job, nominal(run), NOON).run_id == run.run_id


class TestWhatIsNoMiss:
    def audit(self, scene: Scene) -> AuditReport:
        return Auditor(scene.store, scene.clock, Inline(), KEPT).audit([scene.job_id])

    def test_a_run_that_was_redriven_is_still_the_run_of_its_time(self) -> None:
        scene = Scene.of()
        run = scene.runs[1]
        scene.clock.advance(timedelta(minutes=1, seconds=1))
        now = scene.clock.now()
        held = claimed(JobRun(scene.job, run), "w", now)
        letter = dead_lettered(failed(held.job, held.run, PermanentFailure("x"), now, now, lambda: 0.0), now)
        scene.store._runs[run.key] = redriven(JobRun(scene.job, letter), now)
        scene.clock.advance(timedelta(minutes=2))
        assert self.audit(scene).missed == 0

    def test_a_run_that_a_pause_ended_between_two_attempts_is_no_double(self) -> None:
        scene = Scene.of(cron_expression="0 * * * *")
        run, now = scene.runs[0], scene.clock.now()
        held = claimed(JobRun(scene.job, run), "w", now)
        retrying = failed(held.job, held.run, TransientFailure("x"), now, now, lambda: 0.0)
        paused = changing.pause(held.job, "me", now + timedelta(seconds=1)).job
        scene.clock.advance(timedelta(seconds=31))
        ended = voided(JobRun(paused, retrying), "paused", scene.clock.now())
        scene.store._runs[run.key] = ended.run
        scene.clock.advance(timedelta(minutes=1))
        made = changing.resume(ended.job, "me", scene.clock.now())
        scene.store._jobs[scene.job_id] = made.job
        for again in made.runs:
            scene.store._runs[again.key] = claimed(JobRun(made.job, again), "w", scene.clock.now()).run
        scene.clock.advance(timedelta(minutes=6))
        assert self.audit(scene).duplicated == 0
