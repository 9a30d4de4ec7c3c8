"""Notifications, on the deployed stack: from the queue of notices to whoever listens, and from a run."""

import json
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from duetime.clock import SystemClock
from duetime.dynamo_subscriptions import DynamoSubscriptions
from duetime.notice_messages import write_message
from duetime.notices import Notice
from duetime.notify import NoticeEvent, Protocol
from duetime.signing import SigningKey
from duetime.sns_topics import SnsTopics
from duetime.subscriptions import Subscription
from duetime.webhooks import notify_key, show_secret
from duetime_client import ApiError, Client

from tests.e2e.conftest import Account, a_request, ended_run, wait_for
from tests.listener import Answer, Listener, listening
from tests.unit.test_webhooks import documented_recipe


def a_notice(job: dict[str, Any], number: int = 0) -> str:
    notice = Notice(
        notice_id=str(uuid.uuid4()),
        event=NoticeEvent.FAILED,
        owner=job["owner"],
        job_id=job["job_id"],
        run_id=f"run-{number}",
        at=datetime.now(UTC),
        error="out of order",
    )
    return write_message(notice)


@pytest.fixture
def put_notice(account: Account) -> Callable[[dict[str, Any]], None]:
    sqs, url = account.service("sqs"), account.output("NoticesQueueUrl")

    def put(job: dict[str, Any], count: int = 1) -> None:
        for number in range(count):
            sqs.send_message(QueueUrl=url, MessageBody=a_notice(job, number))

    return put


@pytest.fixture
def secret_of(account: Account) -> Callable[[str, str], str]:
    """What the answer of POST /jobs tells the owner."""
    read = account.service("secretsmanager").get_secret_value
    key = SigningKey(lambda: read(SecretId=account.output("SigningSecretArn"))["SecretString"].encode())
    return lambda owner, url: show_secret(notify_key(key, owner, url))


def waiting_job(client: Client, **changes: Any) -> dict[str, Any]:
    request = a_request(schedule_type="FUTURE", schedule_time="2035-01-01T00:00:00Z", **changes)
    return client.get_job(client.create_job(request)["job_id"])


def hook(receiver: Listener, *events: str) -> dict[str, Any]:
    return {"events": list(events), "protocol": "https", "endpoint": f"{receiver.url}/hook"}


def test_a_notice_is_posted_with_a_signature_that_the_documented_recipe_verifies(
    client: Client,
    put_notice: Callable[[dict[str, Any]], None],
    secret_of: Callable[[str, str], str],
) -> None:
    with listening() as receiver:
        job = waiting_job(client, name="Payout", tags=["pay"], notify=hook(receiver, "failed"))
        put_notice(job)
        received = wait_for(lambda: receiver.received)[0]
    secret = secret_of(job["owner"], job["notify"]["endpoint"])
    documented_recipe()(secret, received.headers, received.body)
    with pytest.raises(ValueError, match="not signed with this secret"):
        documented_recipe()(secret, received.headers, received.body + b" ")
    told = json.loads(received.body)
    assert (told["type"], told["data"]["job_id"]) == ("failed", job["job_id"])
    assert (told["data"]["job_name"], told["data"]["tags"]) == ("Payout", ["pay"])
    assert told["data"]["error"] == "out of order"


def test_whoever_fails_to_answer_is_told_again(client: Client, put_notice: Callable[..., None]) -> None:
    answers = iter([Answer(500), *[Answer(204, b"")] * 5])
    with listening(lambda _: next(answers)) as receiver:
        put_notice(waiting_job(client, notify=hook(receiver, "failed")))
        wait_for(lambda: len(receiver.received) >= 2)
    first, second = receiver.received[:2]
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.body == second.body


def test_a_storm_is_told_one_by_one_five_times_and_then_counted(
    client: Client, account: Account, put_notice: Callable[..., None]
) -> None:
    records = account.output("RecordsTableName")

    def windows(job: dict[str, Any]) -> list[Any]:
        found = account.service("dynamodb").query(
            TableName=records,
            KeyConditionExpression="subject = :subject",
            ExpressionAttributeValues={":subject": {"S": f"storm#job:{job['job_id']}"}},
        )
        items: list[Any] = found["Items"]
        return items

    def counted(job: dict[str, Any]) -> int:
        return sum(len(item["told"]["L"]) + int(item["held"]["N"]) for item in windows(job))

    with listening() as receiver:
        job = waiting_job(client, notify=hook(receiver, "failed"))
        put_notice(job, 12)
        wait_for(lambda: counted(job) == 12)
        # It may have begun in one window and ended in the next.
        told = sum(len(item["told"]["L"]) for item in windows(job))
        assert 5 <= told <= 10
        wait_for(lambda: len(receiver.received) == told)
    assert len({request.headers["webhook-id"] for request in receiver.received}) == told


