import pytest
from duetime.targets import AllowedTargets, ForbiddenTarget

NOTHING = AllowedTargets()
LOOPBACK = AllowedTargets.from_block({"http_private_addresses": ["127.0.0.0/8", "::1/128"], "python": []})


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111"])
def test_a_public_address_may_be_reached(address: str) -> None:
    NOTHING.check_address("example.com", address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "169.254.170.2",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fd00:ec2::254",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "2002:7f00:1::",
        "64:ff9b::a9fe:a9fe",
    ],
)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    with pytest.raises(ForbiddenTarget, match="not a public address"):
        NOTHING.check_address("rebind.example.com", address)


def test_an_environment_can_list_what_is_not_public() -> None:
    LOOPBACK.check_address("localhost", "127.0.0.1")
    LOOPBACK.check_address("localhost", "::1")
    LOOPBACK.check_address("localhost", "::ffff:127.0.0.1")
    with pytest.raises(ForbiddenTarget):
        LOOPBACK.check_address("metadata", "169.254.169.254")


def test_only_listed_functions_may_be_called() -> None:
    allowed = AllowedTargets(python_functions=("payouts.*",))
    allowed.check_python_function("payouts.daily:run")
    for other in ("os:system", "payoutsx:run", "subprocess:run"):
        with pytest.raises(ForbiddenTarget, match="not listed"):
            allowed.check_python_function(other)
