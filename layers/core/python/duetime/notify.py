"""What can be heard of, and how: the words that subscriptions and a job's `notify` block have in common."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class NoticeEvent(StrEnum):
    SUCCEEDED = "succeeded"  # a run ended well
    FAILED = "failed"  # a run failed for good: no attempts left, or never delivered
    DEAD_LETTERED = "dead_lettered"  # and is on the dead-letter queue, where it can be redriven
    RETRIED = "retried"  # an attempt failed, and another follows
    LATE = "late"  # a run has not started though it is due
    MISSED = "missed"  # a time of the schedule passed, and no run of it exists
    PAUSED = "paused"  # somebody paused the job


class Protocol(StrEnum):
    EMAIL = "email"
    SMS = "sms"
    HTTPS = "https"
    SQS = "sqs"
    LAMBDA = "lambda"


OF_NOTIFY: Final = (Protocol.HTTPS, Protocol.SQS, Protocol.LAMBDA)
"""What a `notify` block may use: these need nobody's confirmation, and nothing that AWS counts."""


@dataclass(frozen=True, slots=True)
class Notify:
    """A job's own wish, for the simple case."""

    events: tuple[NoticeEvent, ...]
    protocol: Protocol
    endpoint: str


def parse_events(names: Sequence[str]) -> tuple[NoticeEvent, ...]:
    """Once each, in the order of the enum: what means the same looks the same."""
    wanted = {NoticeEvent(name) for name in names}
    return tuple(event for event in NoticeEvent if event in wanted)
