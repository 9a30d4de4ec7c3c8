"""The notifier, and what it is connected to, on AWS as moto plays it."""

import json
import threading
from collections.abc import Callable
from datetime import timedelta
from types import ModuleType
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from duetime.clock import SystemClock
from duetime.delivering import MOST_TRIES, Deliverer
from duetime.dynamo_store import DynamoStore
from duetime.dynamo_subscriptions import DynamoSubscriptions
from duetime.errors import InvalidField, Unavailable
from duetime.job import Job
from duetime.notice_messages import (
    Delivery,
    NoticeForOne,
    RecipientRef,
    SummaryDue,
    Told,
    read_message,
    write_message,
)
from duetime.notices import Notice
from duetime.notify import NoticeEvent, Notify, Protocol
from duetime.signing import SigningKey
from duetime.sns_topics import SnsTopics
from duetime.storms import window_at
from duetime.webhooks import notify_key, show_secret

from tests.factories import NOW, OWNER, a_job, a_spec
from tests.functions.conftest import Context
from tests.functions.test_status_feed import metrics_in
from tests.listener import Answer, listening
from tests.tables import JOBS, RECORDS, RUNS
from tests.unit.test_notices import OTHER, a_subscription
from tests.unit.test_webhooks import documented_recipe

PREFIX = "arn:aws:sns:us-east-1:123456789012:duetime-test-notices-"
LOOPBACK = {"principals": ["*"], "http_private_addresses": ["127.0.0.0/8"], "python": []}


class Functions:
    """The account, and the notifier in it."""

    def __init__(self, load: Callable[[str], ModuleType], urls: dict[str, str]) -> None:
        self.sqs, self.sns = boto3.client("sqs"), boto3.client("sns")
        self.url = urls["notices"]
        dynamodb = boto3.client("dynamodb")
        self.store = DynamoStore(dynamodb, jobs_table=JOBS, runs_table=RUNS)
        self.subscriptions = DynamoSubscriptions(dynamodb, records_table=RECORDS)
        self.topics = SnsTopics(lambda: boto3.client("sns"), PREFIX)
        self.module = load("notifier")

    def queue(self, name: str) -> tuple[str, str]:
        url = self.sqs.create_queue(QueueName=name)["QueueUrl"]
        return url, f"arn:aws:sqs:us-east-1:123456789012:{name}"

    def job(self, **changes: Any) -> Job:
        job = a_job(**changes)
        self.store.create(job, [])
        return job

    def call(self, *bodies: str, receives: int = 1, context: Context | None = None) -> list[str]:
        """The ids of the messages that must come back."""
        records = [
            {
                "messageId": f"m{number}",
                "receiptHandle": "handle",
                "body": body,
                "attributes": {"ApproximateReceiveCount": str(receives)},
            }
            for number, body in enumerate(bodies)
        ]
        answer = self.module.handle({"Records": records}, context or Context())
        return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]

    def call_with_queued(self) -> None:
        """What the notifier sent itself."""
        assert self.call(*(message["Body"] for message in self.waiting(self.url))) == []

    def waiting(self, url: str) -> list[Any]:
        messages = self.sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
        )
        return list(messages.get("Messages", []))


@pytest.fixture
def functions(
    monkeypatch: pytest.MonkeyPatch, load_function: Callable[[str], ModuleType], queue_urls: dict[str, str]
) -> Functions:
    allowed = [LOOPBACK | {"arns": ["arn:aws:sqs:us-east-1:123456789012:*"]}]
    monkeypatch.setenv("DUETIME_ALLOWED_TARGETS", json.dumps(allowed))
    return Functions(load_function, queue_urls)


def a_notice(job: Job, number: int = 0, event: NoticeEvent = NoticeEvent.FAILED) -> Notice:
    return Notice(notice_id=f"n{number}", event=event, owner=job.owner, job_id=job.job_id, at=NOW)


def test_a_queue_hears_through_the_owners_topic_what_its_subscription_wants(functions: Functions) -> None:
    url, arn = functions.queue("alerts")
    sns_arn = functions.topics.subscribe(OWNER, Protocol.SQS, arn)
    functions.subscriptions.add(
        a_subscription(protocol=Protocol.SQS, endpoint=arn, sns_arn=sns_arn, tag="pay")
    )
    tagged = functions.job(spec=a_spec(name="Payout", tags=("pay",)))
    notices = [a_notice(tagged), a_notice(functions.job(), 1), a_notice(tagged, 2, NoticeEvent.SUCCEEDED)]
    assert functions.call(*(write_message(notice) for notice in notices)) == []
    functions.call_with_queued()
    (message,) = functions.waiting(url)
    body = json.loads(message["Body"])
    assert (body["type"], body["data"]["job_name"], body["data"]["tags"]) == ("failed", "Payout", ["pay"])
    attributes = message["MessageAttributes"]
    assert attributes["owner"]["StringValue"] == OWNER
    assert attributes["event"]["StringValue"] == "failed"


