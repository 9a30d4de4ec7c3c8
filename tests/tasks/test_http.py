import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from email.utils import format_datetime
from typing import Any
from unittest.mock import patch

import pytest
from duetime import supervision
from duetime.clock import SystemClock
from duetime.errors import PermanentFailure, TransientFailure
from duetime.stopping import Stopped, StopReason
from duetime.tasks import Accepted, http_exchange
from duetime.tasks import http as http_task
from duetime.tasks.http import BODY_KEPT_BYTES
from duetime.tasks.http_exchange import RESPONSE_LIMIT_BYTES

from tests.listener import Answer, Received, listening
from tests.tasks.conftest import a_context, attempt, attempt_and_stop, perform


def http(url: str, **settings: Any) -> dict[str, Any]:
    return {"type": "http", "url": url, **settings}


class TestTheRequest:
    def test_it_sends_the_payload_as_json_with_what_every_attempt_receives(self) -> None:
        with listening() as listener:
            context = a_context(
                http(f"{listener.url}/pay?x=1", headers={"X-Team": "pay"}),
                {"batch": "eu"},
                checkpoint={"done": 3},
                callback_token="token",
            )
            result = perform(context)
        request = listener.received[0]
        assert result == {"status_code": 200, "body": "ok"}
        assert (request.method, request.path) == ("POST", "/pay?x=1")
        assert json.loads(request.body) == {"batch": "eu"}
        expected = {
            "Idempotency-Key": context.run_id,
            "Duetime-Job-Id": context.job_id,
            "Duetime-Attempt": "2",
            "Duetime-Due-At": "2026-11-18T07:00:00.123Z",
            "Duetime-Fence": "7",
            "Duetime-Checkpoint": '{"done":3}',
            "Duetime-Callback-Token": "token",
            "X-Team": "pay",
            "Content-Type": "application/json",
            "Host": listener.url.removeprefix("http://"),
        }
        assert expected.items() <= request.headers.items()
        assert "Duetime-Deadline" in request.headers

    @pytest.mark.parametrize("method", ["GET", "HEAD"])
    def test_it_reads_without_a_body(self, method: str) -> None:
        with listening() as listener:
            attempt(http(listener.url, method=method), {"batch": "eu"})
        request = listener.received[0]
        assert (request.method, request.path, request.body) == (method, "/", b"")

    def test_it_sends_its_own_body_instead_of_the_payload(self) -> None:
        with listening() as listener:
            attempt(http(listener.url, method="PUT", body=[1]), {"batch": "eu"})
        assert listener.received[0].body == b"[1]"

    def test_a_header_of_the_task_replaces_a_default_one(self) -> None:
        with listening() as listener:
            attempt(http(listener.url, headers={"content-type": "text/x", "user-agent": "me"}), "x")
        headers = {name.lower(): value for name, value in listener.received[0].headers.items()}
        assert (headers["content-type"], headers["user-agent"]) == ("text/x", "me")


