"""The kinds of task, really performed: requests to a listener on loopback, functions in processes of their own."""

import json
import socket
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from duetime.errors import PermanentFailure, TransientFailure
from duetime.targets import AllowedTargets, ForbiddenTarget
from duetime.tasks import AttemptContext, executor
from duetime.tasks.http import RESPONSE_LIMIT_BYTES

from tests.factories import NOW
from tests.listener import Answer, listening

ALLOWED = AllowedTargets.from_block(
    {"http_private_addresses": ["127.0.0.0/8"], "python": ["example_tasks:*"]}
)
EXAMPLE_TASKS = """
import os, sys, time
from duetime.errors import PermanentFailure

def echo(payload, duetime): print("noise"); os.system("echo more noise"); return [payload, duetime["fence"]]
def give_up(payload, duetime): raise PermanentFailure("no such account")
def stumble(payload, duetime): raise RuntimeError("try again")
def crash(payload, duetime): os._exit(3)
def vanish(payload, duetime): os.close(1); os.kill(os.getpid(), 9)
def never_end(payload, duetime): time.sleep(600)
def unkeepable(payload, duetime): return {1, 2}
def huge(payload, duetime): return "x" * 100_000
"""


def attempt(task: dict[str, Any], payload: Any = None, timeout_seconds: int = 5) -> Any:
    context = AttemptContext(
        job_id="j",
        run_id="r",
        task=task,
        payload=payload,
        attempt=2,
        due_at=NOW,
        fence=7,
        timeout_seconds=timeout_seconds,
    )
    return executor(ALLOWED)(context)


@pytest.fixture
def call_python(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    (tmp_path / "example_tasks.py").write_text(EXAMPLE_TASKS)
    monkeypatch.syspath_prepend(str(tmp_path))
    return lambda name, *args: attempt({"type": "python", "function": f"example_tasks:{name}"}, *args)


def test_http_sends_the_payload_as_json_with_what_every_attempt_receives() -> None:
    with listening() as listener:
        result = attempt(
            {"type": "http", "url": f"{listener.url}/pay?x=1", "headers": {"X-Team": "pay"}}, {"batch": "eu"}
        )
    request = listener.received[0]
    assert result == {"status_code": 200, "body": "ok"}
    assert (request.method, request.path, json.loads(request.body)) == ("POST", "/pay?x=1", {"batch": "eu"})
    expected = {
        "Idempotency-Key": "r",
        "Duetime-Attempt": "2",
        "Duetime-Due-At": "2026-11-18T07:00:00.123Z",
        "Duetime-Fence": "7",
        "X-Team": "pay",
        "Content-Type": "application/json",
        "Host": listener.url.removeprefix("http://"),
    }
    assert expected.items() <= request.headers.items()


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_http_reads_without_a_body(method: str) -> None:
    with listening() as listener:
        attempt({"type": "http", "url": listener.url, "method": method}, {"batch": "eu"})
    assert (listener.received[0].method, listener.received[0].path, listener.received[0].body) == (
        method,
        "/",
        b"",
    )


def test_http_sends_its_own_body_instead_of_the_payload() -> None:
    with listening() as listener:
        attempt({"type": "http", "url": listener.url, "method": "PUT", "body": [1]}, {"batch": "eu"})
    assert listener.received[0].body == b"[1]"


@pytest.mark.parametrize("status", [400, 401, 404, 409, 301])
def test_an_answer_that_would_be_the_same_again_is_a_permanent_failure(status: int) -> None:
    with listening(lambda _: Answer(status, b"no such account")) as listener:
        with pytest.raises(PermanentFailure, match=f"answered {status}: no such account"):
            attempt({"type": "http", "url": listener.url})
        assert len(listener.received) == 1


@pytest.mark.parametrize("status", [408, 425, 429, 500, 503])
def test_an_answer_that_says_not_now_is_a_transient_failure(status: int) -> None:
    with (
        listening(lambda _: Answer(status)) as listener,
        pytest.raises(TransientFailure, match=f"answered {status}"),
    ):
        attempt({"type": "http", "url": listener.url})


@pytest.mark.parametrize(("value", "delay"), [("30", timedelta(seconds=30)), ("soon", None)])
def test_a_retry_after_is_passed_on(value: str, delay: timedelta | None) -> None:
    with listening(lambda _: Answer(503, headers={"Retry-After": value})) as listener:
        with pytest.raises(TransientFailure) as caught:
            attempt({"type": "http", "url": listener.url})
    assert caught.value.retry_after == delay


def test_a_closed_port_is_a_transient_failure() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with pytest.raises(TransientFailure):
        attempt({"type": "http", "url": f"http://127.0.0.1:{port}/"})


def test_a_target_that_never_answers_is_a_transient_failure() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(TransientFailure, match="timed out"):
            attempt({"type": "http", "url": f"http://127.0.0.1:{silent.getsockname()[1]}/"}, None, 1)


def test_an_answer_without_end_is_cut_off() -> None:
    with listening(lambda _: Answer(200, b"x" * (RESPONSE_LIMIT_BYTES + 20_000))) as listener:
        with pytest.raises(PermanentFailure, match="larger than"):
            attempt({"type": "http", "url": listener.url})


def test_a_name_that_leads_to_a_private_address_is_refused_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.7", 80))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answer)
    with pytest.raises(ForbiddenTarget, match=r"rebind\.example\.com resolves to 10\.0\.0\.7"):
        attempt({"type": "http", "url": "http://rebind.example.com/"})


def test_a_name_that_does_not_resolve_is_a_transient_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise socket.gaierror("unknown")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(TransientFailure, match="could not be resolved"):
        attempt({"type": "http", "url": "http://nowhere.example.com/"})


def test_python_returns_what_the_function_returns_whatever_it_prints(call_python: Callable[..., Any]) -> None:
    assert call_python("echo", {"a": 1.0}) == [{"a": 1.0}, 7]


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
    ],
)
def test_python_tells_failures_apart(
    name: str, error: type[Exception], message: str, call_python: Callable[..., Any]
) -> None:
    with pytest.raises(error, match=message):
        call_python(name)


def test_a_python_function_that_does_not_end_is_stopped(call_python: Callable[..., Any]) -> None:
    with pytest.raises(TransientFailure, match="did not end within 1 s and was stopped"):
        call_python("never_end", None, 1)


def test_a_python_function_that_is_not_listed_is_not_called() -> None:
    with pytest.raises(ForbiddenTarget, match="os:getcwd is not listed"):
        attempt({"type": "python", "function": "os:getcwd"})