@pytest.fixture
def subscribe(account: Account) -> Callable[[str, str], None]:
    """As job_service will: the endpoint at the owner's topic, and the subscription in the table."""
    variables = account.service("lambda").get_function_configuration(FunctionName="duetime-local-notifier")
    prefix = variables["Environment"]["Variables"]["DUETIME_NOTICE_TOPICS"]
    topics = SnsTopics(lambda: account.service("sns"), prefix)
    store = DynamoSubscriptions(account.service("dynamodb"), records_table=account.output("RecordsTableName"))

    def add(owner: str, queue_arn: str) -> None:
        subscription = Subscription(
            subscription_id=str(uuid.uuid4()),
            owner=owner,
            protocol=Protocol.SQS,
            endpoint=queue_arn,
            events=(NoticeEvent.FAILED,),
            created_at=SystemClock().now(),
            created_by=owner,
            sns_arn=topics.subscribe(owner, Protocol.SQS, queue_arn),
        )
        assert store.add(subscription) is None

    return add


def demo_queue(account: Account) -> tuple[str, str]:
    """A queue that lets Duetime's topics in, as docs/notifications.md says."""
    name = f"demo-{uuid.uuid4().hex[:8]}"
    arn, here = f"arn:aws:sqs:us-east-1:000000000000:{name}", "us-east-1:000000000000"
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": arn,
        "Condition": {"ArnLike": {"aws:SourceArn": f"arn:aws:sns:{here}:duetime-local-notices-*"}},
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    url = account.service("sqs").create_queue(QueueName=name, Attributes={"Policy": policy})["QueueUrl"]
    return url, arn


def test_a_queue_hears_through_its_owners_topic_and_another_owners_queue_does_not(
    account: Account, put_notice: Callable[..., None], subscribe: Callable[[str, str], None]
) -> None:
    """IAM is enforced: that the notifier may publish, and what a queue's policy needs, is proven here."""
    # New owners: the notifier knows nothing of them yet, and will look up their subscriptions.
    mine, theirs = (account.client_with(account.output("OperatorPolicyArn")) for _ in range(2))
    my_job, their_job = waiting_job(mine), waiting_job(theirs)
    (my_url, my_queue), (their_url, their_queue) = demo_queue(account), demo_queue(account)
    subscribe(my_job["owner"], my_queue)
    subscribe(their_job["owner"], their_queue)
    sqs = account.service("sqs")

    def received(url: str) -> list[dict[str, Any]]:
        messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        return [json.loads(message["Body"])["data"] for message in messages]

    put_notice(my_job)
    assert [told["job_id"] for told in wait_for(lambda: received(my_url))] == [my_job["job_id"]]
    put_notice(their_job)
    # Theirs came after mine: had they been told of mine, it would be here too.
    assert [told["job_id"] for told in wait_for(lambda: received(their_url))] == [their_job["job_id"]]
    assert received(my_url) == []


def test_a_dead_lettered_run_leads_to_a_signed_notification(account: Account) -> None:
    # A new owner: nobody remembers from before that it has no subscriptions.
    client = account.client_with(account.output("OperatorPolicyArn"))
    with listening() as receiver, listening(lambda _: Answer(400, b"out of order")) as target:
        made = client.create_subscription(
            {
                "protocol": "https",
                "endpoint": receiver.url,
                "events": ["dead_lettered"],
                "tag": f"e2e-{uuid.uuid4().hex[:8]}",
            }
        )
        request = a_request(task={"type": "http", "url": target.url}, max_retries=0, tags=[made["tag"]])
        job_id = client.create_job(request)["job_id"]
        run = ended_run(client, job_id)
        received = wait_for(lambda: receiver.received)[0]
    assert run["status"] == "DEAD_LETTERED"
    documented_recipe()(made["secret"], received.headers, received.body)
    told = json.loads(received.body)
    assert told["type"] == "dead_lettered"
    assert (told["data"]["job_id"], told["data"]["run_id"]) == (job_id, run["run_id"])
    assert told["data"]["error"] == "the target answered 400: out of order"
    client.delete_subscription(made["subscription_id"])


def test_a_subscription_is_its_owners_alone(client: Client, account: Account) -> None:
    other = account.client_with(account.output("OperatorPolicyArn"))
    queue = f"arn:aws:sqs:us-east-1:000000000000:demo-{uuid.uuid4().hex[:8]}"
    asked = {"protocol": "sqs", "endpoint": queue, "events": ["failed"], "all": True}
    made = client.create_subscription(asked, idempotency_key=queue)
    assert client.create_subscription(asked, idempotency_key=queue) == made
    assert made["subscription_id"] not in [
        each["subscription_id"] for each in other.list_subscriptions()["items"]
    ]
    with pytest.raises(ApiError) as refused:
        other.delete_subscription(made["subscription_id"])
    assert refused.value.status == 404
    assert client.delete_subscription(made["subscription_id"])["endpoint"] == queue
    assert made["subscription_id"] not in [
        each["subscription_id"] for each in client.list_subscriptions()["items"]
    ]
    theirs = other.create_job(a_request())["job_id"]
    with pytest.raises(ApiError) as refused:
        client.create_subscription({**asked, "all": None, "job_id": theirs})
    assert refused.value.status == 400


def test_a_pause_is_told_with_its_author(client: Client) -> None:
    with listening() as receiver:
        job = waiting_job(client, notify=hook(receiver, "paused"))
        client.pause_job(job["job_id"])
        received = wait_for(lambda: receiver.received)[0]
    told = json.loads(received.body)
    assert (told["type"], told["data"]["by"]) == ("paused", job["owner"])
