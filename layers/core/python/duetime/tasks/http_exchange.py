"""One request over a connection to an address that was checked.

http.client and not a library above it: the connection must go to the very address that was resolved and checked, and
whoever stops the attempt must be able to shut its socket.
"""

import http.client
import socket
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Final
from urllib.parse import urlsplit

from duetime.errors import TransientFailure
from duetime.stopping import StopSignal
from duetime.targets import Reach

RESPONSE_LIMIT_BYTES: Final = 1024 * 1024
_CHUNK: Final = 16 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: Mapping[str, str]
    body: bytes
    # There was more than is kept.
    is_cut: bool


def exchange(request: Request, reach: Reach, *, seconds: float, stop: StopSignal) -> Response:
    """Raises TransientFailure when the network or the other side fails, or time is up."""
    wire = _Wire(time.monotonic() + seconds)
    try:
        with stop.interrupting(wire.shut):
            try:
                return _over(wire, request, reach)
            finally:
                wire.close()
    except (OSError, http.client.HTTPException) as error:
        reason = "it took too long" if isinstance(error, TimeoutError) else f"{type(error).__name__}: {error}"
        raise TransientFailure(f"{request.method} {shown(request.url)} failed: {reason}") from error


def shown(url: str) -> str:
    """Without its query, which may hold what is nobody else's business."""
    return url.partition("?")[0]


class _Wire:
    """A socket with a deadline, which another thread can shut."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._socket: socket.socket | None = None

    @property
    def seconds_left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def open(self, address: str, port: int, tls_name: str | None) -> socket.socket:
        self._socket = socket.create_connection((address, port), timeout=self.seconds_left)
        if tls_name is not None:
            # The handshake comes later, so that the wrapped socket, the one that lives on, can be shut during it.
            wrapped = _tls().wrap_socket(
                self._socket, server_hostname=tls_name, do_handshake_on_connect=False
            )
            self._socket = wrapped
            wrapped.settimeout(self.seconds_left)
            wrapped.do_handshake()
        return self._socket

    def hurry(self) -> None:
        """Each wait may last as long as is left of all: a socket's own timeout would start anew with every byte."""
        if self._socket:
            self._socket.settimeout(self.seconds_left)

    def shut(self) -> None:
        with suppress(OSError):
            if self._socket:
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        if self._socket:
            self._socket.close()


def _over(wire: _Wire, request: Request, reach: Reach) -> Response:
    parts = urlsplit(request.url)
    host, secure = parts.hostname or "", parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    address = _resolve(host, port)
    reach.check_address(host, address, port)
    connection = (http.client.HTTPSConnection if secure else http.client.HTTPConnection)(host, port)
    connection.sock = wire.open(address, port, host if secure else None)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    wire.hurry()
    connection.request(request.method, target, request.body, {**request.headers, "Connection": "close"})
    wire.hurry()
    answer = connection.getresponse()
    body, is_cut = _read(answer, wire)
    return Response(answer.status, dict(answer.getheaders()), body, is_cut)


def _read(answer: http.client.HTTPResponse, wire: _Wire) -> tuple[bytes, bool]:
    chunks: list[bytes] = []
    size = 0
    while size <= RESPONSE_LIMIT_BYTES:
        wire.hurry()
        chunk = answer.read1(_CHUNK)
        if not chunk:
            return b"".join(chunks), False
        chunks.append(chunk)
        size += len(chunk)
    return b"".join(chunks)[:RESPONSE_LIMIT_BYTES], True


def _resolve(host: str, port: int) -> str:
    """Once: a name that answers differently the second time (DNS rebinding) gains nothing."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise TransientFailure(f"{host} could not be resolved: {error}") from error
    # Lambda functions outside a VPC, and many inside one, have no way out over IPv6.
    preferred = sorted(found, key=lambda entry: entry[0] is not socket.AF_INET)
    return str(preferred[0][4][0])


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()
