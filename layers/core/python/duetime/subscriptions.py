"""Subscriptions: who hears of what, of which jobs, and how."""

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from duetime.clock import Clock
from duetime.endpoints import check_endpoint
from duetime.errors import Conflict, InvalidField, NotFound, TooMany
from duetime.job import Job, digest_request
from duetime.notify import NoticeEvent
from duetime.notify import Protocol as Channel
from duetime.targets import AllowedTargets

MOST_PER_OWNER: Final = 50
_A_MINUTE: Final = timedelta(minutes=1)
_NAMESPACE: Final = uuid.UUID("0f6f2a1c-5e0e-5f0f-9d8e-6a1f2b7c9d11")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    subscription_id: str
    # Whose jobs it is about.
    owner: str
    protocol: Channel
    endpoint: str
    events: tuple[NoticeEvent, ...]
    created_at: datetime
    # Whoever made it: the owner, or an admin. What may be reached is what this principal may reach.
    created_by: str
    # Of which jobs: one, those with a tag, or, if both are None, all of the owner's.
    job_id: str | None = None
    tag: str | None = None
    # The subscription of the owner's topic that carries it; None: Duetime itself delivers.
    sns_arn: str | None = None
    request_digest: str | None = None

    def wants(self, event: NoticeEvent, job: Job) -> bool:
        """Asked of a job whose owner is known; tenancy does not rest on where it was found."""
        if event not in self.events or job.owner != self.owner:
            return False
        if self.job_id is not None:
            return self.job_id == job.job_id
        return self.tag is None or self.tag in job.spec.tags

    def may_want(self, event: NoticeEvent, job_id: str) -> bool:
        """The same as far as it can be said without the job's tags."""
        return event in self.events and self.job_id in (None, job_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a caller asks for."""

    protocol: Channel
    endpoint: str
    events: tuple[NoticeEvent, ...]
    job_id: str | None = None
    tag: str | None = None


class SubscriptionStore(Protocol):
    """`DynamoSubscriptions` and `MemorySubscriptions` keep these promises."""

    def add(self, subscription: Subscription) -> Subscription | None:
        """Write it. If its owner has one with that id already, write nothing and return the one that is there."""

    def get(self, owner: str, subscription_id: str) -> Subscription | None: ...

    def of_owner(self, owner: str) -> Sequence[Subscription]:
        """All of them, as last written, the oldest first."""

    def remove(self, owner: str, subscription_id: str) -> Subscription | None:
        """What was there."""


class Topics(Protocol):
    """An owner's topic, for what Duetime does not deliver itself."""

    def subscribe(self, owner: str, protocol: Channel, endpoint: str) -> str:
        """The ARN of the subscription, also if it was there already. Raises InvalidField or Unavailable."""

    def unsubscribe(self, sns_arn: str) -> None:
        """No error if there is nothing to end. Raises Unavailable."""


class FindJob(Protocol):
    """A job that the caller may see. Raises NotFound."""

    def __call__(self, job_id: str, /) -> Job: ...


@dataclass(frozen=True, slots=True)
class Subscriptions:
    store: SubscriptionStore
    topics: Topics
    allowed: AllowedTargets
    clock: Clock

    def create(
        self,
        wish: Wish,
        *,
        by: str,
        find_job: FindJob,
        request: Mapping[str, Any],
        idempotency_key: str | None,
    ) -> Subscription:
        """A subscription to one job is its owner's, whoever made it: so an admin's is seen by those it listens to."""
        owner = _owner_of(wish, by, find_job)
        check_endpoint(wish.protocol, wish.endpoint, self.allowed.reach_of(by))
        subscription = self._new(wish, owner, by, idempotency_key, request)
        if idempotency_key and (first := self.store.get(owner, subscription.subscription_id)):
            return self._repeated(first, subscription)
        # Counted and written in two steps: at the worst an owner has a few more.
        if len(self.store.of_owner(owner)) >= MOST_PER_OWNER:
            raise TooMany(
                f"{owner} has {MOST_PER_OWNER} subscriptions: delete one first", retry_after=_A_MINUTE
            )
        # The topic first: what dies in between leaves a subscription there that nothing is ever addressed to, and the
        # repeated request finds it.
        subscription = self._connected(subscription)
        first = self.store.add(subscription)
        return subscription if first is None else self._repeated(first, subscription)

    def list(self, owner: str) -> Sequence[Subscription]:
        return self.store.of_owner(owner)

    def delete(self, owner: str, subscription_id: str) -> Subscription:
        """As it was. The topic's first: what fails there leaves the subscription to be deleted again."""
        found = self.store.get(owner, subscription_id)
        if found is None:
            raise NotFound("there is no such subscription, or it is not yours")
        was_shared = self._is_shared(found)
        if found.sns_arn and not was_shared:
            self.topics.unsubscribe(found.sns_arn)
        if self.store.remove(owner, subscription_id) is None:
            raise NotFound("there is no such subscription, or it is not yours")
        if found.sns_arn and was_shared != self._is_shared(found):
            self._follow(found, is_shared=not was_shared)
        return found

    def _follow(self, found: Subscription, *, is_shared: bool) -> None:
        """Another with the same endpoint was made at this moment, having found the topic's still there; or deleted,
        having found this one."""
        if is_shared:
            self.topics.subscribe(found.owner, found.protocol, found.endpoint)
        elif found.sns_arn:
            self.topics.unsubscribe(found.sns_arn)

    def _is_shared(self, one: Subscription) -> bool:
        """Subscriptions of one owner with the same endpoint share one of the topic's."""
        return any(
            (one.protocol, one.endpoint) == (other.protocol, other.endpoint)
            and other.subscription_id != one.subscription_id
            for other in self.store.of_owner(one.owner)
        )

    def _new(
        self, wish: Wish, owner: str, by: str, idempotency_key: str | None, request: Mapping[str, Any]
    ) -> Subscription:
        return Subscription(
            subscription_id=new_subscription_id(by, idempotency_key),
            owner=owner,
            protocol=wish.protocol,
            endpoint=wish.endpoint,
            events=wish.events,
            created_at=self.clock.now(),
            created_by=by,
            job_id=wish.job_id,
            tag=wish.tag,
            request_digest=digest_request(request) if idempotency_key else None,
        )

    def _connected(self, subscription: Subscription) -> Subscription:
        if subscription.protocol is Channel.HTTPS:
            return subscription
        arn = self.topics.subscribe(subscription.owner, subscription.protocol, subscription.endpoint)
        return replace(subscription, sns_arn=arn)

    def _repeated(self, first: Subscription, asked: Subscription) -> Subscription:
        if first.request_digest != asked.request_digest:
            raise Conflict(
                f"the Idempotency-Key was already used for another request, which made subscription "
                f"{first.subscription_id}: use a new key for a new subscription"
            )
        return first


def new_subscription_id(by: str, idempotency_key: str | None) -> str:
    """It follows from caller and key, as a job's does."""
    if idempotency_key is None:
        return str(uuid.uuid4())
    return str(uuid.uuid5(_NAMESPACE, f"{by}\n{idempotency_key}"))


def address_of(protocol: Channel, endpoint: str) -> str:
    """What a message on the owner's topic is addressed with. Endpoints are not for the filter policy's eyes."""
    return hashlib.sha256(f"{protocol}\n{endpoint}".encode()).hexdigest()[:32]


def _owner_of(wish: Wish, by: str, find_job: FindJob) -> str:
    if wish.job_id is None:
        return by
    try:
        return find_job(wish.job_id).owner
    except NotFound as error:
        # A 404 would be about the route; what is wrong is the field.
        raise InvalidField("job_id", error.message) from error
