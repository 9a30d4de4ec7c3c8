"""The notifier: everybody who wants to hear of something does, and nobody else; a storm becomes a summary."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from duetime.clock import ManualClock
from duetime.delivering import Deliverer, pause_before
from duetime.errors import PermanentFailure, TransientFailure
from duetime.interests import KnownSubscriptions
from duetime.job import Job
from duetime.memory_notices import MemoryStorms, MemorySubscriptions
from duetime.memory_store import MemoryStore
from duetime.metrics import Metric
from duetime.notice_messages import (
    Delivery,
    Message,
    NoticeForOne,
    Publication,
    RecipientRef,
    SummaryDue,
    Told,
    read_message,
    write_message,
)
from duetime.notice_text import Wording
from duetime.notices import Notice
from duetime.notify import NoticeEvent, Notify, Protocol
from duetime.notifying import Crowded, Notifier
from duetime.signing import SigningKey
from duetime.storms import ONE_BY_ONE, Window, window_at
from duetime.subscriptions import address_of
from duetime.tallying import Tally
from duetime.targets import AllowedTargets, Reach, Rule
from duetime.tasks.http_exchange import Request
from duetime.webhooks import notify_key, sign, subscription_key

from tests.factories import NOW, OWNER, a_job, a_spec
from tests.unit.test_notices import OTHER, a_subscription

HOOK = "https://example.com/hook"
SIGNING = SigningKey(lambda: b"secret")


class Office:
    """A notifier with everything around it in memory."""

    def __init__(self) -> None:
        self.clock = ManualClock(NOW)
        self.jobs, self.store, self.storms = MemoryStore(), MemorySubscriptions(), MemoryStorms()
        self.published: list[tuple[str, Wording, list[str]]] = []
        self.queued: list[tuple[Message, timedelta]] = []
        self.refuses = False
        self.tally = Tally()
        # A notifier that has just started: it remembers nothing.
        self.notifier = Notifier(
            self.jobs,
            KnownSubscriptions(self.store, self.clock),
            self.store,
            self.storms,
            self,
            self,
            self.clock,
            self.tally.count,
            lambda _: None,
        )

    def publish(self, owner: str, wording: Wording, addresses: Collection[str]) -> None:
        if self.refuses:
            raise TransientFailure("SNS does not answer")
        self.published.append((owner, wording, list(addresses)))

    def send(self, messages: Sequence[Message], delay: timedelta = timedelta()) -> Sequence[Message]:
        # What the queue carries is text.
        self.queued += [(read_message(write_message(message)), delay) for message in messages]
        return ()

    def publish_queued(self) -> None:
        """What waits for SNS, until SNS takes it."""
        for message, delay in list(self.queued):
            if isinstance(message, Publication):
                self.notifier.publish(message)
                self.queued.remove((message, delay))

    @property
    def counted(self) -> dict[Metric, float]:
        return {each.metric: each.value for each in self.tally.take()}

    def job(self, **changes: Any) -> Job:
        job = a_job(**changes)
        self.jobs.create(job, [])
        return job

    def tell(self, job: Job, count: int = 1, event: NoticeEvent = NoticeEvent.FAILED, start: int = 0) -> None:
        self.notifier.tell([a_notice(job, number, event) for number in range(start, start + count)])

    @property
    def deliveries(self) -> list[Delivery]:
        return [message for message, _ in self.queued if isinstance(message, Delivery)]

    @property
    def summaries_due(self) -> list[tuple[SummaryDue, timedelta]]:
        return [(message, delay) for message, delay in self.queued if isinstance(message, SummaryDue)]


def a_notice(job: Job, number: int = 0, event: NoticeEvent = NoticeEvent.FAILED) -> Notice:
    at = NOW + timedelta(seconds=number)
    notice_id = f"{job.job_id}-{event}-{number}"
    return Notice(notice_id=notice_id, event=event, owner=job.owner, job_id=job.job_id, at=at)


@pytest.fixture
def office() -> Office:
    return Office()


def test_a_notice_reaches_every_subscription_that_wants_it_and_the_topic_once(office: Office) -> None:
    mail = {"protocol": Protocol.EMAIL, "endpoint": "a@example.com", "sns_arn": "arn:1"}
    sms = {"protocol": Protocol.SMS, "endpoint": "+4915112345678", "sns_arn": "arn:2"}
    office.store.add(a_subscription(subscription_id="hook"))
    office.store.add(a_subscription(subscription_id="mail", **mail, tag="pay"))
    office.store.add(a_subscription(subscription_id="mail too", **mail))
    office.store.add(a_subscription(subscription_id="sms", **sms))
    office.store.add(a_subscription(subscription_id="other tag", **sms | {"tag": "ads"}))
    office.store.add(a_subscription(subscription_id="other event", events=(NoticeEvent.LATE,)))
    job = office.job(spec=a_spec(name="Payout", tags=("pay",)))
    office.tell(job)
    office.publish_queued()
    ((owner, wording, addresses),) = office.published
    assert owner == OWNER
    assert addresses == sorted(
        [address_of(Protocol.EMAIL, "a@example.com"), address_of(Protocol.SMS, "+4915112345678")]
    )
    assert wording.content["data"]["job_name"] == "Payout"
    assert wording.content["data"]["tags"] == ["pay"]
    (delivery,) = office.deliveries
    assert delivery.recipient == RecipientRef(OWNER, subscription_id="hook")
    assert delivery.told.message_id == a_notice(job).notice_id


def test_another_owners_subscriptions_hear_nothing_whatever_a_message_says(office: Office) -> None:
    job = office.job()
    office.store.add(a_subscription(owner=OTHER, subscription_id="all of theirs"))
    office.store.add(a_subscription(owner=OTHER, subscription_id="that job", job_id=job.job_id))
    office.notifier.tell([replace(a_notice(job), owner=OTHER)])
    assert (office.published, office.queued) == ([], [])


def test_a_job_that_is_not_there_is_nobodys(office: Office) -> None:
    office.store.add(a_subscription())
    office.tell(a_job())
    assert office.queued == []


def test_a_notify_block_is_told_of_what_it_lists(office: Office) -> None:
    notify = Notify((NoticeEvent.FAILED,), Protocol.HTTPS, HOOK)
    job = office.job(spec=a_spec(notify=notify))
    office.tell(job)
    office.tell(job, event=NoticeEvent.SUCCEEDED)
    (delivery,) = office.deliveries
    assert delivery.recipient == RecipientRef(OWNER, job_id=job.job_id)
    assert delivery.told.content["type"] == "failed"


def test_a_storm_is_summed_up_once_when_its_window_is_over(office: Office) -> None:
    office.store.add(a_subscription())
    jobs = [office.job(spec=a_spec(name=f"Job {number}")) for number in range(3)]
    for job in jobs:
        office.tell(job, 14)
    assert len(office.deliveries) == ONE_BY_ONE
    # Asked for once, to come when the window is over.
    ((due, delay),) = office.summaries_due
    office.clock.advance(delay)
    assert office.clock.now() > due.window.ends_at
    assert office.notifier.sum_up(due) is not None
    summary = office.deliveries[-1].told
    assert summary.content["type"] == "failed.summary"
    assert summary.content["data"]["text"].startswith("37 more runs of 3 jobs failed between ")
    # A second message of the same kind finds it done.
    assert office.notifier.sum_up(replace(due, token="another")) is None
    assert len(office.deliveries) == ONE_BY_ONE + 1


def test_the_message_that_sums_up_may_come_again_if_it_failed_also_with_another_id_of_sqs() -> None:
    class Full(Office):
        is_full = False

        def send(self, messages: Sequence[Message], delay: timedelta = timedelta()) -> Sequence[Message]:
            return messages if self.is_full else super().send(messages, delay)

    office = Full()
    office.store.add(a_subscription(protocol=Protocol.EMAIL, endpoint="a@example.com", sns_arn="arn:1"))
    office.tell(office.job(), 7)
    ((due, _),) = office.summaries_due
    office.is_full = True
    with pytest.raises(Crowded):
        office.notifier.sum_up(due)
    office.is_full = False
    assert office.notifier.sum_up(replace(due, token="another")) is None
    assert office.notifier.sum_up(due) is not None
    office.publish_queued()
    *_, (_, wording, _) = office.published
    assert wording.content["data"]["count"] == 2


def test_what_is_counted_after_its_summary_came_goes_to_the_next_window(office: Office) -> None:
    office.store.add(a_subscription())
    job = office.job()
    office.tell(job, 5)

    class Late(MemoryStorms):
        """The first count is written when the window is long over."""

        is_late = True

        def exchange(self, seen: Window, after: Window) -> bool:
            if after.held and self.is_late:
                self.is_late = False
                office.clock.advance(timedelta(minutes=5, seconds=10))
                ((due, _),) = office.summaries_due
                assert notifier.sum_up(due) is None
            return super().exchange(seen, after)

    storms = Late()
    storms._windows = office.storms._windows
    notifier = replace(office.notifier, storms=storms)
    notifier.tell([a_notice(job, number) for number in range(5, 8)])
    # In a new window there is room for them.
    assert len(office.deliveries) == 8
    assert not any(window.held for window in storms._windows.values())


def test_sns_in_trouble_repeats_no_webhook_and_keeps_no_notice_back(office: Office) -> None:
    office.store.add(a_subscription(subscription_id="hook"))
    office.store.add(
        a_subscription(
            subscription_id="mail", protocol=Protocol.EMAIL, endpoint="a@example.com", sns_arn="arn"
        )
    )
    office.refuses = True
    office.tell(office.job(), 4)
    for _ in range(3):
        with pytest.raises(TransientFailure):
            office.publish_queued()
    assert len(office.deliveries) == 4
    office.refuses = False
    office.publish_queued()
    assert len(office.published) == 4
    assert office.counted == {Metric.NOTICES_SENT: 4}


def test_a_recipient_whose_window_cannot_be_written_is_told_later_and_nobody_else_is_counted_again(
    office: Office,
) -> None:
    for name in ("a", "b"):
        office.store.add(a_subscription(subscription_id=name))

    class Contended(MemoryStorms):
        is_contended = True

        def exchange(self, seen: Window, after: Window) -> bool:
            if self.is_contended and seen.key.recipient == "subscription:b":
                return False
            return super().exchange(seen, after)

    storms = Contended()
    notifier = replace(office.notifier, storms=storms)
    job = office.job()
    notifier.tell([a_notice(job, number) for number in range(8)])
    assert office.counted == {Metric.NOTICES_SUPPRESSED: 3}
    later = [message for message, _ in office.queued if isinstance(message, NoticeForOne)]
    assert {message.recipient.subscription_id for message in later} == {"b"}
    notices = [message.notice for message in later]
    with pytest.raises(Crowded):
        notifier.tell_one(later[0].recipient, NoticeEvent.FAILED, notices)
    storms.is_contended = False
    notifier.tell_one(later[0].recipient, NoticeEvent.FAILED, notices)
    assert [window.held for window in storms._windows.values()] == [3, 3]
    told = [delivery.recipient.subscription_id for delivery in office.deliveries]
    assert told == ["a"] * 5 + ["b"] * 5
    assert office.counted == {Metric.NOTICES_SUPPRESSED: 3}


def test_the_summary_is_asked_for_before_anything_is_held_back(office: Office) -> None:
    """Whoever dies between the two has sent a message that finds nothing."""
    office.store.add(a_subscription())

    class Dying(MemoryStorms):
        def exchange(self, seen: Window, after: Window) -> bool:
            if after.held:
                raise TransientFailure("dies here")
            return super().exchange(seen, after)

    dying = replace(office.notifier, storms=Dying())
    with pytest.raises(TransientFailure):
        dying.tell([a_notice(office.job(), number) for number in range(6)])
    ((due, _),) = office.summaries_due
    assert dying.sum_up(due) is None


def test_what_comes_after_a_window_was_summed_up_opens_the_next(office: Office) -> None:
    office.store.add(a_subscription())
    job = office.job()
    office.tell(job, 6)
    ((due, _),) = office.summaries_due
    # Early, though it should not be.
    assert office.notifier.sum_up(due) is not None
    told = len(office.deliveries)
    office.tell(job, 1, start=6)
    assert len(office.deliveries) == told + 1


def test_kinds_of_event_and_subscriptions_have_storms_of_their_own(office: Office) -> None:
    office.store.add(a_subscription(subscription_id="a", events=(NoticeEvent.FAILED, NoticeEvent.LATE)))
    job = office.job()
    office.store.add(a_subscription(subscription_id="b", job_id=job.job_id))
    office.tell(office.job(), 9)
    office.tell(job, 1, start=9)
    office.tell(job, 1, event=NoticeEvent.LATE)
    told = [
        (delivery.recipient.subscription_id, delivery.told.content["type"]) for delivery in office.deliveries
    ]
    assert told == [*[("a", "failed")] * 5, ("b", "failed"), ("a", "late")]


def test_a_failed_batch_is_told_again_and_not_counted_twice(office: Office) -> None:
    office.store.add(a_subscription())
    job = office.job()
    for _ in range(3):
        office.tell(job, 5)
    assert office.summaries_due == []
    assert office.counted == {}


def test_notifiers_that_write_at_the_same_moment_count_together(office: Office) -> None:
    office.store.add(a_subscription())
    job = office.job()
    key = window_at("subscription:sub-1", NoticeEvent.FAILED, NOW)

    class Overtaken(MemoryStorms):
        """Between its reading and its writing, another notifier writes."""

        overtakes = 2

        def exchange(self, seen: Window, after: Window) -> bool:
            if self.overtakes:
                self.overtakes -= 1
                there = self.window(key)
                super().exchange(there, replace(there, told=(*there.told, f"other-{self.overtakes}")))
            return super().exchange(seen, after)

    storms = Overtaken()
    replace(office.notifier, storms=storms).tell([a_notice(job, number) for number in range(5)])
    assert len(office.deliveries) == 3
    assert (len(storms.window(key).told), storms.window(key).held) == (5, 2)


def test_a_queue_that_takes_nothing_is_no_success(office: Office) -> None:
    class Full(Office):
        def send(self, messages: Sequence[Message], delay: timedelta = timedelta()) -> Sequence[Message]:
            return messages

    full = Full()
    full.store.add(a_subscription())
    with pytest.raises(Crowded):
        full.tell(full.job())


def test_letters_and_short_messages_are_fit_for_their_carriers(office: Office) -> None:
    office.store.add(a_subscription(protocol=Protocol.EMAIL, endpoint="a@example.com", sns_arn="arn:1"))
    job = office.job(spec=a_spec(name="Auszahlung für " + "Ü" * 100))
    office.tell(job)
    office.publish_queued()
    ((_, wording, _),) = office.published
    assert wording.subject.isascii()
    assert wording.subject.startswith("Duetime: a run of Auszahlung f?r")
    assert len(wording.subject) <= 100
    assert len(wording.short) <= 140
    assert f"job_id: {job.job_id}" in wording.letter


class Post:
    def __init__(self) -> None:
        self.sent: list[tuple[Request, Reach]] = []

    def __call__(self, request: Request, reach: Reach) -> None:
        self.sent.append((request, reach))


Deliver = Callable[[RecipientRef], bool]


@pytest.fixture
def post() -> Post:
    return Post()


@pytest.fixture
def deliver(office: Office, post: Post) -> Deliver:
    allowed = AllowedTargets((Rule(principals=(OWNER,), arns=("arn:aws:sqs:*:1:mine",)),))
    deliverer = Deliverer(office.jobs, office.store, allowed, SIGNING, office.clock, post)
    return lambda ref: deliverer.deliver(Delivery(ref, Told("id-1", {"type": "failed"})))


def test_a_webhook_is_signed_with_its_own_secret(office: Office, deliver: Deliver, post: Post) -> None:
    office.store.add(a_subscription(endpoint=HOOK))
    job = office.job(spec=a_spec(notify=Notify((NoticeEvent.FAILED,), Protocol.HTTPS, HOOK)))
    assert deliver(RecipientRef(OWNER, subscription_id="sub-1"))
    assert deliver(RecipientRef(OWNER, job_id=job.job_id))
    keys = [subscription_key(SIGNING, "sub-1"), notify_key(SIGNING, OWNER, HOOK)]
    for (request, reach), key in zip(post.sent, keys, strict=True):
        assert (request.url, reach.owner, request.headers["webhook-id"]) == (HOOK, OWNER, "id-1")
        body = request.body
        assert body is not None
        signature = sign("id-1", request.headers["webhook-timestamp"], body, key)
        assert request.headers["webhook-signature"] == signature


def test_nothing_is_sent_to_what_was_deleted_meanwhile(office: Office, deliver: Deliver, post: Post) -> None:
    assert not deliver(RecipientRef(OWNER, subscription_id="gone"))
    assert not deliver(RecipientRef(OWNER, job_id=office.job().job_id))
    office.store.add(a_subscription(owner=OTHER, subscription_id="theirs"))
    assert not deliver(RecipientRef(OWNER, subscription_id="theirs"))
    assert post.sent == []


def test_what_the_environment_no_longer_lists_is_not_reached(
    office: Office, deliver: Deliver, post: Post
) -> None:
    office.store.add(a_subscription(endpoint="https://10.0.0.1/"))
    queue = Notify((NoticeEvent.FAILED,), Protocol.SQS, "arn:aws:sqs:us-east-1:1:theirs")
    job = office.job(spec=a_spec(notify=queue))
    for ref in (RecipientRef(OWNER, subscription_id="sub-1"), RecipientRef(OWNER, job_id=job.job_id)):
        with pytest.raises(PermanentFailure, match="not listed"):
            deliver(ref)
    assert post.sent == []


def test_pauses_grow_to_an_hour() -> None:
    pauses = [pause_before(attempt).total_seconds() for attempt in range(1, 10)]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (10, 3600)
    assert 3 * 3600 < sum(pauses) < 5 * 3600
