"""The tasks tier: each kind of task, really performed as far as this machine allows: requests to a listener on
loopback, functions in processes of their own, AWS as moto plays it. It proves what success, transient and permanent
failure, timeout and cancellation of each kind look like to a run."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import boto3
import pytest
from duetime.clock import SystemClock
from duetime.stopping import StopReason
from duetime.supervision import supervised
from duetime.targets import AllowedTargets
from duetime.tasks import AttemptContext, execute
from duetime.tasks.aws import client
from moto import mock_aws

from tests.factories import NOW, OWNER

ACCOUNT = "123456789012"
ALLOWED = AllowedTargets.from_blocks(
    [
        {
            "principals": ["*"],
            "http_private_addresses": ["127.0.0.0/8"],
            "python": ["example_tasks:*"],
            "arns": [f"arn:aws:*:us-east-1:{ACCOUNT}:*demo*"],
        }
    ]
)


def a_context(
    settings: dict[str, Any], payload: Any = None, *, seconds: float = 5, **changes: Any
) -> AttemptContext:
    context = AttemptContext(
        job_id="3f1f7c52-9d5c-4a44-8f1b-6d1a2c9f0b11",
        run_id="20261118T070000123Z-1-3f1f7c529d5c4a44",
        owner=OWNER,
        settings=settings,
        payload=payload,
        attempt=2,
        due_at=NOW,
        fence=7,
        deadline_at=SystemClock().now() + timedelta(seconds=seconds),
    )
    return replace(context, **changes)


def perform(context: AttemptContext) -> Any:
    return execute(context, ALLOWED.reach_of(context.owner))


def attempt(settings: dict[str, Any], payload: Any = None, **options: Any) -> Any:
    return perform(a_context(settings, payload, **options))


def attempt_and_stop(context: AttemptContext, reached: threading.Event, reason: StopReason) -> Any:
    """Under supervision, as the worker does it; stopped as soon as the work has begun."""

    def stop() -> None:
        assert reached.wait(10)
        context.stop.give(reason)

    stopper = threading.Thread(target=stop)
    stopper.start()
    try:
        return supervised(lambda: perform(context), context.stop)
    finally:
        stopper.join()


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """An account as moto plays it; clients that a task made in another one are forgotten."""
    with mock_aws():
        monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        client.cache_clear()
        yield lambda service: boto3.client(service, region_name="us-east-1")
        client.cache_clear()