def test_a_topics_subscriptions_hear_only_what_is_addressed_to_them_and_is_their_owners(
    functions: Functions,
) -> None:
    (first_url, first), (second_url, second) = functions.queue("first"), functions.queue("second")
    for arn in (first, second):
        functions.topics.subscribe(OWNER, Protocol.SQS, arn)
    sns_arn = functions.topics.subscribe(OWNER, Protocol.SQS, first)
    functions.subscriptions.add(a_subscription(protocol=Protocol.SQS, endpoint=first, sns_arn=sns_arn))
    functions.call(write_message(a_notice(functions.job())))
    functions.call_with_queued()
    assert len(functions.waiting(first_url)) == 1
    assert functions.waiting(second_url) == []
    policies = [
        json.loads(
            functions.sns.get_subscription_attributes(SubscriptionArn=each["SubscriptionArn"])["Attributes"][
                "FilterPolicy"
            ]
        )
        for each in functions.sns.list_subscriptions()["Subscriptions"]
    ]
    assert [policy["owner"] for policy in policies] == [[OWNER]] * 2


def test_each_owner_has_a_topic_of_their_own(functions: Functions) -> None:
    arns = [functions.topics.subscribe(owner, Protocol.EMAIL, "a@example.com") for owner in (OWNER, OTHER)]
    topics = {arn.rpartition(":")[0] for arn in arns}
    assert len(topics) == 2
    assert all(topic.startswith(PREFIX) for topic in topics)
    # To subscribe again is no error, also for a function that has just started.
    again = SnsTopics(lambda: boto3.client("sns"), PREFIX)
    assert again.subscribe(OWNER, Protocol.EMAIL, "a@example.com") == arns[0]
    again.unsubscribe(arns[0])
    again.unsubscribe(arns[0])
    assert len(functions.sns.list_subscriptions()["Subscriptions"]) == 1


def test_what_sns_refuses_is_the_callers_mistake_and_what_fails_is_put_off() -> None:
    def failing(code: str) -> SnsTopics:
        class Client:
            def subscribe(self, **_: Any) -> None:
                raise ClientError({"Error": {"Code": code, "Message": "no"}}, "Subscribe")

        return SnsTopics(Client, PREFIX)  # type: ignore[arg-type]

    with pytest.raises(InvalidField):
        failing("InvalidParameter").subscribe(OWNER, Protocol.EMAIL, "a@example.com")
    with pytest.raises(Unavailable):
        failing("Throttled").subscribe(OWNER, Protocol.EMAIL, "a@example.com")


def test_a_webhook_is_queued_and_then_posted_with_a_signature_that_the_recipe_verifies(
    functions: Functions,
) -> None:
    with listening() as receiver:
        notify = Notify((NoticeEvent.FAILED,), Protocol.HTTPS, f"{receiver.url}/hook")
        job = functions.job(spec=a_spec(notify=notify))
        assert functions.call(write_message(a_notice(job))) == []
        (queued,) = functions.waiting(functions.url)
        assert isinstance(read_message(queued["Body"]), Delivery)
        assert functions.call(queued["Body"]) == []
    (received,) = receiver.received
    secret = show_secret(notify_key(SigningKey(lambda: b"the signing secret"), OWNER, notify.endpoint))
    documented_recipe()(secret, received.headers, received.body)
    assert (received.method, received.path) == ("POST", "/hook")
    assert json.loads(received.body)["data"]["job_id"] == job.job_id


def test_whoever_does_not_answer_well_is_tried_again_and_holds_up_nobody(functions: Functions) -> None:
    url, arn = functions.queue("alerts")
    queue = functions.job(spec=a_spec(notify=Notify((NoticeEvent.FAILED,), Protocol.SQS, arn)))
    elsewhere = Answer(302, headers={"Location": "/"})
    with listening(lambda _: Answer(500)) as broken, listening(lambda _: elsewhere) as moved:
        hooks = [
            functions.job(spec=a_spec(notify=Notify((NoticeEvent.FAILED,), Protocol.HTTPS, url)))
            for url in (broken.url, moved.url)
        ]
        deliveries = [
            write_message(Delivery(RecipientRef(OWNER, job_id=job.job_id), Told("id-1", {"type": "failed"})))
            for job in (*hooks, queue)
        ]
        assert functions.call("not JSON", *deliveries) == ["m0", "m1", "m2"]
        assert (len(broken.received), len(moved.received)) == (1, 1)
    (message,) = functions.waiting(url)
    assert json.loads(message["Body"]) == {"type": "failed"}


def test_a_storm_asks_for_its_summary_by_a_delayed_message_and_tells_it_once(functions: Functions) -> None:
    url, arn = functions.queue("alerts")
    job = functions.job(spec=a_spec(notify=Notify((NoticeEvent.FAILED,), Protocol.SQS, arn)))
    assert functions.call(*(write_message(a_notice(job, number)) for number in range(8))) == []
    queued = [read_message(message["Body"]) for message in functions.waiting(functions.url)]
    assert [type(message) for message in queued] == [Delivery] * 5
    attributes = functions.sqs.get_queue_attributes(
        QueueUrl=functions.url, AttributeNames=["ApproximateNumberOfMessagesDelayed"]
    )
    assert attributes["Attributes"]["ApproximateNumberOfMessagesDelayed"] == "1"
    ref = RecipientRef(OWNER, job_id=job.job_id)
    now = SystemClock().now()
    # The test may have begun in one window and be in the next.
    windows = [window_at(ref.key, NoticeEvent.FAILED, moment) for moment in (now - timedelta(minutes=5), now)]
    assert functions.call(*(write_message(SummaryDue(ref, window)) for window in windows * 2)) == []
    (summary,) = [read_message(message["Body"]) for message in functions.waiting(functions.url)]
    assert isinstance(summary, Delivery)
    assert summary.told.content["data"]["count"] == 3
    assert functions.waiting(url) == []


