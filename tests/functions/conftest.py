"""The functions tier: each handler, as Lambda calls it, on the sample events of events/ and on AWS as moto plays it.
It proves parsing, wiring and mapping. What conditions and transactions really do is the contract tier's."""

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import boto3
import pytest
from moto import mock_aws

from tests.tables import JOBS, RECORDS, RUNS, create_tables

ALLOWED = {
    "principals": ["*"],
    "http_private_addresses": [],
    "python": ["duetime_examples.*"],
    "arns": ["arn:aws:*:us-east-1:123456789012:*"],
}
EVENTS = Path(__file__).parents[2] / "events"
PRIORITIES = ("high", "medium", "low")


def sample(name: str) -> dict[str, Any]:
    event: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_text())
    return event


@dataclass
class Context:
    function_name: str = "duetime-test"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:123456789012:function:duetime-test"
    aws_request_id: str = "request-1"
    log_stream_name: str = "2026/11/18/[$LATEST]0123456789abcdef"
    remaining_ms: int = 60_000

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining_ms


@pytest.fixture
def queue_urls(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """An account with the tables and the queues, and the environment that the stack gives to functions."""
    with mock_aws():
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        create_tables(boto3.client("dynamodb"))
        boto3.client("s3").create_bucket(Bucket="spill")
        secret = boto3.client("secretsmanager").create_secret(Name="signing", SecretString="s" * 64)
        sqs = boto3.client("sqs")
        names = [*PRIORITIES, *(f"{priority}-dead" for priority in PRIORITIES), "due", "due-dead"]
        urls = {name: sqs.create_queue(QueueName=name)["QueueUrl"] for name in names}
        variables = {
            "DUETIME_JOBS_TABLE": JOBS,
            "DUETIME_RUNS_TABLE": RUNS,
            "DUETIME_RUN_QUEUE_URLS": json.dumps({p: urls[p] for p in PRIORITIES}),
            "DUETIME_DEAD_LETTER_QUEUE_URLS": json.dumps({p: urls[f"{p}-dead"] for p in PRIORITIES}),
            "DUETIME_ENVIRONMENT": "test",
            "DUETIME_RECORDS_TABLE": RECORDS,
            "DUETIME_SPILL_BUCKET": "spill",
            "DUETIME_SIGNING_SECRET_ARN": secret["ARN"],
            "DUETIME_RUN_DAYS": "30",
            "DUETIME_RUN_LOG_DAYS": "30",
            "DUETIME_EVENT_DAYS": "30",
            "DUETIME_QUOTAS": json.dumps([{"principals": ["*"], "waiting_jobs": 1000}]),
            "DUETIME_DUE_QUEUE_URL": urls["due"],
            "DUETIME_HINT_LEAD_MS": "400",
            "DUETIME_WAKEUPS": json.dumps(_wakeups()),
            "DUETIME_ALLOWED_TARGETS": json.dumps([ALLOWED]),
            "DUETIME_ADMINS": json.dumps(["arn:aws:iam::123456789012:role/admin"]),
            "POWERTOOLS_SERVICE_NAME": "test",
            "POWERTOOLS_METRICS_NAMESPACE": "test",
        }
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.syspath_prepend(str(EVENTS.parent / "layers" / "tasks" / "python"))
        yield urls


def _wakeups() -> dict[str, str]:
    boto3.client("scheduler").create_schedule_group(Name="wake-ups")
    return {
        "group": "wake-ups",
        "role_arn": "arn:aws:iam::123456789012:role/wake-ups",
        "queue_arn": "arn:aws:sqs:us-east-1:123456789012:due",
        "dead_letter_queue_arn": "arn:aws:sqs:us-east-1:123456789012:due-dead",
    }


@pytest.fixture
def load_function(queue_urls: dict[str, str]) -> Callable[[str], ModuleType]:
    """A function as after a cold start: its module is read anew, with the environment of this test."""

    def load(name: str) -> ModuleType:
        module = f"functions.{name}.handler"
        sys.modules.pop(module, None)
        return importlib.import_module(module)

    return load


@pytest.fixture
def call(load_function: Callable[[str], ModuleType]) -> Callable[[str, dict[str, Any]], Any]:
    loaded: dict[str, ModuleType] = {}

    def invoke(name: str, event: dict[str, Any]) -> Any:
        if name not in loaded:
            loaded[name] = load_function(name)
        return loaded[name].handle(event, Context())

    return invoke
