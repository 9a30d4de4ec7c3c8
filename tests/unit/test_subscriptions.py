"""Who may hear of what."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from duetime.clock import ManualClock
from duetime.errors import Conflict, InvalidField, NotFound, TooMany, Unavailable
from duetime.job import Job
from duetime.memory_notices import MemorySubscriptions
from duetime.notify import NoticeEvent
from duetime.notify import Protocol as Channel
from duetime.subscriptions import MOST_PER_OWNER, Subscription, Subscriptions, Wish, address_of
from duetime.targets import AllowedTargets, Rule

from tests.factories import NOW, OWNER, a_job, a_spec
from tests.unit.test_notices import OTHER, a_subscription

QUEUE = "arn:aws:sqs:us-east-1:1:alerts"


class Topic:
    def __init__(self) -> None:
        self.arns: set[str] = set()
        self.log: list[tuple[str, ...]] = []

    def subscribe(self, owner: str, protocol: Channel, endpoint: str) -> str:
        self.log.append((owner, protocol, endpoint))
        arn = f"{owner}/{address_of(protocol, endpoint)}"
        self.arns.add(arn)
        return arn

    def unsubscribe(self, sns_arn: str) -> None:
        self.arns.remove(sns_arn)


class Desk:
    def __init__(self) -> None:
        self.topic, self.store = Topic(), MemorySubscriptions()
        allowed = AllowedTargets((Rule(principals=(OWNER,), arns=(QUEUE,)),))
        self.subscriptions = Subscriptions(self.store, self.topic, allowed, ManualClock(NOW))
        self.jobs: dict[str, Job] = {}

    def find(self, by: str, *, is_admin: bool = False) -> Callable[[str], Job]:
        def find(job_id: str) -> Job:
            job = self.jobs.get(job_id)
            if job is None or not (is_admin or job.owner == by):
                raise NotFound("there is no such job, or it is not yours")
            return job

        return find

    def create(
        self, by: str = OWNER, key: str | None = None, is_admin: bool = False, **wish: Any
    ) -> Subscription:
        values: dict[str, Any] = {
            "protocol": Channel.HTTPS,
            "endpoint": "https://example.com",
            "events": (NoticeEvent.FAILED,),
        }
        asked = Wish(**values | wish)
        return self.subscriptions.create(
            asked,
            by=by,
            find_job=self.find(by, is_admin=is_admin),
            request=values | wish,
            idempotency_key=key,
        )


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_webhook_needs_no_topic_and_the_others_do(desk: Desk) -> None:
    assert desk.create().sns_arn is None
    mail = desk.create(protocol=Channel.EMAIL, endpoint="a@example.com")
    assert mail.sns_arn in desk.topic.arns
    assert desk.topic.log == [(OWNER, "email", "a@example.com")]
    assert desk.subscriptions.list(OWNER) == sorted(
        desk.store.of_owner(OWNER), key=lambda each: each.subscription_id
    )


def test_the_same_key_and_body_is_the_same_subscription_and_another_body_a_conflict(desk: Desk) -> None:
    first = desk.create(key="k")
    assert desk.create(key="k") == first
    with pytest.raises(Conflict, match=first.subscription_id):
        desk.create(key="k", events=(NoticeEvent.LATE,))
    assert len(desk.subscriptions.list(OWNER)) == 1
    # Another caller's key is another key.
    assert desk.create(OTHER, key="k").subscription_id != first.subscription_id


def test_a_job_must_be_the_callers_own(desk: Desk) -> None:
    mine, theirs = a_job(), a_job(owner=OTHER)
    desk.jobs = {job.job_id: job for job in (mine, theirs)}
    assert desk.create(job_id=mine.job_id).owner == OWNER
    for job_id in (theirs.job_id, "no such job"):
        with pytest.raises(InvalidField) as refused:
            desk.create(job_id=job_id)
        assert refused.value.field == "job_id"
        assert "not yours" in refused.value.reason


def test_an_admins_subscription_to_anothers_job_belongs_to_that_owner_who_sees_and_ends_it(
    desk: Desk,
) -> None:
    theirs = a_job(owner=OTHER)
    desk.jobs = {theirs.job_id: theirs}
    made = desk.create(is_admin=True, job_id=theirs.job_id)
    assert (made.owner, made.created_by) == (OTHER, OWNER)
    assert desk.subscriptions.list(OTHER) == [made]
    assert desk.subscriptions.list(OWNER) == []
    desk.subscriptions.delete(OTHER, made.subscription_id)
    assert desk.subscriptions.list(OTHER) == []


def test_everything_means_everything_of_ones_own(desk: Desk) -> None:
    all_of_mine = desk.create()
    assert all_of_mine.wants(NoticeEvent.FAILED, a_job())
    assert not all_of_mine.wants(NoticeEvent.FAILED, a_job(owner=OTHER))


@pytest.mark.parametrize(
    ("scope", "is_wanted"),
    [
        ({}, True),
        ({"tag": "x"}, True),
        ({"tag": "y"}, False),
        ({"job_id": "j"}, True),
        ({"job_id": "k"}, False),
        ({"events": (NoticeEvent.LATE,)}, False),
        ({"owner": OTHER, "job_id": "j"}, False),
    ],
)
def test_what_a_subscription_wants(scope: dict[str, Any], is_wanted: bool) -> None:
    job = a_job(job_id="j", spec=a_spec(tags=("x", "z")))
    assert a_subscription(**scope).wants(NoticeEvent.FAILED, job) is is_wanted


def test_a_target_that_is_listed_for_another_is_refused_before_anything_is_made(desk: Desk) -> None:
    assert desk.create(protocol=Channel.SQS, endpoint=QUEUE).sns_arn
    with pytest.raises(InvalidField, match="not listed"):
        desk.create(OTHER, protocol=Channel.SQS, endpoint=QUEUE)
    assert len(desk.topic.log) == 1


def test_only_the_owner_can_end_a_subscription(desk: Desk) -> None:
    made = desk.create()
    with pytest.raises(NotFound):
        desk.subscriptions.delete(OTHER, made.subscription_id)
    assert desk.subscriptions.delete(OWNER, made.subscription_id) == made
    with pytest.raises(NotFound):
        desk.subscriptions.delete(OWNER, made.subscription_id)


def test_an_endpoint_stays_with_the_topic_as_long_as_a_subscription_uses_it(desk: Desk) -> None:
    mail: dict[str, Any] = {"protocol": Channel.EMAIL, "endpoint": "a@example.com"}
    first, second = desk.create(**mail), desk.create(**mail, events=(NoticeEvent.LATE,))
    assert first.sns_arn == second.sns_arn
    desk.subscriptions.delete(OWNER, first.subscription_id)
    assert desk.topic.arns == {second.sns_arn}
    desk.subscriptions.delete(OWNER, second.subscription_id)
    assert desk.topic.arns == set()


def test_an_endpoint_that_is_given_up_and_taken_at_the_same_moment_stays(desk: Desk) -> None:
    mail: dict[str, Any] = {"protocol": Channel.EMAIL, "endpoint": "a@example.com"}
    first = desk.create(**mail)
    second = a_subscription(**mail, sns_arn=first.sns_arn)

    class Overtaken(Topic):
        def unsubscribe(self, sns_arn: str) -> None:
            super().unsubscribe(sns_arn)
            # Who had found it there a moment before now writes its own.
            desk.store.add(second)

    overtaken = Overtaken()
    overtaken.arns = desk.topic.arns
    replace(desk.subscriptions, topics=overtaken).delete(OWNER, first.subscription_id)
    assert overtaken.arns == {second.sns_arn}


def test_owners_with_the_same_mailbox_do_not_get_in_each_others_way(desk: Desk) -> None:
    mail: dict[str, Any] = {"protocol": Channel.EMAIL, "endpoint": "a@example.com"}
    mine, theirs = desk.create(**mail), desk.create(OTHER, **mail)
    assert mine.sns_arn != theirs.sns_arn
    desk.subscriptions.delete(OTHER, theirs.subscription_id)
    assert desk.topic.arns == {mine.sns_arn}


def test_an_owner_has_at_most_fifty(desk: Desk) -> None:
    for _ in range(MOST_PER_OWNER):
        desk.create()
    with pytest.raises(TooMany):
        desk.create()
    desk.create(OTHER)
    desk.subscriptions.delete(OWNER, desk.subscriptions.list(OWNER)[0].subscription_id)
    desk.create()


def test_a_repeated_request_is_answered_though_the_limit_is_reached(desk: Desk) -> None:
    first = desk.create(key="k")
    for _ in range(MOST_PER_OWNER - 1):
        desk.create()
    assert desk.create(key="k") == first


def test_what_the_topic_could_not_end_can_be_deleted_again(desk: Desk) -> None:
    made = desk.create(protocol=Channel.EMAIL, endpoint="a@example.com")

    class Refusing(Topic):
        def unsubscribe(self, sns_arn: str) -> None:
            raise Unavailable("try again")

    with pytest.raises(Unavailable):
        replace(desk.subscriptions, topics=Refusing()).delete(OWNER, made.subscription_id)
    assert desk.subscriptions.delete(OWNER, made.subscription_id) == made
    assert desk.topic.arns == set()
