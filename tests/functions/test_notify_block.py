"""A job's notify block, over HTTP."""

from typing import Any

import pytest
from duetime.signing import SigningKey
from duetime.webhooks import notify_key, show_secret

from tests.functions.http import Call, send
from tests.functions.test_requests import count_items, post, valid
from tests.functions.test_schedules import cron, runs

HOOK = {"events": ["late", "failed"], "protocol": "https", "endpoint": "https://example.com/hook"}
QUEUE = "arn:aws:sqs:us-east-1:123456789012:alerts"


def test_a_job_is_shown_with_its_block_and_its_runs_list_the_events(call: Call) -> None:
    job_id = send(call, "POST", "/jobs", valid(notify=HOOK)).body["job_id"]
    shown = send(call, "GET", f"/jobs/{job_id}").body
    assert shown["notify"] == HOOK | {"events": ["failed", "late"]}
    assert runs()[0]["notify"] == {"L": [{"S": "failed"}, {"S": "late"}]}


def test_a_job_without_one_pays_nothing_for_it(call: Call) -> None:
    job_id = send(call, "POST", "/jobs", valid()).body["job_id"]
    assert send(call, "GET", f"/jobs/{job_id}").body["notify"] is None
    assert "notify" not in runs()[0]


@pytest.mark.parametrize("endpoint", [QUEUE, "arn:aws:lambda:us-east-1:123456789012:function:alerts"])
def test_queues_and_functions_that_the_environment_lists_are_taken(call: Call, endpoint: str) -> None:
    notify = {"events": ["failed"], "protocol": endpoint.split(":")[2], "endpoint": endpoint}
    assert post(call, valid(notify=notify))[0] == 201


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"events": []}, "notify.events"),
        ({"events": ["failed", "failed"]}, "notify.events"),
        ({"events": ["exploded"]}, "notify.events.0"),
        ({"protocol": "email", "endpoint": "a@example.com"}, "notify.protocol"),
        ({"protocol": "sms", "endpoint": "+4915112345678"}, "notify.protocol"),
        ({"endpoint": "http://example.com/hook"}, "notify.endpoint"),
        ({"endpoint": "https://169.254.169.254/"}, "notify.endpoint"),
        ({"endpoint": ""}, "notify.endpoint"),
        ({"endpoint": None}, "notify.endpoint"),
        ({"endpoint": "https://example.com/" + "x" * 2048}, "notify.endpoint"),
        ({"protocol": "sqs", "endpoint": "arn:aws:sqs:us-east-1:999999999999:theirs"}, "notify.endpoint"),
        ({"protocol": "sqs", "endpoint": f"{QUEUE}.fifo"}, "notify.endpoint"),
        ({"surprise": 1}, "notify.surprise"),
    ],
)
def test_what_cannot_be_told_is_refused_and_nothing_is_written(
    call: Call, changes: dict[str, Any], field: str
) -> None:
    status, body = post(call, valid(notify=HOOK | changes))
    assert (status, [error["field"] for error in body["errors"]]) == (400, [field])
    assert count_items() == 0


def test_it_can_be_changed_and_taken_away_without_a_new_generation(call: Call) -> None:
    job_id = send(call, "POST", "/jobs", cron(notify=HOOK)).body["job_id"]
    path = f"/jobs/{job_id}"
    planned = len(runs())
    changed = send(call, "PUT", path, {"notify": HOOK | {"events": ["missed"]}})
    assert (changed.status, changed.body["notify"]["events"]) == (200, ["missed"])
    renamed = send(call, "PUT", path, {"name": "another"})
    assert renamed.body["notify"]["events"] == ["missed"]
    refused = send(call, "PUT", path, {"notify": HOOK | {"endpoint": "https://10.0.0.1/"}})
    assert (refused.status, refused.fields) == (400, ["notify.endpoint"])
    assert send(call, "PUT", path, {"notify": None}).body["notify"] is None
    assert len(runs()) == planned


def test_the_secret_of_a_block_follows_from_owner_and_url() -> None:
    from duetime.api.subscriptions import notify_secret_of
    from duetime.notify import NoticeEvent, Notify, Protocol

    from tests.factories import OWNER, a_job, a_spec

    signing = SigningKey(lambda: b"x")
    url = "https://example.com/hook"
    hook, queue = Notify((NoticeEvent.FAILED,), Protocol.HTTPS, url), Notify((), Protocol.SQS, QUEUE)
    secret = notify_secret_of(a_job(spec=a_spec(notify=hook)), signing)
    assert secret == show_secret(notify_key(signing, OWNER, url))
    assert notify_secret_of(a_job(spec=a_spec(notify=queue)), signing) is None
    assert notify_secret_of(a_job(), signing) is None
