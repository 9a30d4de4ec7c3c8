"""What the queue of notices carries: news, what is to be delivered, and when to sum up. A message for the notifier is
a hint like any other: lost, doubled or late, it does no harm."""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from duetime.instants import format_instant, parse_instant
from duetime.notice_text import Wording
from duetime.notices import Notice
from duetime.notify import NoticeEvent
from duetime.storms import WindowKey


@dataclass(frozen=True, slots=True)
class RecipientRef:
    """A subscription, or a job's notify block. What it is now is looked up when something is sent to it."""

    owner: str
    subscription_id: str | None = None
    job_id: str | None = None

    @property
    def key(self) -> str:
        return f"subscription:{self.subscription_id}" if self.subscription_id else f"job:{self.job_id}"

    def to_json(self) -> dict[str, str]:
        values = {"owner": self.owner, "subscription_id": self.subscription_id, "job_id": self.job_id}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Told:
    """What one recipient is sent, and under which id."""

    message_id: str
    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Delivery:
    """One message for one recipient whom Duetime tells itself. By itself, so that one who does not answer is tried
    again alone."""

    recipient: RecipientRef
    told: Told


@dataclass(frozen=True, slots=True)
class SummaryDue:
    """A window may be over."""

    recipient: RecipientRef
    window: WindowKey
    # Whose claim the window is. Not SQS's own id, which changes when a dead letter is moved back.
    token: str = field(default_factory=lambda: str(uuid.uuid4()))


@dataclass(frozen=True, slots=True)
class Publication:
    """One message for those whom the owner's topic tells. By itself, so that SNS in trouble holds up nobody else."""

    owner: str
    wording: Wording
    addresses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoticeForOne:
    """News of which all others are told: only this recipient's window could not be written."""

    recipient: RecipientRef
    notice: Notice


Message = Notice | Delivery | SummaryDue | Publication | NoticeForOne


def write_message(message: Message) -> str:
    match message:
        case Notice():
            body: dict[str, Any] = {"notice": message.to_json()}
        case Delivery(recipient, told):
            body = {"to": recipient.to_json(), "message_id": told.message_id, "content": told.content}
        case NoticeForOne(recipient, notice):
            body = {"to": recipient.to_json(), "notice": notice.to_json()}
        case Publication(owner, wording, addresses):
            body = {"publish": wording.to_json(), "owner": owner, "addresses": addresses}
        case SummaryDue(recipient, window, token):
            body = {
                "token": token,
                "to": recipient.to_json(),
                "event": window.event.value,
                "starts_at": format_instant(window.starts_at),
            }
    return json.dumps(body, separators=(",", ":"))


def read_message(text: str) -> Message:
    body = json.loads(text)
    if "publish" in body:
        return Publication(body["owner"], Wording.from_json(body["publish"]), tuple(body["addresses"]))
    if "notice" in body and "to" not in body:
        return Notice.from_json(body["notice"])
    recipient = RecipientRef(**body["to"])
    if "notice" in body:
        return NoticeForOne(recipient, Notice.from_json(body["notice"]))
    if "content" in body:
        return Delivery(recipient, Told(body["message_id"], body["content"]))
    window = WindowKey(recipient.key, NoticeEvent(body["event"]), parse_instant(body["starts_at"]))
    # An older version's has no token: then all of a window's are one claimant.
    return SummaryDue(recipient, window, body.get("token", "without"))
