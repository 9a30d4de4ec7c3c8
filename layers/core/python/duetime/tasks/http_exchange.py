"""One request over a connection to an address that was checked.

http.client and not a library above it: the connection must go to the very address that was resolved and checked, and
whoever stops the attempt must be able to shut its socket. What http.client takes for an answer though the other side
died in the middle of it, or we hung up ourselves, is none.
"""

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Final
from urllib.parse import urlsplit

from duetime.errors import TransientFailure
from duetime.stopping import StopReason, StopSignal
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
    # Found whatever their capitals.
    headers: http.client.HTTPMessage
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
        timed_out = isinstance(error, TimeoutError) or stop.reason is StopReason.TIMED_OUT
        reason = "it took too long" if timed_out else f"{type(error).__name__}: {error}"
        raise TransientFailure(f"{request.method} {shown(request.url)} failed: {reason}") from error


def shown(url: str) -> str:
    """Without its query, which may hold what is nobody else's business."""
    return url.partition("?")[0]


class _Wire:
    """A socket with a deadline, which another thread can shut: for good, and before there is one, too."""

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()
        self.is_shut = False

    @property
    def seconds_left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def open(self, address: str, port: int, tls_name: str | None) -> socket.socket:
        if self.is_shut:
            # While the name was looked up, which nothing can interrupt.
            raise ConnectionAbortedError("the attempt was stopped")
        plain = self._keep(socket.create_connection((address, port), timeout=self.seconds_left))
        if tls_name is None:
            return plain
        # The handshake comes later, so that the wrapped socket, the one that lives on, can be shut during it.
        wrapped = _tls().wrap_socket(plain, server_hostname=tls_name, do_handshake_on_connect=False)
        self._keep(wrapped)
        wrapped.settimeout(self.seconds_left)
        wrapped.do_handshake()
        return wrapped

    def _keep(self, opened: socket.socket) -> socket.socket:
        """From here on it can be shut. If somebody wanted that while it was being opened, nothing is sent over it."""
        with self._lock:
            self._socket = opened
            if self.is_shut:
                raise ConnectionAbortedError("the attempt was stopped")
        return opened

    def hurry(self) -> None:
        """Each wait may last as long as is left of all: a socket's own timeout would start anew with every byte."""
        if self._socket:
            self._socket.settimeout(self.seconds_left)

    def shut(self) -> None:
        with self._lock, suppress(OSError):
            self.is_shut = True
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
    connection.response_class = _WholeHead
    connection.sock = wire.open(address, port, host if secure else None)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    wire.hurry()
    connection.request(request.method, target, request.body, {**request.headers, "Connection": "close"})
    wire.hurry()
    answer = connection.getresponse()
    body, is_cut = _read(answer, wire)
    return Response(answer.status, answer.headers, body, is_cut)


def _read(answer: http.client.HTTPResponse, wire: _Wire) -> tuple[bytes, bool]:
    chunks: list[bytes] = []
    size = 0
    while size <= RESPONSE_LIMIT_BYTES:
        wire.hurry()
        chunk = answer.read1(_CHUNK)
        if not chunk:
            _require_its_end(answer, wire)
            return b"".join(chunks), False
        chunks.append(chunk)
        size += len(chunk)
    return b"".join(chunks)[:RESPONSE_LIMIT_BYTES], True


def _require_its_end(answer: http.client.HTTPResponse, wire: _Wire) -> None:
    """A body of a known length that is shorter was cut off, and so may be one that ends with the connection, if we
    ended that. (One in chunks says itself where it ends.)"""
    if answer.length:
        raise http.client.IncompleteRead(b"", answer.length)
    if answer.length is None and not answer.chunked and wire.is_shut:
        raise ConnectionAbortedError("the attempt was stopped")


class _WholeHead(http.client.HTTPResponse):
    """To http.client, headers that break off have ended, and a body whose length was to follow is empty."""

    def begin(self) -> None:
        whole: Any = self.fp
        lines: Any = _WholeLines(whole)
        self.fp = lines
        super().begin()
        if self.fp is lines:
            self.fp = whole


class _WholeLines:
    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._has_begun = False
        self.close, self.flush = stream.close, stream.flush

    def readline(self, limit: int) -> bytes:
        line: bytes = self._stream.readline(limit)
        # No answer at all is told apart by http.client itself, and so is a line without end.
        if (line or self._has_begun) and not line.endswith(b"\n") and len(line) < limit:
            raise http.client.IncompleteRead(line)
        self._has_begun = True
        return line


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
