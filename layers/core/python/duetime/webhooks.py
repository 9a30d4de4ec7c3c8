"""Webhooks, signed by the Standard Webhooks convention (standardwebhooks.com). docs/notifications.md shows how to
verify one."""

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

from duetime.endpoints import reach_for
from duetime.errors import TransientFailure
from duetime.signing import SigningKey
from duetime.stopping import StopReason, StopSignal
from duetime.targets import Reach
from duetime.tasks.http_exchange import Request, exchange, shown

LONGEST_SECONDS: Final = 10.0
_PREFIX: Final = "whsec_"


def subscription_key(signing: SigningKey, subscription_id: str) -> bytes:
    return signing.derive(f"webhook:subscription:{subscription_id}")


def notify_key(signing: SigningKey, owner: str, url: str) -> bytes:
    """One for all jobs of an owner that tell the same URL: its receiver keeps one secret, and no other receiver's."""
    return signing.derive(f"webhook:notify:{owner}\n{url}")


def show_secret(key: bytes) -> str:
    """As receivers write it into their settings."""
    return _PREFIX + base64.b64encode(key).decode()


def signed_request(url: str, message_id: str, body: Mapping[str, Any], key: bytes, now: datetime) -> Request:
    content = json.dumps(body, separators=(",", ":")).encode()
    timestamp = str(int(now.timestamp()))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "duetime",
        "webhook-id": message_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": sign(message_id, timestamp, content, key),
    }
    return Request("POST", url, headers, content)


def sign(message_id: str, timestamp: str, content: bytes, key: bytes) -> str:
    signed = b".".join((message_id.encode(), timestamp.encode(), content))
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def post(request: Request, reach: Reach, *, seconds: float = LONGEST_SECONDS) -> None:
    """Redirects are not followed: the signature is for whoever was named. Raises a TaskError."""
    with _stopped_after(seconds) as stop:
        answer = exchange(request, reach_for(request.url, reach), seconds=seconds, stop=stop)
    if not 200 <= answer.status < 300:
        raise TransientFailure(f"{shown(request.url)} answered {answer.status}")


@contextmanager
def _stopped_after(seconds: float) -> Iterator[StopSignal]:
    """A socket's timeout starts anew with every byte, so whoever sends one now and then would never be done with."""
    stop = StopSignal()
    timer = threading.Timer(seconds, stop.give, (StopReason.TIMED_OUT,))
    timer.daemon = True
    timer.start()
    try:
        yield stop
    finally:
        timer.cancel()