class TestTheAnswer:
    @pytest.mark.parametrize("status", [400, 401, 404, 409, 301])
    def test_one_that_would_be_the_same_again_is_a_permanent_failure(self, status: int) -> None:
        with listening(lambda _: Answer(status, b"no such account")) as listener:
            with pytest.raises(PermanentFailure, match=f"answered {status}: no such account"):
                attempt(http(listener.url))
            assert len(listener.received) == 1

    @pytest.mark.parametrize("status", [408, 425, 429, 500, 503])
    def test_one_that_says_not_now_is_a_transient_failure(self, status: int) -> None:
        with listening(lambda _: Answer(status)) as listener:
            with pytest.raises(TransientFailure, match=f"answered {status}"):
                attempt(http(listener.url))

    @pytest.mark.parametrize(("value", "delay"), [("30", timedelta(seconds=30)), ("soon", None)])
    def test_a_retry_after_is_passed_on(self, value: str, delay: timedelta | None) -> None:
        with listening(lambda _: Answer(503, headers={"Retry-After": value})) as listener:
            with pytest.raises(TransientFailure) as caught:
                attempt(http(listener.url))
        assert caught.value.retry_after == delay

    def test_a_retry_after_may_be_a_date(self) -> None:
        then = format_datetime(SystemClock().now() + timedelta(minutes=5), usegmt=True)
        with listening(lambda _: Answer(429, headers={"Retry-After": then})) as listener:
            with pytest.raises(TransientFailure) as caught:
                attempt(http(listener.url))
        assert caught.value.retry_after is not None
        assert timedelta(minutes=4) < caught.value.retry_after <= timedelta(minutes=5)

    @pytest.mark.parametrize("expected", [[404], ["4xx"], ["200", 404]])
    def test_the_owner_says_which_statuses_are_expected(self, expected: list[Any]) -> None:
        with listening(lambda _: Answer(404, b"gone already")) as listener:
            result = attempt(http(listener.url, expected_statuses=expected))
        assert result == {"status_code": 404, "body": "gone already"}

    def test_a_success_that_is_not_expected_is_a_failure(self) -> None:
        with listening() as listener, pytest.raises(PermanentFailure, match="answered 200"):
            attempt(http(listener.url, expected_statuses=[201]))

    def test_a_long_answer_is_kept_in_part(self) -> None:
        with listening(lambda _: Answer(200, b"x" * (BODY_KEPT_BYTES + 1))) as listener:
            result = attempt(http(listener.url))
        assert (len(result["body"]), result["is_cut"]) == (BODY_KEPT_BYTES, True)

    def test_an_answer_without_end_is_cut_off_and_what_was_done_is_done(self) -> None:
        with listening(lambda _: Answer(200, b"x" * (RESPONSE_LIMIT_BYTES + 200_000))) as listener:
            assert attempt(http(listener.url))["is_cut"] is True

    def test_accepted_means_that_the_work_goes_on_if_the_task_said_so(self) -> None:
        with listening(lambda _: Answer(202)) as listener:
            task = http(listener.url, callback={"heartbeat_seconds": 60})
            assert attempt(task) == Accepted(timedelta(seconds=60))
            assert attempt(http(listener.url))["status_code"] == 202


