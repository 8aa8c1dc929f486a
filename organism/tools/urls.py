"""A strict parser of URLs; all checks and the connection itself use what it gives (S21).

Two parsers that read a URL differently can be tricked, so this grammar accepts less than any other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import quote, urljoin

import idna

from organism.config.host_rules import MAX_PORT, USUAL_PORTS, HostRule, canonical_host

MAX_URL: Final = 2_048

_URL: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<rest>[^#]*)(?:#.*)?")
_AUTHORITY: Final = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]+)(?::(?P<port>[0-9]{1,5}))?")
_NO_HOST: Final = re.compile(r"//(?:[/?#]|$)")
_BLANK: Final = re.compile(r"[\x00-\x20\x7f\\]")
_PATH_SIGNS: Final = "/?%:@!$&'()*+,;=-._~"
"""Characters that stay as they are in a path or query; the rest is percent-encoded."""


class Refused(ValueError):
    """A URL is not accepted; the text says why."""


class Target(NamedTuple):
    """Where a URL leads: ``host`` is canonical (IPv6 in brackets), ``path`` goes with the query."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        return self.host if self.port == USUAL_PORTS[self.scheme] else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


def target_of(url: str, most: int = MAX_URL) -> Target:
    if len(url) > most:
        raise Refused(f"a URL has at most {most} characters; {len(url)} came")
    if _BLANK.search(url):
        raise Refused("a URL has no spaces, control characters or backslashes; write them as %20 and so on")
    found = _URL.fullmatch(url)
    if found is None or found["scheme"].lower() not in USUAL_PORTS:
        raise Refused("a URL begins with https:// or http://, then comes a host")
    scheme, authority = found["scheme"].lower(), found["authority"]
    if "@" in authority:
        raise Refused("no user and no password stand in a URL")
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None:
        raise Refused(f"{authority[:80]!r} is no host, with a port or without")
    port = USUAL_PORTS[scheme] if parts["port"] is None else int(parts["port"])
    if not 0 < port <= MAX_PORT:
        raise Refused(f"a port is a number from 1 to {MAX_PORT}")
    rest = quote(found["rest"], safe=_PATH_SIGNS)
    return Target(scheme, _host(parts["host"]), port, rest if rest.startswith("/") else f"/{rest}")


def _host(text: str) -> str:
    host = canonical_host(text if text.isascii() else _to_ascii(text))
    if host is None:
        raise Refused(f"{text[:80]!r} is no host: a name, four numbers such as 8.8.8.8, or an IPv6 address in brackets")
    return host


def _to_ascii(text: str) -> str:
    try:
        return idna.encode(text, uts46=True, std3_rules=True).decode()
    except (idna.IDNAError, UnicodeError) as error:
        raise Refused(f"{text[:80]!r} is no name of a host in any script") from error


def followed(before: Target, location: str) -> Target:
    if _BLANK.search(location):
        raise Refused("a redirect leads to a URL with spaces, control characters or backslashes")
    if _NO_HOST.match(location):
        raise Refused("a redirect leads to a URL without a host")
    after = target_of(location if _URL.fullmatch(location) else urljoin(before.url, location))
    if before.scheme == "https" and after.scheme != "https":
        raise Refused("a redirect leads from https to http")
    return after


def allowed(target: Target, rules: Sequence[HostRule]) -> bool:
    return any(rule.allows(target.scheme, target.host, target.port) for rule in rules)
