"""What a caller may send to subscribe, and what is answered."""

from typing import Any

import pytest
from duetime.api.subscriptions import CreateSubscription, show_new_subscription, show_subscription
from duetime.errors import InvalidField
from duetime.notify import NoticeEvent, Protocol
from duetime.signing import SigningKey
from duetime.webhooks import show_secret, subscription_key
from pydantic import ValidationError

from tests.factories import OWNER
from tests.unit.test_notices import a_subscription

SIGNING = SigningKey(lambda: b"x")


def asked(**changes: Any) -> dict[str, Any]:
    values = {
        "protocol": "https",
        "endpoint": "https://example.com",
        "events": ["late", "failed"],
        "tag": "pay",
    }
    return {name: value for name, value in (values | changes).items() if value is not None}


def test_a_request_becomes_a_wish() -> None:
    wish = CreateSubscription.model_validate(asked()).to_wish()
    assert (wish.protocol, wish.tag, wish.job_id) == (Protocol.HTTPS, "pay", None)
    assert wish.events == (NoticeEvent.FAILED, NoticeEvent.LATE)


@pytest.mark.parametrize(
    "scope", [{"tag": None}, {"job_id": "j"}, {"all": True}, {"tag": "x", "job_id": "j", "all": True}]
)
def test_exactly_one_scope_is_given(scope: dict[str, Any]) -> None:
    with pytest.raises(InvalidField, match="exactly one"):
        CreateSubscription.model_validate(asked(**scope)).to_wish()
    CreateSubscription.model_validate(asked(tag=None, all=True)).to_wish()
    CreateSubscription.model_validate(asked(tag=None, job_id="j")).to_wish()


@pytest.mark.parametrize(
    "changes",
    [
        {"protocol": "fax"},
        {"events": []},
        {"events": ["failed", "failed"]},
        {"events": ["exploded"]},
        {"endpoint": ""},
        {"endpoint": 7},
        {"tag": ""},
        {"tag": "x" * 65},
        {"tag": None, "all": False},
        {"owner": "somebody"},
    ],
)
def test_what_makes_no_sense_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        CreateSubscription.model_validate(asked(**changes))


def test_the_secret_is_shown_to_whoever_made_it_and_in_no_list() -> None:
    hook = a_subscription(tag="pay")
    secret = show_secret(subscription_key(SIGNING, hook.subscription_id))
    assert show_new_subscription(hook, SIGNING) == show_subscription(hook) | {"secret": secret}
    assert show_subscription(hook) == {
        "subscription_id": "sub-1",
        "owner": OWNER,
        "protocol": "https",
        "endpoint": "https://example.com/hook",
        "events": ["failed"],
        "job_id": None,
        "tag": "pay",
        "all": False,
        "needs_confirmation": False,
        "created_at": "2026-11-18T07:00:00.123Z",
        "created_by": OWNER,
    }
    mail = a_subscription(protocol=Protocol.EMAIL, endpoint="a@example.com")
    assert show_new_subscription(mail, SIGNING)["secret"] is None
    assert show_subscription(mail)["needs_confirmation"]
    assert show_subscription(mail)["all"]