@contextmanager
def answering(*pieces: bytes, then: threading.Event | None = None) -> Iterator[str]:
    """A server that sends these bytes to each request, waits for the event if there is one, and hangs up."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(b"".join(pieces))
                    if then:
                        then.wait(10)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        server.shutdown(socket.SHUT_RDWR)


class TestAnAnswerThatBreaksOff:
    @pytest.mark.parametrize(
        "answer",
        [
            b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\npart",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Le",
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n",
            b"HTTP/1.1 200",
            b"",
        ],
    )
    def test_it_is_a_transient_failure(self, answer: bytes) -> None:
        with answering(answer) as url, pytest.raises(TransientFailure):
            attempt(http(url))

    @pytest.mark.parametrize(
        "answer",
        [
            b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npart",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n0\r\n\r\n",
            b"HTTP/1.0 200 OK\r\n\r\npart",
        ],
    )
    def test_a_whole_one_is_none(self, answer: bytes) -> None:
        with answering(answer) as url:
            assert attempt(http(url))["body"] == "part"

    @pytest.mark.parametrize(
        "length", [b"Content-Length: 1000000\r\n", b"", b"Transfer-Encoding: chunked\r\n"]
    )
    def test_nor_is_one_that_we_broke_off_ourselves_a_success(self, length: bytes) -> None:
        hang = threading.Event()
        with answering(b"HTTP/1.1 200 OK\r\n" + length + b"\r\n4\r\npart\r\n", then=hang) as url:
            context = a_context(http(url), seconds=30)
            reading = threading.Event()
            with patch.object(http_exchange, "_read", side_effect=_telling(reading, http_exchange._read)):
                with pytest.raises(Stopped):
                    attempt_and_stop(context, reading, StopReason.TIMED_OUT)
            hang.set()


def _telling(event: threading.Event, do: Callable[..., Any]) -> Callable[..., Any]:
    def tell_and_do(*arguments: Any) -> Any:
        event.set()
        return do(*arguments)

    return tell_and_do


class TestHeadersWhateverTheirCapitals:
    @pytest.mark.parametrize("name", ["retry-after", "RETRY-AFTER", "Retry-After"])
    def test_a_delay_is_heeded(self, name: str) -> None:
        with answering(f"HTTP/1.1 429 Busy\r\n{name}: 120\r\ncontent-length: 0\r\n\r\n".encode()) as url:
            with pytest.raises(TransientFailure) as busy:
                attempt(http(url))
        assert busy.value.retry_after == timedelta(seconds=120)

    def test_a_redirect_is_followed(self) -> None:
        with listening() as end:
            with answering(f"HTTP/1.1 302 Found\r\nlocation: {end.url}/\r\n\r\n".encode()) as url:
                assert attempt(http(url, redirects="follow"))["status_code"] == 200


class TestTheNetwork:
    def test_a_closed_port_is_a_transient_failure(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
        with pytest.raises(TransientFailure, match="ConnectionRefusedError"):
            attempt(http(f"http://127.0.0.1:{port}/"))

    def test_a_target_that_never_answers_is_a_transient_failure(self) -> None:
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            with pytest.raises(TransientFailure, match="took too long"):
                attempt(http(f"http://127.0.0.1:{silent.getsockname()[1]}/"), seconds=0.3)

    def test_a_target_that_drips_is_cut_off_when_time_is_up(self) -> None:
        with socket.socket() as dripping:
            dripping.bind(("127.0.0.1", 0))
            dripping.listen()
            url = f"http://127.0.0.1:{dripping.getsockname()[1]}/"
            stop = threading.Event()

            def drip() -> None:
                connection, _ = dripping.accept()
                with connection:
                    connection.recv(4096)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
                    while not stop.wait(0.05):
                        try:
                            connection.sendall(b"x")
                        except OSError:
                            return

            thread = threading.Thread(target=drip)
            thread.start()
            try:
                with pytest.raises(TransientFailure, match="took too long"):
                    attempt(http(url), seconds=0.4)
            finally:
                stop.set()
                thread.join()

    def test_something_that_is_not_http_is_a_transient_failure(self) -> None:
        with socket.socket() as odd:
            odd.bind(("127.0.0.1", 0))
            odd.listen()

            def answer() -> None:
                connection, _ = odd.accept()
                with connection:
                    connection.recv(4096)
                    connection.sendall(b"SSH-2.0-nothing\r\n")

            thread = threading.Thread(target=answer)
            thread.start()
            with pytest.raises(TransientFailure, match="BadStatusLine"):
                attempt(http(f"http://127.0.0.1:{odd.getsockname()[1]}/"))
            thread.join()

    def test_a_certificate_that_is_not_the_hosts_is_refused(self) -> None:
        with listening() as listener:
            with pytest.raises(TransientFailure, match="SSL"):
                attempt(http(listener.url.replace("http:", "https:")), seconds=2)

    def test_a_name_that_does_not_resolve_is_a_transient_failure(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: Any, **__: Any) -> Any:
            raise socket.gaierror("unknown")

        monkeypatch.setattr(socket, "getaddrinfo", fail)
        with pytest.raises(TransientFailure, match="could not be resolved"):
            attempt(http("http://nowhere.example.com/"))


class TestStopping:
    @pytest.mark.parametrize("reason", [StopReason.CANCELLED, StopReason.TIMED_OUT, StopReason.LEASE_LOST])
    def test_a_request_under_way_is_really_broken_off(self, reason: StopReason) -> None:
        reached, hung_up = threading.Event(), threading.Event()
        with socket.socket() as slow:
            slow.bind(("127.0.0.1", 0))
            slow.listen()

            def wait_for_the_end() -> None:
                connection, _ = slow.accept()
                with connection:
                    connection.recv(4096)
                    reached.set()
                    connection.settimeout(10)
                    if connection.recv(1) == b"":
                        hung_up.set()

            thread = threading.Thread(target=wait_for_the_end)
            thread.start()
            context = a_context(http(f"http://127.0.0.1:{slow.getsockname()[1]}/"), seconds=30)
            with pytest.raises(Stopped) as stopped:
                attempt_and_stop(context, reached, reason)
            thread.join()
        assert stopped.value.reason is reason
        assert hung_up.is_set()

    @pytest.mark.parametrize("during", ["getaddrinfo", "create_connection"])
    def test_a_request_that_was_stopped_before_it_was_sent_is_never_sent(
        self, monkeypatch: pytest.MonkeyPatch, during: str
    ) -> None:
        """It was left behind while a name was looked up, or a connection made; by then its run may be another's."""
        reached, go_on, ended = threading.Event(), threading.Event(), threading.Event()
        monkeypatch.setattr(supervision, "GRACE_SECONDS", 0.01)
        do, exchange = getattr(socket, during), http_exchange.exchange

        def slow(*arguments: Any, **options: Any) -> Any:
            reached.set()
            assert go_on.wait(10)
            return do(*arguments, **options)

        def telling_of_its_end(*arguments: Any, **options: Any) -> Any:
            try:
                return exchange(*arguments, **options)
            finally:
                ended.set()

        monkeypatch.setattr(http_task, "exchange", telling_of_its_end)
        with listening() as listener:
            monkeypatch.setattr(socket, during, slow)
            with pytest.raises(Stopped):
                attempt_and_stop(
                    a_context(http(f"{listener.url}/pay"), seconds=30), reached, StopReason.CANCELLED
                )
            go_on.set()
            assert ended.wait(10)
            assert listener.received == []

    def test_an_answer_that_came_in_time_counts(self) -> None:
        with listening() as listener:
            context = a_context(http(listener.url))
            result = perform(context)
            context.stop.give(StopReason.CANCELLED)
        assert result["status_code"] == 200


