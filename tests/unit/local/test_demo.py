import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from rich.console import Console

from local.demo import show as subject
from local.demo.jobs import demo_jobs
from local.demo.row import Row, milliseconds_between, submitted, updated
from local.errors import LocalStackError
from local.stack_file import StackFile
from local.usage import usage

SUCCEEDED = {
    "latest_run": {
        "status": "SUCCEEDED",
        "attempt": 1,
        "due_at": "2026-11-18T07:00:00.000Z",
        "start_time": "2026-11-18T07:00:00.012Z",
        "end_time": "2026-11-18T07:00:00.052Z",
        "error_message": None,
    }
}
FAILED = {"latest_run": {"status": "FAILED", "attempt": 4, "error_message": "HTTP 500"}}


class FakeClient:
    def __init__(self, *statuses: dict[str, Any]) -> None:
        self._statuses = iter(statuses)
        self._last: dict[str, Any] = {}
        self.jobs: list[dict[str, Any]] = []

    def create_job(self, job: dict[str, Any]) -> dict[str, Any]:
        self.jobs.append(job)
        return {"job_id": f"job-{len(self.jobs)}"}

    def get_status(self, job_id: str) -> dict[str, Any]:
        assert job_id.startswith("job-")
        self._last = next(self._statuses, self._last)
        return self._last


@pytest.fixture(autouse=True)
def no_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def nowhere() -> Iterator[str]:
        yield "http://127.0.0.1:9"

    monkeypatch.setattr(subject, "listening", nowhere)


def console(*, terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=120, _environ={"TERM": "xterm"})


def shown(client: FakeClient, where: Console) -> str:
    subject.show_demo(client, where)
    assert isinstance(where.file, io.StringIO)
    return where.file.getvalue()


def test_the_demo_has_both_task_types_and_every_priority() -> None:
    jobs = demo_jobs("http://127.0.0.1:9")
    assert {job["task"]["type"] for job in jobs} == {"python", "http"}
    assert {job["priority"] for job in jobs} == {"low", "medium", "high"}


def test_a_pipe_gets_plain_lines_and_a_table() -> None:
    output = shown(FakeClient(SUCCEEDED), console(terminal=False))
    assert "\x1b" not in output
    assert "SUCCEEDED  Greet Ada\n" in output
    assert "12 ms" in output
    assert "40 ms" in output


def test_a_terminal_gets_a_live_table() -> None:
    output = shown(FakeClient(SUCCEEDED), console(terminal=True))
    assert "\x1b[" in output
    assert "Greet Ada" in output


def test_a_job_that_fails_fails_the_demo_by_name() -> None:
    with pytest.raises(
        LocalStackError, match=r"1 of the demo's 6 jobs .*: Greet Ada is FAILED \(HTTP 500\)\."
    ):
        shown(FakeClient(FAILED, SUCCEEDED), console(terminal=False))


def test_a_job_without_a_run_yet_is_waited_for() -> None:
    row = submitted(demo_jobs("http://127.0.0.1:9")[0], "job-1")
    assert updated(row, {"latest_run": None}) == row
    assert updated(row, SUCCEEDED).succeeded


def test_a_run_that_has_not_started_has_no_delay() -> None:
    assert milliseconds_between("2026-11-18T07:00:00.000Z", None) is None


def test_the_usage_shows_no_secret() -> None:
    stack = StackFile(
        "http://127.0.0.1:4610/x", "us-east-1", "AKIAEXAMPLE", "top-secret", "http://127.0.0.1", "s"
    )
    row = Row("job-1", "Greet Ada", "python greet", "high")
    assert "top-secret" not in usage(stack, row.job_id)
    assert "AKIAEXAMPLE" not in usage(stack, row.job_id)
