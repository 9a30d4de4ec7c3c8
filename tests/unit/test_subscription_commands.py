"""The commands for subscriptions say to the API what their options say."""

from typing import Any

import pytest
from click.testing import CliRunner
from duetime_client import cli
from duetime_client.client import Client

HOOK = ["subscribe", "https", "https://example.com/hook", "--event", "failed", "--event", "late"]
BODY = {"protocol": "https", "endpoint": "https://example.com/hook", "events": ["failed", "late"]}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    made: list[tuple[Any, ...]] = []

    class Recorder(Client):
        def call(self, method: str, path: str, **options: Any) -> dict[str, Any]:
            made.append((method, path, options.get("body"), options.get("headers")))
            return {"items": []}

    monkeypatch.setattr(cli, "_connect", lambda *_: Recorder("https://api", "us-east-1", None))
    return made


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ([*HOOK, "--tag", "pay"], ("POST", "/subscriptions", BODY | {"tag": "pay"}, {})),
        ([*HOOK, "--job", "j"], ("POST", "/subscriptions", BODY | {"job_id": "j"}, {})),
        (
            [*HOOK, "--all", "--idempotency-key", "k"],
            ("POST", "/subscriptions", BODY | {"all": True}, {"Idempotency-Key": "k"}),
        ),
        (["subscriptions"], ("GET", "/subscriptions", None, None)),
        (["unsubscribe", "a/b"], ("DELETE", "/subscriptions/a%2Fb", None, None)),
    ],
)
def test_a_command_makes_one_request(
    calls: list[tuple[Any, ...]], command: list[str], expected: tuple[Any, ...]
) -> None:
    done = CliRunner().invoke(cli.main, command)
    assert (done.exit_code, done.exception) == (0, None)
    assert calls == [expected]
