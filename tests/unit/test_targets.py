import pytest
from duetime.arns import Arn, matches
from duetime.targets import AllowedTargets, ForbiddenTarget, Reach, Rule

PAY, ADS = "arn:aws:iam::1:role/pay", "arn:aws:iam::1:role/ads"
NOBODY = Reach(PAY)
BLOCKS = [
    {
        "principals": ["*"],
        "http_private_addresses": ["127.0.0.0/8", "::1/128"],
        "python": ["shared.*"],
        "arns": [],
    },
    {
        "principals": [PAY],
        "http_private_addresses": ["10.0.0.0/8"],
        "python": ["payouts.*"],
        "arns": ["arn:aws:sqs:*:1:pay-*"],
    },
]
ALLOWED = AllowedTargets.from_blocks(BLOCKS)


def arn(text: str) -> Arn:
    found = Arn.parse(text)
    assert found is not None
    return found


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111"])
def test_a_public_address_may_be_reached(address: str) -> None:
    NOBODY.check_address("example.com", address, 443)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "169.254.170.2",
        "169.254.100.1",
        "100.64.0.1",
        "192.0.0.1",
        "192.0.0.192",
        "192.0.2.1",
        "198.18.0.1",
        "203.0.113.9",
        "0.0.0.0",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:0:127.0.0.1",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "fc00::1",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "ff02::1",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b::7f00:1",
        "64:ff9b:1::1",
        "2001:0:7f00:1::",
        "2001:0:4136:e378:8000:63bf:5601:5601",
        "2001:db8::1",
        "100::1",
    ],
)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    with pytest.raises(ForbiddenTarget, match="not a public address"):
        NOBODY.check_address("rebind.example.com", address, 80)


def test_an_environment_lists_what_is_not_public_and_for_whom() -> None:
    pay, ads = ALLOWED.reach_of(PAY), ALLOWED.reach_of(ADS)
    for address in ("127.0.0.1", "::1", "::ffff:127.0.0.1"):
        ads.check_address("localhost", address, 8080)
    pay.check_address("internal", "10.1.2.3", 80)
    with pytest.raises(ForbiddenTarget, match="not listed for arn:aws:iam::1:role/ads"):
        ads.check_address("internal", "10.1.2.3", 80)
    with pytest.raises(ForbiddenTarget):
        pay.check_address("metadata", "169.254.169.254", 80)


@pytest.mark.parametrize(
    ("variable", "value", "port"),
    [
        ("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:9001", 9001),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:4610", 4610),
        ("AWS_ENDPOINT_URL", "http://localhost:4610", 4610),
    ],
)
def test_the_workers_own_endpoints_are_out_of_reach_even_where_loopback_is_listed(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, port: int
) -> None:
    monkeypatch.setenv(variable, value)
    reach = ALLOWED.reach_of(ADS)
    for address in ("127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1"):
        with pytest.raises(ForbiddenTarget, match="belongs to the worker itself"):
            reach.check_address("localhost", address, port)
    reach.check_address("localhost", "127.0.0.1", port + 1)


def test_only_listed_functions_may_be_called_and_by_whom() -> None:
    ALLOWED.reach_of(PAY).check_python("payouts.daily:run")
    ALLOWED.reach_of(ADS).check_python("shared.greet:run")
    for owner, function in ((ADS, "payouts.daily:run"), (PAY, "os:system"), (PAY, "payoutsx:run")):
        with pytest.raises(ForbiddenTarget, match="not listed"):
            ALLOWED.reach_of(owner).check_python(function)


def test_only_listed_arns_may_be_reached_and_by_whom() -> None:
    ALLOWED.reach_of(PAY).check_arn(arn("arn:aws:sqs:eu-west-1:1:pay-out"))
    for owner, text in (
        (ADS, "arn:aws:sqs:eu-west-1:1:pay-out"),
        (PAY, "arn:aws:sqs:eu-west-1:2:pay-out"),
        (PAY, "arn:aws:sns:eu-west-1:1:pay-out"),
        (PAY, "arn:aws:sqs:eu-west-1:1:other"),
    ):
        with pytest.raises(ForbiddenTarget, match="not listed"):
            ALLOWED.reach_of(owner).check_arn(arn(text))


@pytest.mark.parametrize(
    "text",
    [
        "arn:aws:lambda:us-east-1:1:function:duetime-prod-job_service",
        "arn:aws:lambda:us-east-1:1:function:duetime-prod-job_service:live",
        "arn:aws:lambda:us-east-1:1:function:duetime-dev-worker",
        "arn:aws:sqs:us-east-1:1:duetime-prod-DueQueue",
    ],
)
def test_duetime_itself_is_out_of_reach_whatever_a_pattern_says(text: str) -> None:
    everything = AllowedTargets((Rule(arns=("*",)),)).reach_of(PAY)
    with pytest.raises(ForbiddenTarget, match="belongs to Duetime itself"):
        everything.check_arn(arn(text))
    everything.check_arn(arn("arn:aws:lambda:us-east-1:1:function:my-duetime-prod-thing"))


@pytest.mark.parametrize(
    ("text", "pattern", "is_match"),
    [
        ("arn:aws:sqs:r:1:a-b", "arn:aws:sqs:*:1:a-*", True),
        ("a:b/c", "a*", True),
        ("ab", "a?", True),
        ("a", "a?", False),
        ("a[bc]", "a[bc]", True),
        ("ab", "a[bc]", False),
        ("a\nb", "a*", True),
        ("ba", "a*", False),
        ("a.c", "abc", False),
    ],
)
def test_a_pattern_means_what_it_means_in_iam(text: str, pattern: str, is_match: bool) -> None:
    assert matches(text, pattern) is is_match


@pytest.mark.parametrize(
    "text",
    [
        "",
        "arn",
        "arn:aws:sqs:r:1",
        "arn:aws::r:1:x",
        "arn:aws:sqs:r:1:",
        "urn:aws:sqs:r:1:x",
        "arn:aws:s:r:1:a b",
    ],
)
def test_what_is_no_arn_is_none(text: str) -> None:
    assert Arn.parse(text) is None
