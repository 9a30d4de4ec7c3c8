"""Subscriptions over HTTP: what a caller may send, and what is answered."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from duetime.api.answers import show_time
from duetime.api.requests import Events, Tag
from duetime.errors import InvalidField
from duetime.job import Job
from duetime.notify import Protocol, parse_events
from duetime.signing import SigningKey
from duetime.subscriptions import Subscription, Wish
from duetime.webhooks import notify_key, show_secret, subscription_key


class CreateSubscription(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    protocol: Literal["email", "sms", "https", "sqs", "lambda"]
    endpoint: Annotated[str, Field(min_length=1, max_length=2048)]
    events: Events
    # Of which jobs: exactly one of these. Not everything by default, which would be a flood by mistake.
    job_id: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    tag: Tag | None = None
    all: Literal[True] | None = None

    def to_wish(self) -> Wish:
        if sum(scope is not None for scope in (self.job_id, self.tag, self.all)) != 1:
            raise InvalidField("job_id", "give exactly one of job_id, tag and all (which is true)")
        return Wish(
            protocol=Protocol(self.protocol),
            endpoint=self.endpoint,
            events=parse_events(self.events),
            job_id=self.job_id,
            tag=self.tag,
        )


def notify_secret_of(job: Job, signing: SigningKey) -> str | None:
    """For the answer to whoever submits or changes a job with an `https` notify block."""
    notify = job.spec.notify
    if notify is None or notify.protocol is not Protocol.HTTPS:
        return None
    return show_secret(notify_key(signing, job.owner, notify.endpoint))


def show_subscription(subscription: Subscription) -> dict[str, Any]:
    return {
        "subscription_id": subscription.subscription_id,
        "owner": subscription.owner,
        "protocol": subscription.protocol,
        "endpoint": subscription.endpoint,
        "events": [event.value for event in subscription.events],
        "job_id": subscription.job_id,
        "tag": subscription.tag,
        "all": subscription.job_id is None and subscription.tag is None,
        # Nothing is sent before whoever reads that mailbox has confirmed it.
        "needs_confirmation": subscription.protocol is Protocol.EMAIL,
        "created_at": show_time(subscription.created_at),
        "created_by": subscription.created_by,
    }


def show_new_subscription(subscription: Subscription, signing: SigningKey) -> dict[str, Any]:
    """With the secret to verify its webhooks: only here, in the answer to whoever made it."""
    is_signed = subscription.protocol is Protocol.HTTPS
    secret = show_secret(subscription_key(signing, subscription.subscription_id)) if is_signed else None
    return show_subscription(subscription) | {"secret": secret}
