"""Where notices may be sent."""

import pytest
from duetime.endpoints import check_endpoint, check_notify, reach_for
from duetime.errors import InvalidField
from duetime.notify import NoticeEvent, Notify, Protocol
from duetime.targets import AllowedTargets, ForbiddenTarget

PAY, ADS = "arn:aws:iam::1:role/pay", "arn:aws:iam::1:role/ads"
ALLOWED = AllowedTargets.from_blocks(
    [
        {
            "principals": [PAY],
            "http_private_addresses": ["10.0.0.0/8"],
            "python": [],
            "arns": [
                "arn:aws:sqs:*:1:pay-*",
                "arn:aws:lambda:*:1:function:pay-*",
                "arn:aws:sqs:*:1:duetime-*",
            ],
        }
    ],
)
PAYS, ADSS = ALLOWED.reach_of(PAY), ALLOWED.reach_of(ADS)


@pytest.mark.parametrize(
    ("protocol", "endpoint"),
    [
        (Protocol.EMAIL, "ops+duetime@example.co.uk"),
        (Protocol.SMS, "+4915112345678"),
        (Protocol.HTTPS, "https://example.com/hook?key=1"),
        (Protocol.HTTPS, "https://10.1.2.3/hook"),
        (Protocol.HTTPS, "http://10.1.2.3/hook"),
        (Protocol.HTTPS, "http://collector.internal/hook"),
        (Protocol.SQS, "arn:aws:sqs:eu-west-1:1:pay-alerts"),
        (Protocol.LAMBDA, "arn:aws:lambda:eu-west-1:1:function:pay-alerts"),
    ],
)
def test_these_are_taken(protocol: Protocol, endpoint: str) -> None:
    check_endpoint(protocol, endpoint, PAYS)


@pytest.mark.parametrize(
    ("protocol", "endpoint"),
    [
        (Protocol.EMAIL, "ops"),
        (Protocol.EMAIL, "ops@example"),
        (Protocol.EMAIL, "ops@example.com\nBcc: all@example.com"),
        (Protocol.EMAIL, "a b@example.com"),
        (Protocol.EMAIL, f"{'a' * 60}@{'b' * 60}.{'c' * 60}.{'d' * 60}.{'e' * 60}.com"),
        (Protocol.SMS, "015112345678"),
        (Protocol.SMS, "+0151"),
        (Protocol.SMS, "+4915112345678x"),
        (Protocol.HTTPS, "ftp://example.com"),
        (Protocol.HTTPS, "https://user:password@example.com"),
        (Protocol.HTTPS, "https://127.0.0.1/"),
        (Protocol.HTTPS, "https://169.254.169.254/latest/meta-data"),
        (Protocol.HTTPS, "https://[::ffff:169.254.169.254]/"),
        (Protocol.HTTPS, "https://2130706433/"),
        (Protocol.HTTPS, "http://8.8.8.8/"),
        (Protocol.HTTPS, "http://192.168.1.1/"),
        (Protocol.SQS, "arn:aws:sqs:eu-west-1:1:ads-alerts"),
        (Protocol.SQS, "arn:aws:sqs:eu-west-1:1:pay-alerts.fifo"),
        (Protocol.SQS, "arn:aws:sqs:eu-west-1:1:duetime-prod-Notices"),
        (Protocol.SQS, "arn:aws:lambda:eu-west-1:1:function:pay-alerts"),
        (Protocol.SQS, "https://sqs.eu-west-1.amazonaws.com/1/pay-alerts"),
        (Protocol.LAMBDA, "arn:aws:sqs:eu-west-1:1:pay-alerts"),
        (Protocol.LAMBDA, "arn:aws:lambda:eu-west-1:1:function:other"),
    ],
)
def test_these_are_refused_by_the_name_of_their_field(protocol: Protocol, endpoint: str) -> None:
    with pytest.raises(InvalidField) as refused:
        check_endpoint(protocol, endpoint, PAYS)
    assert refused.value.field == "endpoint"


@pytest.mark.parametrize(
    ("protocol", "endpoint"),
    [
        (Protocol.HTTPS, "https://10.1.2.3/hook"),
        (Protocol.HTTPS, "http://collector.internal/hook"),
        (Protocol.SQS, "arn:aws:sqs:eu-west-1:1:pay-alerts"),
        (Protocol.LAMBDA, "arn:aws:lambda:eu-west-1:1:function:pay-alerts"),
    ],
)
def test_what_is_listed_for_one_owner_is_not_for_another(protocol: Protocol, endpoint: str) -> None:
    with pytest.raises(InvalidField):
        check_endpoint(protocol, endpoint, ADSS)


def test_a_name_reached_over_plain_http_must_turn_out_to_be_listed() -> None:
    reach = reach_for("http://collector.internal/", PAYS)
    reach.check_address("collector.internal", "10.1.2.3", 80)
    for address in ("8.8.8.8", "192.168.1.1"):
        with pytest.raises(ForbiddenTarget):
            reach.check_address("collector.internal", address, 80)
    reach_for("https://example.com/", PAYS).check_address("example.com", "8.8.8.8", 443)


def test_a_notify_block_is_refused_by_the_name_of_its_field() -> None:
    check_notify(None, PAYS)
    notify = Notify((NoticeEvent.FAILED,), Protocol.SQS, "arn:aws:sqs:eu-west-1:1:ads-alerts")
    with pytest.raises(InvalidField) as refused:
        check_notify(notify, PAYS)
    assert refused.value.field == "notify.endpoint"
