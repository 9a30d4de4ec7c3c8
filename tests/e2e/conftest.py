"""The end-to-end tier: signed HTTP against the stack that the real CDK CLI deployed into MiniStack, with IAM enforced.
It proves the packages, the wiring and that the grants suffice. A stack that is already up is used and left up."""

import json
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from botocore.credentials import Credentials
from duetime_client import Client

from local.layout import Layout
from local.stack import Up, ensure_up, take_down

GREET = {"type": "python", "function": "duetime_examples.greetings:greet"}
PATIENCE_SECONDS = 60
ENDED = ("SUCCEEDED", "DEAD_LETTERED", "CANCELLED", "SKIPPED")


@pytest.fixture(scope="session")
def up() -> Iterator[Up]:
    started = ensure_up()
    yield started
    if started.started:
        take_down()


@pytest.fixture(scope="session")
def stack(up: Up) -> dict[str, str]:
    """What tools read: the file, not the object."""
    values: dict[str, str] = json.loads(Layout().stack_file.read_text())
    return values


@pytest.fixture(scope="session")
def client(stack: dict[str, str]) -> Client:
    return Client.from_stack_file(Layout().stack_file)


@dataclass
class Account:
    """The emulated account, as its administrator sees it."""

    stack: dict[str, str]

    def service(self, name: str) -> Any:
        return boto3.client(
            name,
            endpoint_url=self.stack["endpoint_url"],
            region_name=self.stack["region"],
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    def output(self, key: str) -> str:
        described = self.service("cloudformation").describe_stacks(StackName=self.stack["stack_name"])
        outputs = {item["OutputKey"]: item["OutputValue"] for item in described["Stacks"][0]["Outputs"]}
        value: str = outputs[key]
        return value

    def client_with(self, *policy_arns: str, name: str | None = None) -> Client:
        return self.client_of(self.user_with(*policy_arns, name=name))

    def client_of(self, credentials: Credentials) -> Client:
        return Client(self.stack["api_url"], self.stack["region"], credentials)

    def user_with(self, *policy_arns: str, name: str | None = None) -> Credentials:
        """A new user (or one that must have this name) with these policies."""
        iam, name = self.service("iam"), name or f"e2e-{uuid.uuid4().hex[:12]}"
        with suppress(iam.exceptions.EntityAlreadyExistsException):
            iam.create_user(UserName=name)
        for arn in policy_arns:
            iam.attach_user_policy(UserName=name, PolicyArn=arn)
        key = iam.create_access_key(UserName=name)["AccessKey"]
        return Credentials(key["AccessKeyId"], key["SecretAccessKey"])


@pytest.fixture(scope="session")
def account(stack: dict[str, str]) -> Account:
    return Account(stack)


def a_request(**changes: Any) -> dict[str, Any]:
    return {"name": "e2e", "schedule_type": "IMMEDIATE", "task": GREET, "payload": {"name": "Ada"}} | changes


def wait_for(condition: Callable[[], Any], patience: float = PATIENCE_SECONDS) -> Any:
    """What the condition first finds. Not an assertion about speed: it only ends what would hang."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError(f"it did not happen within {patience} s")


def ended_run(client: Client, job_id: str) -> dict[str, Any]:
    def latest() -> dict[str, Any] | None:
        run: dict[str, Any] | None = client.get_status(job_id)["latest_run"]
        return run if run and run["status"] in ENDED else None

    run: dict[str, Any] = wait_for(latest)
    return run
