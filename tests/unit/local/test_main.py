import pytest

from local import __main__ as subject
from local.errors import LocalStackError


def test_a_failure_is_one_sentence_and_exit_code_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> int:
        raise LocalStackError("Port 4610 is in use by another program.")

    monkeypatch.setitem(subject.COMMANDS, "up", fail)
    assert subject.main(["up"]) == 1
    assert capsys.readouterr().err == "Port 4610 is in use by another program.\n"


def test_an_interruption_is_no_stack_trace(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt() -> int:
        raise KeyboardInterrupt

    monkeypatch.setitem(subject.COMMANDS, "up", interrupt)
    assert subject.main(["up"]) == 130
    assert capsys.readouterr().err == "\nInterrupted.\n"
