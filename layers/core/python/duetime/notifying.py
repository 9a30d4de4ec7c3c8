"""The notifier: from what happened to whoever wants to hear of it."""

import random
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, Protocol

from duetime.clock import Clock
from duetime.errors import DuetimeError
from duetime.interests import KnownSubscriptions
from duetime.job import Job
from duetime.metrics import Metric
from duetime.notice_messages import (
    Delivery,
    Message,
    NoticeForOne,
    Publication,
    RecipientRef,
    SummaryDue,
    Told,
)
from duetime.notice_text import Wording, word_notice, word_summary
from duetime.notices import Notice
from duetime.notify import NoticeEvent
from duetime.storms import Storms, Window, WindowKey, judge, window_at
from duetime.subscriptions import Subscription, SubscriptionStore, address_of
from duetime.tallying import Count

_TRIES: Final = 20
_SHORTEST_PAUSE: Final = 0.01
_LONGEST_PAUSE: Final = 0.5
_LATER_SECONDS: Final = 15
_SLACK: Final = timedelta(seconds=5)
"""So long after a window's end its summary is due: others may be writing to it."""


class Crowded(DuetimeError):
    """Too many write to the same window at this moment. The message comes back."""


class Jobs(Protocol):
    def load_jobs(self, job_ids: Iterable[str]) -> Sequence[Job]: ...


class Outbox(Protocol):
    """The notifier's own queue."""

    def send(self, messages: Sequence[Message], delay: timedelta = timedelta()) -> Sequence[Message]:
        """Returns those that were not sent."""


class Publisher(Protocol):
    def publish(self, owner: str, wording: Wording, addresses: Collection[str]) -> None:
        """To those subscriptions of the owner's topic that listen for one of the addresses."""


@dataclass(frozen=True, slots=True)
class Recipient:
    ref: RecipientRef
    # What the owner's topic knows it by; None: Duetime tells it itself.
    address: str | None

    @classmethod
    def of(cls, subscription: Subscription) -> "Recipient":
        ref = RecipientRef(subscription.owner, subscription_id=subscription.subscription_id)
        is_direct = subscription.sns_arn is None
        return cls(ref, None if is_direct else address_of(subscription.protocol, subscription.endpoint))


