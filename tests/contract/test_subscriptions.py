"""Subscriptions and storms: what is true of them in memory is true of DynamoDB."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from duetime.dynamo_storms import DynamoStorms
from duetime.dynamo_subscriptions import DynamoSubscriptions
from duetime.memory_notices import MemoryStorms, MemorySubscriptions
from duetime.notify import NoticeEvent, Notify, Protocol
from duetime.store import Store
from duetime.storms import Storms, Window, WindowKey, judge, window_at
from duetime.subscriptions import Subscription, SubscriptionStore

from tests.factories import NOW, a_job, a_run, a_spec
from tests.tables import RECORDS
from tests.unit.test_notices import a_subscription
from tests.unit.test_storms import notices

KINDS = ["memory", "dynamo"]


@pytest.fixture(params=KINDS)
def subscriptions(request: pytest.FixtureRequest) -> SubscriptionStore:
    if request.param == "memory":
        return MemorySubscriptions()
    return DynamoSubscriptions(request.getfixturevalue("dynamo_client"), records_table=RECORDS)


@pytest.fixture(params=KINDS)
def storms(request: pytest.FixtureRequest) -> Storms:
    if request.param == "memory":
        return MemoryStorms()
    return DynamoStorms(request.getfixturevalue("dynamo_client"), records_table=RECORDS)


@pytest.fixture
def owner() -> str:
    return f"arn:aws:iam::123456789012:role/{uuid.uuid4()}"


@pytest.fixture
def key() -> WindowKey:
    return window_at(f"subscription:{uuid.uuid4()}", NoticeEvent.FAILED, NOW)


def full(owner: str, **changes: Any) -> Subscription:
    values: dict[str, Any] = {
        "owner": owner,
        "protocol": Protocol.SQS,
        "endpoint": "arn:aws:sqs:us-east-1:1:q",
        "events": (NoticeEvent.FAILED, NoticeEvent.LATE),
        "tag": "pay",
        "sns_arn": "arn:aws:sns:us-east-1:1:t:1",
        "request_digest": "d",
    }
    return a_subscription(**values | changes)


def test_what_is_added_is_found_by_its_owner_alone(subscriptions: SubscriptionStore, owner: str) -> None:
    made = full(owner)
    assert subscriptions.add(made) is None
    assert subscriptions.get(owner, made.subscription_id) == made
    assert subscriptions.get(owner + "x", made.subscription_id) is None
    assert subscriptions.of_owner(owner) == [made]
    assert list(subscriptions.of_owner(owner + "x")) == []


def test_a_second_one_of_the_same_id_is_not_written(subscriptions: SubscriptionStore, owner: str) -> None:
    first = full(owner)
    subscriptions.add(first)
    assert subscriptions.add(full(owner, endpoint="arn:aws:sqs:us-east-1:1:other")) == first
    assert subscriptions.of_owner(owner) == [first]


def test_the_oldest_is_listed_first(subscriptions: SubscriptionStore, owner: str) -> None:
    made = [
        full(owner, subscription_id=name, created_at=NOW + timedelta(seconds=second))
        for name, second in (("b", 1), ("c", 0), ("a", 2))
    ]
    for subscription in made:
        subscriptions.add(subscription)
    assert [each.subscription_id for each in subscriptions.of_owner(owner)] == ["c", "b", "a"]


def test_what_is_removed_is_returned_once(subscriptions: SubscriptionStore, owner: str) -> None:
    made = full(owner)
    subscriptions.add(made)
    assert subscriptions.remove(owner + "x", made.subscription_id) is None
    assert subscriptions.remove(owner, made.subscription_id) == made
    assert subscriptions.remove(owner, made.subscription_id) is None
    assert list(subscriptions.of_owner(owner)) == []


def test_a_window_is_as_it_was_written(storms: Storms, key: WindowKey) -> None:
    empty = storms.window(key)
    assert empty == Window(key)
    after, _ = judge(empty, notices(30, jobs=25))
    assert storms.exchange(empty, after)
    there = storms.window(key)
    assert there == replace(after, version=1)
    claimed = replace(there, claimed_by="message-1")
    assert storms.exchange(there, claimed)
    assert storms.window(key) == replace(claimed, version=2)


def test_who_saw_an_older_window_does_not_write(storms: Storms, key: WindowKey) -> None:
    empty = storms.window(key)
    assert storms.exchange(empty, replace(empty, told=("a",)))
    assert not storms.exchange(empty, replace(empty, told=("b",)))
    assert storms.window(key).told == ("a",)


def test_windows_of_other_events_and_times_are_others(storms: Storms, key: WindowKey) -> None:
    empty = storms.window(key)
    storms.exchange(empty, replace(empty, told=("a",)))
    for other in (
        key._replace(event=NoticeEvent.LATE),
        key._replace(starts_at=key.ends_at),
        key._replace(recipient=key.recipient + "x"),
    ):
        assert storms.window(other).told == ()


def test_of_many_who_claim_one_wins(storms: Storms, key: WindowKey) -> None:
    held, _ = judge(storms.window(key), notices(9))
    storms.exchange(Window(key), held)
    seen = storms.window(key)

    def claim(number: int) -> bool:
        return storms.exchange(seen, replace(seen, claimed_by=f"message-{number}"))

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(claim, range(16))) == 1


def test_a_jobs_notify_block_and_its_runs_part_of_it_are_kept(store: Store) -> None:
    notify = Notify((NoticeEvent.FAILED, NoticeEvent.LATE), Protocol.HTTPS, "https://example.com/hook")
    job = a_job(spec=a_spec(notify=notify))
    run = a_run(job)
    store.create(job, [run])
    assert store.get_job(job.job_id) == job
    assert store.get_run(run.key) == run
    assert run.notify == (NoticeEvent.FAILED, NoticeEvent.LATE)
