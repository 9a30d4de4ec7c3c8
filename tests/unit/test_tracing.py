"""A trace goes from the request over the run to the task, where the request directly caused the run."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from duetime.api.caller import identify
from duetime.api.log_keys import log_keys
from duetime.audit import Actor, Source
from duetime.changing import Changes
from duetime.finishing import dead_lettered
from duetime.run_control import RunControl
from duetime.status import RunStatus
from duetime.tasks import AttemptContext
from duetime.tracing import trace_id_in

from tests.factories import NOW, OWNER, a_pair, a_spec, a_timing
from tests.unit.test_auditing import Scene, _intake
from tests.workers import a_worker

TRACE = "1-67891233-abcdef012345678912345678"
ME = Actor(OWNER, Source(trace_id=TRACE))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"Root={TRACE}", TRACE),
        (f"Root={TRACE};Parent=53995c3f42cd8ad8;Sampled=1", TRACE),
        (f"Self=1-0-0;Root={TRACE};Lineage=a:1", TRACE),
        ("Root=anything", None),
        (f"Root={TRACE}0", None),
        (f"Root={TRACE}\r\nX-Evil: 1", None),
        ("", None),
    ],
)
def test_of_a_header_only_the_root_is_taken_and_only_if_it_is_one(text: str, expected: str | None) -> None:
    assert trace_id_in({"x-amzn-trace-id": text}) == expected


def an_event(**changes: Any) -> dict[str, Any]:
    iam = {"userArn": OWNER}
    context = {"requestId": "request-1", "authorizer": {"iam": iam}, "http": {"sourceIp": "203.0.113.7"}}
    return {"headers": {"x-amzn-trace-id": f"Root={TRACE}"}, "requestContext": context} | changes


def test_a_caller_brings_its_trace() -> None:
    assert identify(an_event(), []).actor.source.trace_id == TRACE


def test_a_requests_log_is_found_by_its_job_its_run_and_its_ids() -> None:
    event = an_event(pathParameters={"job_id": "j" * 80, "run_id": "r"})
    assert log_keys(event) == {
        "job_id": "j" * 64,
        "run_id": "r",
        "request_id": "request-1",
        "trace_id": TRACE,
    }
    assert log_keys({}) == {}


def test_what_a_request_makes_due_soon_carries_its_trace_and_what_comes_later_does_not() -> None:
    scene = Scene()
    intake = _intake(scene)
    timing = a_timing("CRON", cron_expression="* * * * *")
    made = intake.submit(a_spec(timing=timing), by=ME, request={}, idempotency_key=None)
    scene.job_id = made.job.job_id
    assert {run.trace_id for run in scene.runs} == {TRACE}
    scene.advance_sweeping(timedelta(minutes=2))
    assert [run.trace_id for run in scene.runs][-2:] == [None, None]


def test_a_run_by_hand_and_a_redrive_carry_the_trace_of_who_asked() -> None:
    scene = Scene.of("CRON", cron_expression="0 0 * * *")
    run = Changes(_intake(scene)).run_now(scene.job, ME)
    assert run.trace_id == TRACE
    job, old = a_pair()
    old = replace(old, trace_id="1-00000000-000000000000000000000000", status=RunStatus.FAILED, end_time=NOW)
    buried = dead_lettered(old, NOW)
    scene.store.create(job, [buried])
    seen = scene.store.load([buried.key])[buried.key]
    redriven = RunControl(scene.store, scene.clock).redrive(seen, ME)
    assert redriven is not None
    assert redriven.trace_id == TRACE


def test_a_task_is_told_of_the_trace() -> None:
    told: list[AttemptContext] = []
    scene = Scene()
    job, run = a_pair()
    scene.store.create(job, [replace(run, trace_id=TRACE)])
    seen = scene.store.load([run.key])[run.key]
    a_worker(scene.store, scene.clock, told.append).work(seen)
    (context,) = told
    assert context.as_headers()["X-Amzn-Trace-Id"] == f"Root={TRACE}"
    assert context.as_object()["trace_id"] == TRACE


def test_a_task_without_a_trace_is_told_of_none() -> None:
    told: list[AttemptContext] = []
    scene = Scene()
    job, run = a_pair()
    scene.store.create(job, [run])
    a_worker(scene.store, scene.clock, told.append).work(scene.store.load([run.key])[run.key])
    assert "X-Amzn-Trace-Id" not in told[0].as_headers()
    assert "trace_id" not in told[0].as_object()
