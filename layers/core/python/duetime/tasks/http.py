"""The `http` task: one request to a URL, and what its answer means."""

import email.utils
import json
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Any, ClassVar, Final
from urllib.parse import urljoin, urlsplit

from duetime import tracing
from duetime.errors import InvalidField, PermanentFailure, TransientFailure
from duetime.targets import Reach
from duetime.tasks.fields import parse_choice, parse_heartbeat, refuse_unknown
from duetime.tasks.http_exchange import Request, Response, exchange, shown
from duetime.tasks.interface import Accepted, AttemptContext
from duetime.tasks.secrets import SecretReference

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
BODY_KEPT_BYTES: Final = 64 * 1024
MOST_REDIRECTS: Final = 5
ACCEPTED: Final = 202

_SETTINGS: Final = frozenset(
    {"url", "method", "headers", "body", "expected_statuses", "redirects", "callback"}
)
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
# Besides 5xx, the answers that say "not now": a request timeout, too early, too many requests.
_TRANSIENT_STATUSES: Final = frozenset({408, 425, 429})
_HOST: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,252}[A-Za-z0-9.])?|\[[0-9A-Fa-f:.%A-Za-z]+\]")
_NUMERIC_HOST: Final = re.compile(r"(0[xX][0-9A-Fa-f]+|[0-9]+)(\.(0[xX][0-9A-Fa-f]+|[0-9]+)){0,3}\.?")
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}")
_HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e]{0,4096}")
# What frames the request, and what Duetime itself says with every attempt.
_RESERVED_HEADERS: Final = re.compile(
    r"host|connection|content-length|transfer-encoding|te|trailer|upgrade|expect|idempotency-key|duetime-.*",
    re.I,
)
# What is meant for the first address only.
_CONFIDENTIAL_HEADERS: Final = frozenset({"authorization", "cookie", "duetime-callback-token"})

HeaderValue = str | SecretReference


@dataclass(frozen=True, slots=True)
class HttpTask:
    url: str
    method: str = "POST"
    headers: Mapping[str, HeaderValue] = field(default_factory=dict)
    body: Any = None
    expected_statuses: tuple[str, ...] = ("2xx",)
    follows_redirects: bool = False
    heartbeat: timedelta | None = None

    TOKEN_SETTINGS: ClassVar[tuple[str, ...]] = ("callback",)

    @property
    def outlives_worker(self) -> bool:
        return self.heartbeat is not None

    @classmethod
    def wants_token(cls, settings: Mapping[str, Any]) -> bool:
        return settings.get("callback") is not None

    @classmethod
    def parse(cls, settings: Mapping[str, Any]) -> "HttpTask":
        refuse_unknown(settings, _SETTINGS)
        method = settings.get("method", "POST")
        if method not in METHODS:
            raise InvalidField("task.method", f"must be one of {', '.join(METHODS)}")
        return cls(
            url=_url(settings.get("url"), "task.url"),
            method=method,
            headers=_headers(settings.get("headers", {})),
            body=settings.get("body"),
            expected_statuses=_statuses(settings.get("expected_statuses", ["2xx"])),
            follows_redirects=parse_choice(settings, "redirects", ("refuse", "follow")) == "follow",
            heartbeat=_heartbeat(settings.get("callback")),
        )

    def check(self, reach: Reach) -> None:
        """A name is resolved when the run starts, and what it means then is checked then. An address is an address."""
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        if address := _literal_address(host):
            reach.check_address(host, address, parts.port or (443 if parts.scheme == "https" else 80))
        for value in self.headers.values():
            if isinstance(value, SecretReference):
                value.check(reach)

    def execute(self, context: AttemptContext, reach: Reach) -> Any:
        request = self._request(context, reach)
        for _ in range(MOST_REDIRECTS + 1):
            response = exchange(request, reach, seconds=context.seconds_left(), stop=context.stop)
            location = response.headers.get("Location")
            if not (self.follows_redirects and response.status in _REDIRECTS and location):
                return self._judge(response, context)
            request = self._redirected(request, response.status, location)
        raise PermanentFailure(f"the target redirected more than {MOST_REDIRECTS} times")

    def _request(self, context: AttemptContext, reach: Reach) -> Request:
        body = context.payload if self.body is None else self.body
        sends_body = body is not None and self.method not in ("GET", "HEAD")
        headers = {"User-Agent": "duetime", "Accept-Encoding": "identity"}
        if sends_body:
            headers["Content-Type"] = "application/json"
        own = {name: _resolved(value, context, reach) for name, value in self.headers.items()}
        # A header of the task's replaces one of these, whatever its capitals; what an attempt is told stays as it is.
        chosen = {name.lower() for name in own}
        headers = {name: value for name, value in headers.items() if name.lower() not in chosen}
        content = json.dumps(body).encode() if sends_body else None
        told = context.as_headers()
        if tracing.HEADER.lower() in chosen:
            # Not Duetime's own: whoever names a trace wants to be found under that.
            told.pop(tracing.HEADER, None)
        return Request(self.method, self.url, {**headers, **own, **told}, content)

    def _redirected(self, request: Request, status: int, location: str) -> Request:
        try:
            url = _url(urljoin(request.url, location), "the redirect")
        except InvalidField as error:
            raise PermanentFailure(error.message) from error
        old, new = urlsplit(request.url), urlsplit(url)
        if old.scheme == "https" and new.scheme != "https":
            raise PermanentFailure(f"the target redirected from https to {shown(url)}")
        headers = dict(request.headers)
        if (old.scheme, old.netloc) != (new.scheme, new.netloc):
            secret = {
                name.lower() for name, value in self.headers.items() if isinstance(value, SecretReference)
            }
            headers = {n: v for n, v in headers.items() if n.lower() not in _CONFIDENTIAL_HEADERS | secret}
        if status == 303 or (status in (301, 302) and request.method == "POST"):
            return Request("GET", url, {n: v for n, v in headers.items() if n != "Content-Type"}, None)
        return Request(request.method, url, headers, request.body)

    def _judge(self, response: Response, context: AttemptContext) -> Any:
        if response.status == ACCEPTED and self.heartbeat:
            return Accepted(self.heartbeat)
        # Secrets first: the piece of one that is left at a cut is not recognised any more.
        text = context.redactor.clean(response.body.decode("utf-8", "replace"), is_cut=response.is_cut)
        if any(_is_of(response.status, expected) for expected in self.expected_statuses):
            kept = text.encode()[:BODY_KEPT_BYTES].decode("utf-8", "ignore")
            is_cut = response.is_cut or kept != text
            return {"status_code": response.status, "body": kept} | ({"is_cut": True} if is_cut else {})
        message = f"the target answered {response.status}: {text[:500]}"
        if response.status >= 500 or response.status in _TRANSIENT_STATUSES:
            retry_after = _retry_after(response.headers.get("Retry-After"), context.clock.now())
            raise TransientFailure(message, retry_after=retry_after)
        raise PermanentFailure(message)


