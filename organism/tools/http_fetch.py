"""``http_fetch``: a page of a listed host, and of nothing else (S21).

The first URL and each redirect are parsed strictly; the host must be listed; it is resolved once, every address must be
public, and the connection goes to one of those very addresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field

from organism.config.host_rules import HostRule, host_rule
from organism.config.settings import ShippedTool
from organism.config.tools import HttpFetchTerms, Tools
from organism.model.addresses import is_public
from organism.model.handler import HandlerMetadata, HandlerResponse
from organism.tools.urls import MAX_URL, Refused, Target, allowed, followed, target_of
from organism.tools.web import EXTRA_SECONDS, Net, ToolFailure, WebAnswer, as_step, clean, cut, decoded, get

OFF: Final = "list the hosts that it may ask under `tools.http_fetch.hosts`"
MOST_ADDRESSES: Final = 3
"""How many addresses of a host are tried, one after the other."""
MOST_TEXT_BYTES: Final = 64 * 1024
ACCEPT: Final = "text/html, text/*;q=0.9, application/json;q=0.9, */*;q=0.1"
MOST_LISTED: Final = 10
MOST_KIND: Final = 200
_TEXTS: Final = frozenset(
    {"application/json", "application/xml", "application/javascript", "application/x-ndjson", "application/yaml"}
)


@dataclass
class HttpFetch:
    """Fetches a page by its URL with GET and gives its text. Only listed public hosts can be asked."""

    url: Annotated[
        str, Field(min_length=1, max_length=MAX_URL, description="Such as https://example.org/page; http or https.")
    ]


@dataclass
class Fetched:
    """The answer: ``url`` is where redirects led, ``status`` is HTTP's, ``truncated`` says that there was more."""

    url: str
    status: int
    content_type: str
    text: str
    truncated: bool = False


def tool(tools: Tools) -> ShippedTool:
    terms = tools.http_fetch
    return ShippedTool(
        name="http_fetch",
        scope="tools:execute",
        payload_class=HttpFetch,
        replies=(Fetched,),
        effect="pure",
        brings_outside_text=True,
        timeout_s=(terms or HttpFetchTerms()).timeout_s + EXTRA_SECONDS,
        settings=terms,
        is_off="" if terms is not None and terms.hosts else OFF,
    )


class Fetcher:
    def __init__(self, terms: HttpFetchTerms, net: Net) -> None:
        self._terms = terms
        self._net = net
        self._rules: Sequence[HostRule] = [host_rule(line) for line in terms.hosts]

    async def fetch(self, payload: HttpFetch, metadata: HandlerMetadata) -> HandlerResponse:
        return await as_step(metadata, "fetch", lambda: self._fetched(payload.url), self._terms.timeout_s, Fetched)

    async def _fetched(self, url: str) -> dict[str, Any]:
        target = _target(url)
        for _ in range(self._terms.max_redirects + 1):
            answer = await self._get(target)
            if answer.location is None:
                return _fields(target, answer)
            target = _target(answer.location, target)
        raise ToolFailure("upstream_error", f"There were more than {self._terms.max_redirects} redirects.")

    async def _get(self, target: Target) -> WebAnswer:
        if not allowed(target, self._rules):
            listed = ", ".join(self._terms.hosts[:MOST_LISTED])
            raise ToolFailure("forbidden", f"{target.authority} is not among the hosts that may be asked: {listed}.")
        addresses = await self._public_addresses(target)
        refusals: list[ToolFailure] = []
        for address in addresses[:MOST_ADDRESSES]:
            try:
                return await get(self._net, target, address, ACCEPT, self._terms.max_bytes)
            except ToolFailure as error:
                refusals.append(error)
        raise refusals[0]

    async def _public_addresses(self, target: Target) -> list[str]:
        """The host's addresses, by one look-up. Raises ``ToolFailure`` if one of them is not public."""
        try:
            is_literal = target.host.startswith("[") or target.host.rpartition(".")[2].isdigit()
            addresses = [target.host.strip("[]")] if is_literal else await self._net.addresses(target.host, target.port)
        except (OSError, UnicodeError) as error:
            raise ToolFailure("upstream_error", f"{target.host} has no address.") from error
        if not addresses or not all(map(_is_public, addresses)):
            raise ToolFailure("forbidden", f"{target.host} leads to an address that is not public.")
        return addresses


def _target(url: str, before: Target | None = None) -> Target:
    try:
        return target_of(url) if before is None else followed(before, url)
    except Refused as error:
        raise ToolFailure("invalid_field", f"The URL cannot be asked: {error}.") from error


def _is_public(address: str) -> bool:
    try:
        return is_public(address)
    except ValueError:
        return False


def _fields(target: Target, answer: WebAnswer) -> dict[str, Any]:
    """The fields of a ``Fetched``. Raises ``ToolFailure`` for what is no text."""
    kind = answer.headers.get("content-type", "")
    shown_kind = clean(kind)[:MOST_KIND]
    if not _is_text(kind, answer.body):
        raise ToolFailure("upstream_error", f"{target.url} is no text: it is {shown_kind or 'of no type'}.")
    whole = decoded(answer.body, kind)
    text = cut(whole, MOST_TEXT_BYTES)
    truncated = answer.is_cut or len(text) < len(whole)
    return {
        "url": target.url, "status": answer.status, "content_type": shown_kind, "text": text, "truncated": truncated
    }  # fmt: skip


def _is_text(content_type: str, body: bytes) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    if not kind:
        return b"\0" not in body
    return kind.startswith("text/") or kind in _TEXTS or kind.endswith(("+json", "+xml"))
