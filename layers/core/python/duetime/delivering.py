"""Telling those whom Duetime tells itself: webhooks, and the queues and functions of notify blocks."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final

from duetime.arns import Arn
from duetime.clock import Clock
from duetime.endpoints import check_endpoint
from duetime.errors import InvalidField, PermanentFailure
from duetime.notice_messages import Delivery, RecipientRef, Told
from duetime.notify import Notify, Protocol
from duetime.notifying import Jobs
from duetime.signing import SigningKey
from duetime.subscriptions import Subscription, SubscriptionStore
from duetime.targets import AllowedTargets, Reach
from duetime.tasks.aws import call, client
from duetime.tasks.http_exchange import Request
from duetime.webhooks import notify_key, post, signed_request, subscription_key

_PAUSES: Final = (10, 30, 90, 270, 810, 2430, 3600)

MOST_TRIES: Final = 10
"""The queue hands a message out so often. A test compares it with the template."""

Post = Callable[[Request, Reach], None]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a recipient is told, as it is now."""

    protocol: Protocol
    endpoint: str
    # Whose reach counts.
    principal: str
    key_of: Callable[[SigningKey], bytes]


@dataclass(frozen=True, slots=True)
class Deliverer:
    jobs: Jobs
    store: SubscriptionStore
    allowed: AllowedTargets
    signing: SigningKey
    clock: Clock
    post: Post = post

    def deliver(self, delivery: Delivery) -> bool:
        """False: nobody wants it any more. Raises a TaskError if the recipient could not be told."""
        place = self._place(delivery.recipient)
        if place is None:
            return False
        reach = self.allowed.reach_of(place.principal)
        try:
            # The environment's list may have changed since it was written.
            check_endpoint(place.protocol, place.endpoint, reach)
        except InvalidField as error:
            raise PermanentFailure(error.message) from error
        self._hand_over(place, delivery.told, reach)
        return True

    def _hand_over(self, place: Place, told: Told, reach: Reach) -> None:
        if place.protocol is Protocol.HTTPS:
            key = place.key_of(self.signing)
            now = self.clock.now()
            self.post(signed_request(place.endpoint, told.message_id, told.content, key, now), reach)
            return
        arn = Arn.parse(place.endpoint)
        assert arn is not None
        send_to_queue(arn, told.content) if place.protocol is Protocol.SQS else invoke(arn, told.content)

    def _place(self, ref: RecipientRef) -> Place | None:
        if ref.subscription_id is not None:
            found = self.store.get(ref.owner, ref.subscription_id)
            return _place_of_subscription(found) if found else None
        jobs = self.jobs.load_jobs([ref.job_id] if ref.job_id else [])
        notify = jobs[0].spec.notify if jobs else None
        return _place_of_notify(notify, jobs[0].owner) if notify else None


def _place_of_subscription(found: Subscription) -> Place:
    key_of = partial(subscription_key, subscription_id=found.subscription_id)
    return Place(found.protocol, found.endpoint, found.created_by, key_of)


def _place_of_notify(notify: Notify, owner: str) -> Place:
    return Place(
        notify.protocol, notify.endpoint, owner, partial(notify_key, owner=owner, url=notify.endpoint)
    )


def pause_before(attempt: int) -> timedelta:
    """How long a message that could not be delivered stays away, by how often it was tried."""
    return timedelta(seconds=_PAUSES[min(attempt, len(_PAUSES)) - 1])


def send_to_queue(queue: Arn, content: Mapping[str, Any]) -> None:
    sqs = client("sqs", queue.region)
    url = f"{sqs.meta.endpoint_url}/{queue.account}/{queue.resource}"
    call(sqs.send_message, QueueUrl=url, MessageBody=json.dumps(content))


def invoke(function: Arn, content: Mapping[str, Any]) -> None:
    """Without waiting for it: Lambda itself tries again if it fails."""
    call(
        client("lambda", function.region).invoke,
        FunctionName=function.text,
        InvocationType="Event",
        Payload=json.dumps(content).encode(),
    )
