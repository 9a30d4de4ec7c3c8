"""Signatures, by the recipe that docs/notifications.md gives to receivers."""

import re
from pathlib import Path
from typing import Any

import pytest
from duetime.signing import SigningKey
from duetime.webhooks import notify_key, show_secret, sign, signed_request, subscription_key

from tests.factories import NOW, OWNER

SIGNING = SigningKey(lambda: b"the environment's")
KEY = subscription_key(SIGNING, "sub-1")
DOCS = Path(__file__).parents[2] / "docs" / "notifications.md"


def documented_recipe() -> Any:
    """The function `verify`, as the page shows it."""
    (code,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.S)
    names: dict[str, Any] = {}
    exec(code, names)
    return names["verify"]


def test_the_documented_recipe_verifies_what_was_signed() -> None:
    verify = documented_recipe()
    request = signed_request("https://example.com", "id-1", {"type": "failed", "ö": 1}, KEY, NOW)
    now = NOW.timestamp()
    verify(show_secret(KEY), request.headers, request.body, now=now)
    capitals = {name.title(): value for name, value in request.headers.items()}
    verify(show_secret(KEY), capitals, request.body, now=now)


@pytest.mark.parametrize("spoilt", ["body", "id", "secret", "old", "future", "missing"])
def test_the_documented_recipe_refuses_everything_else(spoilt: str) -> None:
    verify = documented_recipe()
    request = signed_request("https://example.com", "id-1", {"type": "failed"}, KEY, NOW)
    headers, body = dict(request.headers), request.body
    assert body is not None
    secret, now = show_secret(KEY), NOW.timestamp()
    match spoilt:
        case "body":
            body += b" "
        case "id":
            headers["webhook-id"] = "id-2"
        case "secret":
            secret = show_secret(subscription_key(SIGNING, "sub-2"))
        case "old":
            now += 301
        case "future":
            now -= 301
        case "missing":
            del headers["webhook-signature"]
    with pytest.raises((ValueError, KeyError)):
        verify(secret, headers, body, now=now)


def test_the_signature_is_that_of_the_convention() -> None:
    """The example of the Standard Webhooks specification's reference libraries."""
    import base64

    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    signature = sign("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}', key)
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_each_subscription_has_a_secret_of_its_own_and_a_receiver_of_notify_blocks_has_one() -> None:
    url = "https://example.com"
    keys = {
        subscription_key(SIGNING, "sub-1"),
        subscription_key(SIGNING, "sub-2"),
        notify_key(SIGNING, OWNER, url),
        notify_key(SIGNING, OWNER, url + "/other"),
        notify_key(SIGNING, OWNER + "x", url),
    }
    assert len(keys) == 5
    assert all(show_secret(key).startswith("whsec_") for key in keys)
