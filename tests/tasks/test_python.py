import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from duetime.errors import PermanentFailure, TransientFailure
from duetime.logbook import LINE_LENGTH
from duetime.stopping import Stopped, StopReason
from duetime.targets import ForbiddenTarget

from tests.tasks.conftest import a_context, attempt, attempt_and_stop, perform

EXAMPLE_TASKS = """
import logging, os, sys, time
from pathlib import Path
from duetime.errors import PermanentFailure

def echo(payload, duetime): print("noise"); os.system("echo more noise"); return [payload, duetime["fence"]]
def give_up(payload, duetime): raise PermanentFailure("no such account")
def stumble(payload, duetime): raise RuntimeError("try again")
def crash(payload, duetime): os._exit(3)
def vanish(payload, duetime): os.close(1); os.kill(os.getpid(), 9)
def unkeepable(payload, duetime): return {1, 2}
def huge(payload, duetime): return "x" * 2_000_000
def large(payload, duetime): return "x" * 100_000

def go_on(payload, duetime):
    for _ in range(2000): sys.stdout.write("x" * 65536)

def talk(payload, duetime):
    logging.basicConfig(level=logging.INFO)
    logging.info("one")
    print("two")
    print("three", file=sys.stderr)

def progress(payload, duetime):
    seen = duetime["checkpoint"]
    duetime.checkpoint({"done": 1})
    duetime.checkpoint({"done": 2})
    return seen

def too_much(payload, duetime): duetime.checkpoint("x" * 5000)

def spin(payload, duetime):
    Path(payload).write_text(str(os.getpid()))
    while True: pass

def leave_a_child(payload, duetime):
    if os.fork() == 0:
        Path(payload).write_text(str(os.getpid()))
        time.sleep(600)
    time.sleep(0.3)
    return "done"
"""


@pytest.fixture(autouse=True)
def example_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "example_tasks.py").write_text(EXAMPLE_TASKS)
    monkeypatch.syspath_prepend(str(tmp_path))


def python(name: str) -> dict[str, Any]:
    return {"type": "python", "function": f"example_tasks:{name}"}


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def eventually(condition: Callable[[], bool]) -> bool:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.02)
    return False


def test_it_returns_what_the_function_returns_whatever_it_prints() -> None:
    assert attempt(python("echo"), {"a": 1.0}) == [{"a": 1.0}, 7]


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("give_up", PermanentFailure, "no such account"),
        ("stumble", TransientFailure, "RuntimeError: try again"),
        ("crash", TransientFailure, "ended with code 3"),
        ("vanish", TransientFailure, "ended with code -9"),
        ("unkeepable", PermanentFailure, "result is not JSON"),
        ("huge", PermanentFailure, "result exceeds"),
        ("missing", PermanentFailure, "not in the worker's layers"),
        ("too_much", TransientFailure, "a checkpoint is at most"),
    ],
)
def test_it_tells_failures_apart(name: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        attempt(python(name))


def test_what_it_prints_and_logs_is_its_log() -> None:
    lines: list[str] = []
    attempt(python("talk"), log=lines.append)
    text = "".join(lines)
    assert all(word in text for word in ("one", "two", "three"))


def test_output_without_a_lines_end_is_taken_in_pieces() -> None:
    """Held until its end came, these 125 MB would be the worker's."""
    sizes: list[int] = []
    attempt(python("go_on"), log=lambda text: sizes.append(len(text)), seconds=60)
    assert sum(sizes) == 2000 * 65536
    assert max(sizes) <= LINE_LENGTH


def test_the_traceback_of_a_failure_is_in_its_log() -> None:
    lines: list[str] = []
    with pytest.raises(TransientFailure):
        attempt(python("stumble"), log=lines.append)
    assert "Traceback" in "".join(lines)


def test_it_finds_the_checkpoint_of_the_attempt_before_and_saves_its_own() -> None:
    saved: list[Any] = []
    found = attempt(python("progress"), checkpoint={"done": 0}, save_checkpoint=saved.append)
    assert (found, saved) == ({"done": 0}, [{"done": 1}, {"done": 2}])


@pytest.mark.parametrize("reason", [StopReason.TIMED_OUT, StopReason.CANCELLED])
def test_a_busy_function_is_really_stopped(tmp_path: Path, reason: StopReason) -> None:
    mark, reached = tmp_path / "pid", threading.Event()
    threading.Thread(target=lambda: reached.set() if eventually(mark.exists) else None).start()
    with pytest.raises(Stopped) as stopped:
        attempt_and_stop(a_context(python("spin"), str(mark), seconds=60), reached, reason)
    assert stopped.value.reason is reason
    assert eventually(lambda: not is_alive(int(mark.read_text())))


def test_what_a_function_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    assert attempt(python("leave_a_child"), str(mark)) == "done"
    assert eventually(lambda: not is_alive(int(mark.read_text())))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent has died")
def test_a_function_dies_with_its_worker(tmp_path: Path) -> None:
    """Otherwise it would go on beside the attempt that follows."""
    mark = tmp_path / "pid"
    worker = f"""
import sys; sys.path[:0] = {[str(tmp_path), *sys.path]!r}
from tests.tasks.conftest import attempt
attempt({{"type": "python", "function": "example_tasks:spin"}}, {str(mark)!r}, seconds=60)
"""
    with subprocess.Popen([sys.executable, "-c", worker]) as process:
        assert eventually(lambda: mark.exists() and mark.read_text() != "")
        os.kill(process.pid, signal.SIGKILL)
    assert eventually(lambda: not is_alive(int(mark.read_text())))


def test_a_function_that_is_not_listed_is_not_called() -> None:
    with pytest.raises(ForbiddenTarget, match="os:getcwd is not listed"):
        attempt({"type": "python", "function": "os:getcwd"})


def test_a_large_result_is_returned() -> None:
    assert len(perform(a_context(python("large")))) == 100_000
