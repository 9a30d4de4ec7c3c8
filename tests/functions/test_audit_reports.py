"""What the watcher does with what an audit found."""

from collections.abc import Callable
from datetime import timedelta
from types import ModuleType
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from duetime.audit import Action
from duetime.auditing import AuditReport, Finding
from duetime.dynamo_subscriptions import DynamoSubscriptions
from duetime.notify import NoticeEvent, Protocol
from duetime.subscriptions import Subscription

from tests.factories import NOW, a_job
from tests.tables import RECORDS


def test_every_miss_is_logged_and_told_though_the_first_could_not_be(
    load_function: Callable[[str], ModuleType], caplog: pytest.LogCaptureFixture
) -> None:
    watcher, job = load_function("watcher"), a_job()
    DynamoSubscriptions(boto3.client("dynamodb"), records_table=RECORDS).add(
        Subscription(
            subscription_id="s",
            owner=job.owner,
            protocol=Protocol.HTTPS,
            endpoint="https://example.com",
            events=(NoticeEvent.MISSED,),
            created_at=NOW,
            created_by=job.owner,
        )
    )
    tried = []

    def refuse(**request: Any) -> None:
        tried.append(request)
        raise ClientError({"Error": {"Code": "ServiceUnavailable"}}, "SendMessageBatch")

    watcher.sqs.send_message_batch = refuse
    missed = [Finding(job, Action.MISSED, NOW + timedelta(minutes=n), f"r{n}") for n in range(3)]
    watcher._report_audit(AuditReport(missed=3, findings=missed))
    assert len(tried) == 3
    assert sum("missed fire" in record.getMessage() for record in caplog.records) == 3
