"""Hosts and addresses in the configuration: the allow-list of ``http_fetch``, and addresses of services."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Final
from urllib.parse import urlsplit

from organism.model.addresses import is_public

API_KEY_ENV: Final = "put it into a variable and name that by `api_key_env`"
USUAL_PORTS: Final = {"http": 80, "https": 443}
MAX_NAME: Final = 253
MAX_PORT: Final = 65_535

_RULE: Final = re.compile(r"(?P<below>\*\.)?(?P<name>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:(?P<port>[0-9]{1,5}))?")
_NAME: Final = re.compile(r"([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*")
_IS_NUMBER: Final = re.compile(r"(.*\.)?([0-9]+|0[xX][0-9A-Fa-f]*)")
"""A name that resolvers take for an IPv4 address, in whichever form."""
_IPV4: Final = re.compile(r"(0|[1-9][0-9]{0,2})(\.(0|[1-9][0-9]{0,2})){3}")
_EXPECTED: Final = "expected a host such as `example.org`, `*.example.org` or `example.org:8443`"


@dataclass(frozen=True, slots=True)
class HostRule:
    """One line: a name or address, whether it means all names below it, and the port if it is not the usual one."""

    name: str
    is_below: bool = False
    port: int | None = None

    def allows(self, scheme: str, host: str, port: int) -> bool:
        """Whether the line allows this host (in its canonical form) and port."""
        is_port = port == (USUAL_PORTS[scheme] if self.port is None else self.port)
        return is_port and (host.endswith(f".{self.name}") if self.is_below else host == self.name)


def host_rule(text: str) -> HostRule:
    """The line. Raises ``ValueError``, which says what was expected."""
    found = _RULE.fullmatch(text)
    if found is None:
        raise ValueError(f"{_EXPECTED}: no scheme, no path, letters beyond ASCII as `xn--`")
    port = int(found["port"]) if found["port"] else None
    if port is not None and not 0 < port <= MAX_PORT:
        raise ValueError(f"expected a port from 1 to {MAX_PORT}, came {port}")
    name = canonical_host(found["name"])
    if name is None:
        raise ValueError(_EXPECTED)
    is_address = name.startswith("[") or _IPV4.fullmatch(name) is not None
    if is_address and found["below"]:
        raise ValueError(f"{_EXPECTED}; nothing is below an address")
    if is_address and not is_public(name.strip("[]")):
        raise ValueError("this address is not public, and http_fetch reaches public ones alone")
    return HostRule(name, bool(found["below"]), port)


def canonical_host(text: str) -> str | None:
    """A host in its canonical form: lower-case ASCII, four plain numbers, or IPv6 in brackets; else None."""
    if text.startswith("["):
        return _canonical_6(text)
    name = text.lower().removesuffix(".")
    if _IS_NUMBER.fullmatch(name):
        return name if _IPV4.fullmatch(name) and all(int(part) <= 255 for part in name.split(".")) else None  # noqa: PLR2004 - the largest of a byte
    return name if len(name) <= MAX_NAME and _NAME.fullmatch(name) else None


def _canonical_6(text: str) -> str | None:
    inner = text[1:-1]
    if not text.endswith("]") or "%" in inner:
        return None
    try:
        return f"[{IPv6Address(inner)}]"
    except ValueError:
        return None


def is_address(url: str) -> bool:
    """Whether it is one of http or https, with a host."""
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def wrong_address(url: str, example: str, remedy: str = API_KEY_ENV) -> str | None:
    """What is wrong with an address, which is not repeated; None for http(s) with a host and no credential."""
    expected = f"expected an address such as `{example}`"
    if not url.isprintable() or any(sign in url for sign in ' <>"\\'):
        return f"{expected}, came one with characters that no address has"
    if not is_address(url):
        return f"{expected}: http or https, a host, a path"
    if "@" in urlsplit(url).netloc or "?" in url or "#" in url:
        return f"{expected}, came one that may carry a credential; {remedy}"
    return None