@dataclass(frozen=True, slots=True)
class Notifier:
    jobs: Jobs
    known: KnownSubscriptions
    store: SubscriptionStore
    storms: Storms
    publisher: Publisher
    outbox: Outbox
    clock: Clock
    count: Count
    sleep: Callable[[float], None] = time.sleep

    def tell(self, notices: Sequence[Notice]) -> None:
        """To everybody who wants to hear of them. If it raises, all of it may be done again."""
        jobs = {job.job_id: job for job in self.jobs.load_jobs(notice.job_id for notice in notices)}
        told: dict[str, list[Recipient]] = defaultdict(list)
        by_id: dict[str, Notice] = {}
        for number, ((recipient, event), wanted) in enumerate(self._wanted(notices, jobs).items()):
            # While nobody's window was written, all of it can be done again.
            judged = self._one_by_one_or_later if number else self._one_by_one
            for notice in judged(recipient, event, wanted):
                told[notice.notice_id].append(recipient)
                by_id[notice.notice_id] = notice
        self._post(
            [
                message
                for notice_id, recipients in told.items()
                for message in _messages(word_notice(by_id[notice_id]), recipients)
            ]
        )

    def tell_one(self, ref: RecipientRef, event: NoticeEvent, notices: Sequence[Notice]) -> None:
        """To one whose window could not be written when the others were told. One window a call: so what fails has
        counted nothing that would be counted again."""
        recipient = self._recipient(ref)
        tell = self._one_by_one(recipient, event, notices) if recipient else ()
        self._post(
            [
                message
                for notice in tell
                if recipient
                for message in _messages(word_notice(notice), [recipient])
            ]
        )

    def sum_up(self, due: SummaryDue) -> Window | None:
        """Tell what a window held back, if nobody else has taken that on. The claimant is the message: should it come
        again because this time failed, it may go on."""
        window = self._claim(due.window, due.token)
        recipient = self._recipient(due.recipient) if window else None
        if window is None or recipient is None:
            return None
        self._post(_messages(word_summary(window, due.recipient.owner), [recipient]))
        return window

    def publish(self, publication: Publication) -> None:
        """Raises PermanentFailure if it will never be taken."""
        self.publisher.publish(publication.owner, publication.wording, publication.addresses)
        self.count(Metric.NOTICES_SENT, len(publication.addresses))

    def _wanted(
        self, notices: Sequence[Notice], jobs: dict[str, Job]
    ) -> dict[tuple[Recipient, NoticeEvent], list[Notice]]:
        wanted: dict[tuple[Recipient, NoticeEvent], list[Notice]] = defaultdict(list)
        for notice in notices:
            job = jobs.get(notice.job_id)
            if job is None:
                continue
            # The job says whose it is; what a message says is not trusted with that.
            full = replace(notice, owner=job.owner, job_name=job.spec.name, tags=job.spec.tags)
            for recipient in self._recipients(job, notice.event):
                wanted[recipient, notice.event].append(full)
        return wanted

    def _recipients(self, job: Job, event: NoticeEvent) -> list[Recipient]:
        subscribed = [each for each in self.known.of_owner(job.owner) if each.wants(event, job)]
        found = [Recipient.of(subscription) for subscription in subscribed]
        if job.spec.notify and event in job.spec.notify.events:
            found.append(Recipient(RecipientRef(job.owner, job_id=job.job_id), None))
        return found

    def _one_by_one_or_later(
        self, recipient: Recipient, event: NoticeEvent, notices: Sequence[Notice]
    ) -> Sequence[Notice]:
        """What goes wrong with one recipient's window is that one's alone: were all of it done again, the others'
        windows would count it again."""
        try:
            return self._one_by_one(recipient, event, notices)
        except Exception:
            # Later, and not all at once: there are too many already.
            delay = timedelta(seconds=_at_random(_LATER_SECONDS))
            self._post([NoticeForOne(recipient.ref, notice) for notice in notices], delay)
            return ()

    def _one_by_one(
        self, recipient: Recipient, event: NoticeEvent, notices: Sequence[Notice]
    ) -> Sequence[Notice]:
        """Those of them that are told now. The others are counted."""
        asked: set[WindowKey] = set()
        for number in range(_TRIES):
            self._pause_before(number)
            window = self._open_window(recipient.ref.key, event)
            after, tell = judge(window, notices)
            if after.held and not window.held and window.key not in asked:
                self._ask_for_summary(SummaryDue(recipient.ref, window.key))
                asked.add(window.key)
            if after == window or self.storms.exchange(window, after):
                self.count(Metric.NOTICES_SUPPRESSED, after.held - window.held)
                return tell
        raise Crowded(f"the {event} window of {recipient.ref.key} could not be written")

    def _pause_before(self, number: int) -> None:
        """Those who met once would meet again if all were equally fast."""
        if number:
            self.sleep(_at_random(min(_SHORTEST_PAUSE * 2**number, _LONGEST_PAUSE)))

    def _open_window(self, recipient: str, event: NoticeEvent) -> Window:
        key = window_at(recipient, event, self.clock.now())
        while (window := self.storms.window(key)).claimed_by:
            key = key._replace(starts_at=key.ends_at)
        return window

    def _ask_for_summary(self, due: SummaryDue) -> None:
        """Ahead of the count: should this be all that gets done, it finds nothing to sum up."""
        self._post([due], max(timedelta(), due.window.ends_at - self.clock.now()) + _SLACK)

    def _claim(self, key: WindowKey, claimant: str) -> Window | None:
        """An empty one too: who is about to write its first count then fails, and goes on to the next window."""
        for number in range(_TRIES):
            self._pause_before(number)
            window = self.storms.window(key)
            if window.claimed_by not in (None, claimant):
                return None
            claimed = replace(window, claimed_by=claimant)
            if claimed == window or self.storms.exchange(window, claimed):
                return window if window.held else None
        raise Crowded(f"the window of {key.recipient} could not be claimed")

    def _recipient(self, ref: RecipientRef) -> Recipient | None:
        """As it is now."""
        if ref.subscription_id is None:
            return Recipient(ref, None)
        subscription = self.store.get(ref.owner, ref.subscription_id)
        return Recipient.of(subscription) if subscription else None

    def _post(self, messages: Sequence[Message], delay: timedelta = timedelta()) -> None:
        if messages and self.outbox.send(messages, delay):
            raise Crowded("the queue of notices did not take a message")


def _messages(wording: Wording, recipients: Sequence[Recipient]) -> list[Message]:
    """One for each whom Duetime tells itself, and one for all whom the owner's topic tells."""
    told = Told(wording.message_id, wording.content)
    messages: list[Message] = [Delivery(each.ref, told) for each in recipients if each.address is None]
    addresses = sorted({each.address for each in recipients if each.address is not None})
    if addresses:
        messages.append(Publication(recipients[0].ref.owner, wording, tuple(addresses)))
    return messages


def _at_random(most: float) -> float:
    return random.uniform(0, most)  # noqa: S311
