"""A webhook has its seconds and no more, whatever its receiver does with them."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_network
from typing import Any

import pytest
from duetime.errors import TransientFailure
from duetime.targets import Reach, Rule
from duetime.webhooks import post, signed_request

from tests.factories import NOW, OWNER
from tests.listener import listening

REACH = Reach(OWNER, (Rule(http_private_networks=(ip_network("127.0.0.0/8"),)),))
SECONDS = 0.3


@contextmanager
def dripping(pause: float, drops: int) -> Iterator[str]:
    """Answers well, but a byte at a time: each in time for a timeout that begins anew with every byte."""
    over = threading.Event()
    server = socket.create_server(("127.0.0.1", 0))
    # Should nobody come, the test fails and does not hang.
    server.settimeout(5)

    def serve() -> None:
        connection, _ = server.accept()
        connection.settimeout(5)
        with connection:
            connection.recv(65536)
            try:
                connection.sendall(b"HTTP/1.1 200 OK\r\nX-A: ")
                for _ in range(drops):
                    connection.sendall(b"a")
                    over.wait(pause)
                connection.sendall(b"\r\nContent-Length: 0\r\n\r\n")
            except OSError:
                """The other side has had enough."""

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
    finally:
        over.set()
        server.close()


def send(url: str) -> None:
    post(signed_request(url, "id-1", {"type": "failed"}, b"k" * 32, NOW), REACH, seconds=SECONDS)


def test_a_receiver_that_drips_its_answer_is_hung_up_on() -> None:
    """Were it waited for, it would have been told well in the end."""
    with dripping(pause=0.1, drops=30) as url, pytest.raises(TransientFailure, match="took too long"):
        send(url)


def test_nothing_is_sent_once_the_time_is_up_while_a_name_is_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = socket.getaddrinfo
    stopped = threading.Event()

    def slow(*args: Any, **kwargs: Any) -> Any:
        stopped.wait(3 * SECONDS)
        return real(*args, **kwargs)

    with listening() as receiver:
        monkeypatch.setattr(socket, "getaddrinfo", slow)
        with pytest.raises(TransientFailure, match="took too long"):
            send(receiver.url)
    assert receiver.received == []


def test_no_timer_outlives_its_request() -> None:
    before = set(threading.enumerate())
    with listening() as receiver:
        send(receiver.url)
        timers = [
            thread for thread in set(threading.enumerate()) - before if isinstance(thread, threading.Timer)
        ]
        for timer in timers:
            timer.join()
            assert timer.finished.is_set()
    assert len(receiver.received) == 1