class TestRedirects:
    def redirecting(self, status: int, location: str) -> Any:
        def respond(request: Received) -> Answer:
            if request.path == "/end":
                return Answer(200, request.method.encode() + b" " + request.body)
            return Answer(status, headers={"Location": location})

        return respond

    def test_they_are_refused_unless_the_task_follows_them(self) -> None:
        with listening(self.redirecting(302, "/end")) as listener:
            with pytest.raises(PermanentFailure, match="answered 302"):
                attempt(http(listener.url))
            assert len(listener.received) == 1

    @pytest.mark.parametrize(
        ("status", "body"),
        [(301, "GET "), (302, "GET "), (303, "GET "), (307, 'POST "x"'), (308, 'POST "x"')],
    )
    def test_a_redirect_is_followed_as_its_status_says(self, status: int, body: str) -> None:
        with listening(self.redirecting(status, "/end")) as listener:
            assert attempt(http(listener.url, redirects="follow"), "x")["body"] == body

    def test_a_circle_is_given_up(self) -> None:
        with listening(self.redirecting(307, "/again")) as listener:
            with pytest.raises(PermanentFailure, match="more than 5 times"):
                attempt(http(listener.url, redirects="follow"))

    def test_another_host_is_told_no_secrets(self) -> None:
        with listening() as other:
            with listening(self.redirecting(307, f"{other.url}/end")) as first:
                task = http(
                    first.url, redirects="follow", headers={"Authorization": "Bearer x", "X-Team": "a"}
                )
                attempt(task, callback_token="token")
            headers = other.received[0].headers
        assert "Authorization" in first.received[0].headers
        assert headers["X-Team"] == "a"
        assert not {"Authorization", "Duetime-Callback-Token"} & set(headers)


