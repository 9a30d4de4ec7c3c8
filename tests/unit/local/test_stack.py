import io
from pathlib import Path

import pytest

from local import stack as subject
from local.deployment import deployed_outputs
from local.emulator import Emulator
from local.errors import LocalStackError
from local.layout import Layout
from local.progress import Progress
from local.records import write_record
from local.stack import running_emulator, take_down

GONE = Emulator(pid=2**31 - 1, port=4610, token="duetime-0123456789abcdef")


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path)


@pytest.fixture
def silence() -> Progress:
    return Progress(io.StringIO())


def leave_traces(layout: Layout, emulator: Emulator) -> None:
    write_record(layout.emulator_record, emulator.as_record())
    write_record(layout.deployment_record, {"token": emulator.token})
    write_record(layout.stack_file, {})
    (layout.emulator_data / "tmp" / "ministack-lambda-worker").mkdir(parents=True)


def test_down_when_nothing_is_up_is_no_error(layout: Layout, silence: Progress) -> None:
    assert take_down(layout, silence) is False


def test_down_clears_up_after_an_emulator_that_died(layout: Layout, silence: Progress) -> None:
    leave_traces(layout, GONE)
    assert take_down(layout, silence) is False
    traces = (layout.emulator_record, layout.deployment_record, layout.stack_file, layout.emulator_data)
    assert not any(path.exists() for path in traces)


def test_an_emulator_that_died_does_not_count_as_running(layout: Layout) -> None:
    leave_traces(layout, GONE)
    assert running_emulator(layout) is None


def test_up_that_fails_leaves_nothing_half_up(
    layout: Layout, silence: Progress, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise LocalStackError("The stack could not be deployed: no.")

    monkeypatch.setattr(subject, "require_tools", lambda _: None)
    monkeypatch.setattr(subject, "launch", lambda *_, **__: GONE)
    monkeypatch.setattr(subject, "wait_until_healthy", lambda *_: None)
    monkeypatch.setattr(subject, "ensure_assembly", fail)
    with pytest.raises(LocalStackError, match="could not be deployed"):
        subject.ensure_up(layout, silence)
    assert not layout.emulator_record.exists()


def test_a_deployment_into_another_emulator_process_does_not_count(layout: Layout) -> None:
    record = {"token": GONE.token, "fingerprint": "f", "outputs": {"ApiId": "abc"}}
    write_record(layout.deployment_record, record)
    other = Emulator(pid=GONE.pid, port=GONE.port, token="duetime-fedcba9876543210")
    assert deployed_outputs(layout, GONE, "f") == {"ApiId": "abc"}
    assert deployed_outputs(layout, GONE, "g") is None
    assert deployed_outputs(layout, other, "f") is None
