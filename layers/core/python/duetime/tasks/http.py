"""The `http` task: one request to a URL. A 2xx answer is success."""

import json
import re
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

# urllib3 comes with the runtime's botocore: it costs no cold start of its own.
import urllib3
from urllib3.exceptions import HTTPError

from duetime.errors import InvalidField, PermanentFailure, TransientFailure
from duetime.targets import AllowedTargets
from duetime.tasks.attempt import AttemptContext, refuse_unknown

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
BODY_KEPT_BYTES: Final = 4 * 1024
RESPONSE_LIMIT_BYTES: Final = 1024 * 1024

# Besides 5xx, the answers that say "not now": a request timeout, too early, too many requests.
_TRANSIENT_STATUSES: Final = frozenset({408, 425, 429})
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}")
_HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e]{0,4096}")
# What frames the request, and what Duetime itself says with every attempt.
_RESERVED_HEADERS: Final = re.compile(
    r"host|connection|content-length|transfer-encoding|te|trailer|upgrade|expect|idempotency-key|duetime-.*",
    re.I,
)


@dataclass(frozen=True, slots=True)
class HttpTask:
    url: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None

    @classmethod
    def parse(cls, settings: Mapping[str, Any]) -> "HttpTask":
        refuse_unknown(settings, {"url", "method", "headers", "body"})
        method = settings.get("method", "POST")
        if method not in METHODS:
            raise InvalidField("task.method", f"must be one of {', '.join(METHODS)}")
        return cls(
            _url(settings.get("url")), method, _headers(settings.get("headers", {})), settings.get("body")
        )

    def check(self, allowed: AllowedTargets) -> None:
        """A name is resolved when the run starts, and what it means then is checked then. An address is an address."""
        host = urlsplit(self.url).hostname or ""
        try:
            ip_address(host)
        except ValueError:
            return
        allowed.check_address(host, host)

    def execute(self, context: AttemptContext, allowed: AllowedTargets) -> Any:
        deadline = time.monotonic() + context.timeout_seconds
        try:
            with _open(self.url, allowed, context.timeout_seconds) as pool:
                response = self._request(pool, context)
                text = _read(response, deadline)
        except HTTPError as error:
            raise TransientFailure(f"{self.method} {self.url} failed: {error}") from error
        return _judge(response, text)

    def _request(self, pool: urllib3.HTTPConnectionPool, context: AttemptContext) -> urllib3.BaseHTTPResponse:
        body = context.payload if self.body is None else self.body
        parts = urlsplit(self.url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        sends_body = body is not None and self.method not in ("GET", "HEAD")
        return pool.urlopen(
            self.method,
            target,
            body=json.dumps(body).encode() if sends_body else None,
            headers={"User-Agent": "duetime", "Host": parts.netloc.rpartition("@")[2]}
            | ({"Content-Type": "application/json"} if sends_body else {})
            | dict(self.headers)
            | context.as_headers(),
            redirect=False,
            retries=False,
            preload_content=False,
            decode_content=False,
        )


def _open(url: str, allowed: AllowedTargets, timeout_seconds: float) -> urllib3.HTTPConnectionPool:
    """Resolve once, check, and connect to the address that was checked: a name that answers differently the second
    time (DNS rebinding) gains nothing."""
    parts = urlsplit(url)
    host, secure = parts.hostname or "", parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    address = _resolve(host, port)
    allowed.check_address(host, address)
    timeout = urllib3.Timeout(total=timeout_seconds)
    if secure:
        return urllib3.HTTPSConnectionPool(
            address, port, timeout=timeout, maxsize=1, server_hostname=host, assert_hostname=host
        )
    return urllib3.HTTPConnectionPool(address, port, timeout=timeout, maxsize=1)


def _resolve(host: str, port: int) -> str:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise TransientFailure(f"{host} could not be resolved: {error}") from error
    # Lambda functions outside a VPC, and many inside one, have no way out over IPv6.
    preferred = sorted(found, key=lambda entry: entry[0] is not socket.AF_INET)
    return str(preferred[0][4][0])


def _read(response: urllib3.BaseHTTPResponse, deadline: float) -> str:
    """Bounded in bytes and in time. A socket timeout alone would let a server drip one byte a second for ever."""
    chunks: list[bytes] = []
    size = 0
    while chunk := response.read1(16 * 1024):
        size += len(chunk)
        chunks.append(chunk)
        if time.monotonic() > deadline:
            raise TransientFailure("the answer was not complete when the attempt's time was up")
        if size > RESPONSE_LIMIT_BYTES:
            raise PermanentFailure(f"the answer is larger than {RESPONSE_LIMIT_BYTES} bytes")
    return b"".join(chunks)[:BODY_KEPT_BYTES].decode("utf-8", "replace")


def _judge(response: urllib3.BaseHTTPResponse, text: str) -> dict[str, Any]:
    if 200 <= response.status < 300:
        return {"status_code": response.status, "body": text}
    message = f"the target answered {response.status}: {text[:500]}"
    if response.status >= 500 or response.status in _TRANSIENT_STATUSES:
        raise TransientFailure(message, retry_after=_retry_after(response.headers.get("Retry-After")))
    raise PermanentFailure(message)


def _retry_after(value: str | None) -> timedelta | None:
    return timedelta(seconds=int(value)) if value and re.fullmatch(r"\d{1,6}", value) else None


def _url(url: Any) -> str:
    if not isinstance(url, str) or not 1 <= len(url) <= 2048:
        raise InvalidField("task.url", "must be a URL of at most 2,048 characters")
    if re.search(r"[^\x21-\x7e]", url):
        raise InvalidField(
            "task.url", "must not contain spaces, control characters or characters outside ASCII"
        )
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidField("task.url", f"is not a URL: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise InvalidField("task.url", "must be an http or https URL with a host")
    if "@" in parts.netloc:
        raise InvalidField("task.url", "must not contain a user name or password: put credentials in headers")
    return url


def _headers(headers: Any) -> Mapping[str, str]:
    if not isinstance(headers, Mapping) or len(headers) > 50:
        raise InvalidField("task.headers", "must be an object of at most 50 headers")
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise InvalidField("task.headers", f"{name!r} is not the name of a header")
        if _RESERVED_HEADERS.fullmatch(name):
            raise InvalidField(f"task.headers.{name}", "is set by Duetime and cannot be chosen")
        if not isinstance(value, str) or not _HEADER_VALUE.fullmatch(value):
            raise InvalidField(f"task.headers.{name}", "must be printable text of at most 4,096 characters")
    return headers
