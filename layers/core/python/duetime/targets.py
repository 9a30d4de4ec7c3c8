"""What the environment lets tasks reach. The worker acts for many owners, so nothing is reachable by default
except public HTTP. Checked when a job is written and again when it runs: the list may have changed in between."""

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

from duetime.errors import PermanentFailure

Address = IPv4Address | IPv6Address


class ForbiddenTarget(PermanentFailure):
    """Not a passing condition: the same job would be refused again."""


@dataclass(frozen=True, slots=True)
class AllowedTargets:
    # Networks that `http` may reach though they are not public.
    http_private_networks: tuple[IPv4Network | IPv6Network, ...] = ()
    # Patterns of `module:function` that `python` may call.
    python_functions: tuple[str, ...] = ()

    @classmethod
    def from_block(cls, block: Mapping[str, Any]) -> "AllowedTargets":
        return cls(
            http_private_networks=tuple(ip_network(text) for text in block["http_private_addresses"]),
            python_functions=tuple(block["python"]),
        )

    def check_address(self, host: str, address: str) -> None:
        ip = _unwrapped(ip_address(address))
        if ip.is_global and not ip.is_multicast:
            return
        if not any(ip in network for network in self.http_private_networks if network.version == ip.version):
            raise ForbiddenTarget(
                f"{host} resolves to {ip}, which is not a public address and not listed in this environment's "
                "allowed_targets"
            )

    def check_python_function(self, reference: str) -> None:
        if not any(fnmatchcase(reference, pattern) for pattern in self.python_functions):
            raise ForbiddenTarget(f"{reference} is not listed in this environment's allowed_targets")


def _unwrapped(ip: Address) -> Address:
    """An IPv4 address can hide in an IPv6 one; what is checked is where the packets would go."""
    if isinstance(ip, IPv6Address):
        if ip.ipv4_mapped:
            return ip.ipv4_mapped
        if ip.sixtofour:
            return ip.sixtofour
        if ip in _NAT64:
            return IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip


_NAT64 = IPv6Network("64:ff9b::/96")