def _resolved(value: HeaderValue, context: AttemptContext, reach: Reach) -> str:
    if isinstance(value, str):
        return value
    secret = value.resolve(reach)
    context.redactor.keep_secret(secret)
    if not _HEADER_VALUE.fullmatch(value.prefix + secret):
        raise PermanentFailure(f"{value.arn.text} holds characters that a header cannot have")
    return value.prefix + secret


def _literal_address(host: str) -> str | None:
    """The address that a host means without being looked up: 2130706433, 0x7f.1 and 0177.0.0.1 are 127.0.0.1 too."""
    try:
        return str(ip_address(host))
    except ValueError:
        pass
    if not _NUMERIC_HOST.fullmatch(host):
        return None
    try:
        return socket.inet_ntoa(socket.inet_aton(host.rstrip(".")))
    except OSError:
        return None


def _is_of(status: int, expected: str) -> bool:
    return expected == str(status) or (expected.endswith("xx") and expected[0] == str(status)[0])


def _retry_after(value: str | None, now: datetime) -> timedelta | None:
    """In seconds, or as a date."""
    if value is None:
        return None
    if re.fullmatch(r"\d{1,6}", value.strip()):
        return timedelta(seconds=int(value))
    try:
        return email.utils.parsedate_to_datetime(value) - now
    except (ValueError, TypeError):
        return None


def _url(url: Any, field: str) -> str:
    if not isinstance(url, str) or not 1 <= len(url) <= 2048:
        raise InvalidField(field, "must be a URL of at most 2,048 characters")
    if re.search(r"[^\x21-\x7e]|\\", url):
        raise InvalidField(
            field, "must not contain spaces, backslashes, control characters or characters outside ASCII"
        )
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidField(field, f"is not a URL: {error}") from error
    if "@" in parts.netloc:
        raise InvalidField(field, "must not contain a user name or password: put credentials in headers")
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    if parts.scheme not in ("http", "https") or port == 0 or not _HOST.fullmatch(host):
        raise InvalidField(field, "must be an http or https URL with a host")
    return url


def _headers(headers: Any) -> Mapping[str, HeaderValue]:
    if not isinstance(headers, Mapping) or len(headers) > 50:
        raise InvalidField("task.headers", "must be an object of at most 50 headers")
    return {name: _header(name, value) for name, value in headers.items()}


def _header(name: str, value: Any) -> HeaderValue:
    field = f"task.headers.{name}"
    if not _HEADER_NAME.fullmatch(name):
        raise InvalidField("task.headers", f"{name!r} is not the name of a header")
    if _RESERVED_HEADERS.fullmatch(name):
        raise InvalidField(field, "is set by Duetime and cannot be chosen")
    if isinstance(value, Mapping):
        return SecretReference.parse(value, field)
    if not isinstance(value, str) or not _HEADER_VALUE.fullmatch(value):
        raise InvalidField(field, "must be printable text of at most 4,096 characters, or refer to a secret")
    return value


def _statuses(statuses: Any) -> tuple[str, ...]:
    texts = [str(status) for status in statuses] if isinstance(statuses, list) else []
    if not 1 <= len(texts) <= 20 or not all(re.fullmatch(r"[1-5](\d\d|xx)", text) for text in texts):
        raise InvalidField("task.expected_statuses", "must be a list of statuses such as 200 or 2xx")
    return tuple(texts)


def _heartbeat(callback: Any) -> timedelta | None:
    if callback is None:
        return None
    if not isinstance(callback, Mapping) or not set(callback) <= {"heartbeat_seconds"}:
        raise InvalidField("task.callback", "must be an object, with heartbeat_seconds if it is not 300")
    try:
        return parse_heartbeat(callback)
    except InvalidField as error:
        raise InvalidField("task.callback.heartbeat_seconds", error.reason) from error
