"""What tasks may reach. The worker acts for many owners, so each owner reaches what the environment lists for it, and
nothing else except public HTTP. Checked when a job is written and again when it runs: the list may have changed."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final
from urllib.parse import urlsplit

from duetime.arns import Arn, matches
from duetime.errors import PermanentFailure

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

OWN_PREFIX: Final = "duetime-"
"""How the names of Duetime's own resources begin, in every environment. A task that could invoke job_service with an
event of its own making would be anybody; so these are out of reach, whatever a pattern says."""


class ForbiddenTarget(PermanentFailure):
    """Not a passing condition: the same job would be refused again."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What some principals may reach."""

    principals: tuple[str, ...] = ("*",)
    # Networks that `http` may reach though they are not public.
    http_private_networks: tuple[Network, ...] = ()
    # `module:function` that `python` may call.
    python: tuple[str, ...] = ()
    # Functions, queues, topics, buses, state machines, clusters, task definitions, secrets, parameters.
    arns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reach:
    """What one owner's tasks may reach."""

    owner: str
    rules: tuple[Rule, ...] = ()

    def check_address(self, host: str, address: str, port: int) -> None:
        ip = _unwrapped(ip_address(address))
        if any(_is_same(ip, control) and port == its_port for control, its_port in _control_endpoints()):
            raise ForbiddenTarget(f"{host} resolves to {ip}, port {port}, which belongs to the worker itself")
        if not _is_public(ip) and not self.lists_address(address):
            raise ForbiddenTarget(
                f"{host} resolves to {ip}, which is not a public address and not listed for {self.owner} in this "
                "environment's allowed_targets"
            )

    def lists_address(self, address: str) -> bool:
        """Whether it is one of the private addresses that the environment names for this owner."""
        ip = _unwrapped(ip_address(address))
        listed = (network for rule in self.rules for network in rule.http_private_networks)
        return any(ip in network for network in listed if network.version == ip.version)

    def check_python(self, reference: str) -> None:
        self._require(reference, (pattern for rule in self.rules for pattern in rule.python))

    def check_arn(self, arn: Arn) -> None:
        # The name is the last part of a queue, function or topic, and behind a slash or colon elsewhere.
        if any(part.startswith(OWN_PREFIX) for part in arn.resource.replace("/", ":").split(":")):
            raise ForbiddenTarget(f"{arn.text} belongs to Duetime itself")
        self._require(arn.text, (pattern for rule in self.rules for pattern in rule.arns))

    def _require(self, target: str, patterns: Iterable[str]) -> None:
        if not any(matches(target, pattern) for pattern in patterns):
            raise ForbiddenTarget(
                f"{target} is not listed for {self.owner} in this environment's allowed_targets"
            )


@dataclass(frozen=True, slots=True)
class AllowedTargets:
    rules: tuple[Rule, ...] = ()

    @classmethod
    def from_blocks(cls, blocks: Iterable[Mapping[str, Any]]) -> "AllowedTargets":
        return cls(tuple(_rule(block) for block in blocks))

    def reach_of(self, owner: str) -> Reach:
        mine = tuple(
            rule for rule in self.rules if any(matches(owner, pattern) for pattern in rule.principals)
        )
        return Reach(owner, mine)


def _rule(block: Mapping[str, Any]) -> Rule:
    return Rule(
        principals=tuple(block["principals"]),
        http_private_networks=tuple(ip_network(text) for text in block["http_private_addresses"]),
        python=tuple(block["python"]),
        arns=tuple(block["arns"]),
    )


def _is_public(ip: Address) -> bool:
    """`is_global` alone lets through what is reserved, such as ::127.0.0.1, and old site-local addresses."""
    odd = ip.is_multicast or ip.is_reserved or getattr(ip, "is_site_local", False)
    return ip.is_global and not odd and ip not in _PROTOCOLS


# Some versions of Python take all but its first eight for public; one cloud's metadata service is there.
_PROTOCOLS: Final = IPv4Network("192.0.0.0/24")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_TEREDO: Final = IPv6Network("2001::/32")


def _unwrapped(ip: Address) -> Address:
    """An IPv4 address can hide in an IPv6 one; what is checked is where the packets would go."""
    if isinstance(ip, IPv6Address):
        if ip.ipv4_mapped:
            return ip.ipv4_mapped
        if ip.sixtofour:
            return ip.sixtofour
        if ip in _NAT64:
            return IPv4Address(int(ip) & 0xFFFFFFFF)
        if ip in _TEREDO and ip.teredo:
            return ip.teredo[1]
    return ip


def _is_same(ip: Address, host: str) -> bool:
    """Whatever listens on one loopback address may listen on all of them."""
    try:
        control = ip_address(host)
    except ValueError:
        return False
    return ip == control or (ip.is_loopback and control.is_loopback)


def _control_endpoints() -> set[tuple[str, int]]:
    """What a worker talks to by itself: Lambda's runtime interface, which hands out events and takes answers, and in
    the emulator all of AWS. An environment that lists loopback does not mean these."""
    found = set()
    for name in ("AWS_LAMBDA_RUNTIME_API", "AWS_ENDPOINT_URL"):
        address = os.environ.get(name, "")
        parts = urlsplit(address if "//" in address else f"//{address}")
        if parts.hostname and parts.port:
            host = "127.0.0.1" if parts.hostname == "localhost" else parts.hostname
            found.add((host, parts.port))
    return found