def a_delivery(job: Job) -> str:
    return write_message(Delivery(RecipientRef(OWNER, job_id=job.job_id), Told("id-1", {"type": "failed"})))


def hooked(functions: Functions, url: str) -> Job:
    return functions.job(spec=a_spec(notify=Notify((NoticeEvent.FAILED,), Protocol.HTTPS, url)))


def test_a_recipient_whose_tries_are_used_up_is_given_up_and_no_dead_letter(
    functions: Functions, capsys: pytest.CaptureFixture[str]
) -> None:
    with listening(lambda _: Answer(500)) as broken, listening() as well:
        deliveries = [a_delivery(hooked(functions, each.url)) for each in (broken, well)]
        assert functions.call(*deliveries, receives=MOST_TRIES - 1) == ["m0"]
        assert functions.call(*deliveries, receives=MOST_TRIES) == []
    first, second = metrics_in(capsys)
    assert (first["NoticesSent"], "NoticesFailed" in first) == ([1], False)
    assert (second["NoticesSent"], second["NoticesFailed"]) == ([1], [1])


def test_what_is_not_allowed_any_more_is_given_up_at_once(
    functions: Functions, capsys: pytest.CaptureFixture[str]
) -> None:
    assert functions.call(a_delivery(hooked(functions, "https://10.0.0.1/"))) == []
    (line,) = metrics_in(capsys)
    assert line["NoticesFailed"] == [1]


def test_what_duetime_itself_fails_at_comes_back_until_it_is_a_dead_letter(
    functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: Any) -> None:
        raise ClientError({"Error": {"Code": "InternalServerError"}}, "GetItem")

    monkeypatch.setattr(DynamoStore, "load_jobs", down)
    assert functions.call(a_delivery(a_job()), receives=MOST_TRIES) == ["m0"]


def test_a_topic_that_is_gone_has_no_listeners_and_its_messages_are_given_up(
    functions: Functions, capsys: pytest.CaptureFixture[str]
) -> None:
    mail: dict[str, Any] = {"protocol": Protocol.EMAIL, "endpoint": "a@example.com"}
    functions.subscriptions.add(a_subscription(**mail, sns_arn="arn:1"))
    assert functions.call(*(write_message(a_notice(functions.job(), number)) for number in range(6))) == []
    functions.call_with_queued()
    suppressed, failed = metrics_in(capsys)
    assert (suppressed["NoticesSuppressed"], failed["NoticesFailed"]) == ([1], [5])


def test_one_who_hangs_comes_back_alone_before_the_functions_time_is_up(
    functions: Functions, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()

    def hang(*_: Any) -> bool:
        return over.wait(30)

    monkeypatch.setattr(Deliverer, "deliver", hang)
    job = hooked(functions, "https://example.com/")
    # Eleven hang on ten threads, and stand before the news.
    bodies = [a_delivery(job)] * 11 + [write_message(a_notice(job))]
    context = Context(remaining_ms=functions.module.RESERVED_MS + 1000)
    try:
        assert functions.call(*bodies, context=context) == [f"m{number}" for number in range(11)]
        assert len(functions.waiting(functions.url)) == 1
    finally:
        over.set()


def test_ending_a_subscription_that_was_never_confirmed_is_no_error_and_what_fails_is_put_off() -> None:
    def failing(code: str) -> SnsTopics:
        class Client:
            def unsubscribe(self, **_: Any) -> None:
                raise ClientError({"Error": {"Code": code, "Message": "no"}}, "Unsubscribe")

        return SnsTopics(Client, PREFIX)  # type: ignore[arg-type]

    for code in ("InvalidParameter", "InvalidParameterException", "NotFound"):
        failing(code).unsubscribe("arn:1")
    with pytest.raises(Unavailable):
        failing("Throttled").unsubscribe("arn:1")


def test_news_for_one_recipient_is_told_to_that_one_alone(functions: Functions) -> None:
    for name in ("a", "b"):
        functions.subscriptions.add(a_subscription(subscription_id=name))
    notices = [a_notice(functions.job()), a_notice(functions.job(), 1, NoticeEvent.LATE)]
    ref = RecipientRef(OWNER, subscription_id="b")
    assert functions.call(*(write_message(NoticeForOne(ref, notice)) for notice in notices)) == []
    queued = [read_message(message["Body"]) for message in functions.waiting(functions.url)]
    assert [each.recipient for each in queued if isinstance(each, Delivery)] == [ref, ref]