class TestSecrets:
    SECRET = 'p4ss"word/with spices+'

    @pytest.fixture
    def arn(self, aws: Any) -> str:
        created = aws("secretsmanager").create_secret(
            Name="demo-token", SecretString=json.dumps({"token": self.SECRET})
        )
        return str(created["ARN"])

    def test_a_header_can_refer_to_a_secret(self, arn: str) -> None:
        with listening() as listener:
            headers = {"Authorization": {"secret": arn, "key": "token", "prefix": "Bearer "}}
            attempt(http(listener.url, headers=headers))
        assert listener.received[0].headers["Authorization"] == f"Bearer {self.SECRET}"

    def test_a_header_can_refer_to_a_parameter(self, aws: Any) -> None:
        aws("ssm").put_parameter(Name="demo-token", Value="s3cr3t-value", Type="SecureString")
        arn = "arn:aws:ssm:us-east-1:123456789012:parameter/demo-token"
        with listening() as listener:
            attempt(http(listener.url, headers={"X-Key": {"secret": arn}}))
        assert listener.received[0].headers["X-Key"] == "s3cr3t-value"

    def test_a_secret_never_appears_in_what_is_kept(self, arn: str) -> None:
        def echo(request: Received) -> Answer:
            told = request.headers["X-Key"]
            return Answer(400, json.dumps({"you sent": told}).encode() + told.encode())

        with listening(echo) as listener:
            context = a_context(http(listener.url, headers={"X-Key": {"secret": arn, "key": "token"}}))
            with pytest.raises(PermanentFailure) as failure:
                perform(context)
        assert "p4ss" not in str(failure.value)
        assert str(failure.value).count("[secret]") == 2

    @pytest.mark.parametrize("status", [200, 400])
    @pytest.mark.parametrize("kept", [500, BODY_KEPT_BYTES, RESPONSE_LIMIT_BYTES])
    def test_nor_does_a_piece_of_it_where_an_answer_is_cut(self, arn: str, status: int, kept: int) -> None:
        def echo(request: Received) -> Answer:
            return Answer(status, b"x" * (kept - 8) + request.headers["X-Key"].encode() * 3)

        with listening(echo) as listener:
            context = a_context(http(listener.url, headers={"X-Key": {"secret": arn, "key": "token"}}))
            try:
                text = perform(context)["body"]
            except PermanentFailure as failure:
                text = str(failure)
        assert "p4ss" not in text

    def test_nor_in_an_answer_of_nothing_but_secrets(self, arn: str) -> None:
        """Struck out, it is short enough to be kept whole, its torn end too."""

        def echo(request: Received) -> Answer:
            return Answer(200, request.headers["X-Key"].encode() * (RESPONSE_LIMIT_BYTES // 20))

        with listening(echo) as listener:
            context = a_context(http(listener.url, headers={"X-Key": {"secret": arn, "key": "token"}}))
            assert set(perform(context)["body"].split("[secret]")) <= {"", "[secret", "[secre", "["}

    @pytest.mark.parametrize(
        ("reference", "message"),
        [
            ({"key": "other"}, "has no value 'other'"),
            ({}, "characters that a header cannot have"),
        ],
    )
    def test_a_secret_that_cannot_be_used_is_a_permanent_failure(
        self, aws: Any, reference: dict[str, str], message: str
    ) -> None:
        arn = aws("secretsmanager").create_secret(Name="demo-odd", SecretString='{"a": "line\\nbreak"}\n')[
            "ARN"
        ]
        with listening() as listener, pytest.raises(PermanentFailure, match=message):
            attempt(http(listener.url, headers={"X-Key": {"secret": arn, **reference}}))

    @pytest.mark.usefixtures("aws")
    def test_a_secret_that_is_not_there_is_a_permanent_failure(self) -> None:
        arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:demo-missing"
        with listening() as listener, pytest.raises(PermanentFailure, match="ResourceNotFoundException"):
            attempt(http(listener.url, headers={"X-Key": {"secret": arn}}))

    def test_somebody_elses_secret_is_refused(self) -> None:
        arn = "arn:aws:secretsmanager:us-east-1:999999999999:secret:demo"
        with pytest.raises(PermanentFailure, match="is not listed for"):
            attempt(http("https://example.com/", headers={"X-Key": {"secret": arn}}))
