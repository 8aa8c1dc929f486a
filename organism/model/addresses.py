"""Which network addresses are public, that is, in no internal network (S21).

Python's ``is_global`` changes with patch releases and ignores embedded addresses. This table follows the IANA
special-purpose registries for IPv4 and IPv6, as of 2026. Of IPv6 only global unicast can be public, and an address with
an embedded IPv4 address is as public as that one.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

_NOT_PUBLIC_4: Final = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by carriers
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local, with the metadata services of clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and the broadcast address
    )
)
_UNICAST_6: Final = IPv6Network("2000::/3")
_NOT_PUBLIC_6: Final = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID
        "2001:db8::/32",  # documentation
        "3fff::/20",  # documentation
    )
)
_NAT64: Final = IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR: Final = IPv6Network("2002::/16")
_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})
"""What precedes the IPv4 address in the lower half of an ISATAP address."""
_LOW_32: Final = 0xFFFF_FFFF


def is_public(address: str) -> bool:
    """Whether an address in its usual notation is public. Raises ``ValueError`` for anything else."""
    found = ip_address(address)
    return _is_public_4(found) if isinstance(found, IPv4Address) else _is_public_6(found)


def _is_public_4(address: IPv4Address) -> bool:
    return not any(address in network for network in _NOT_PUBLIC_4)


def _is_public_6(address: IPv6Address) -> bool:
    number = int(address)
    if address.scope_id is not None:
        return False
    if address in _NAT64:
        return _is_public_4(IPv4Address(number & _LOW_32))
    if address in _SIX_TO_FOUR:
        return _is_public_4(IPv4Address(number >> 80 & _LOW_32)) and _is_plain(number)
    return address in _UNICAST_6 and not any(address in network for network in _NOT_PUBLIC_6) and _is_plain(number)


def _is_plain(number: int) -> bool:
    """Whether it is no ISATAP address, or one of a public IPv4 address."""
    return number >> 32 & _LOW_32 not in _ISATAP or _is_public_4(IPv4Address(number & _LOW_32))


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
