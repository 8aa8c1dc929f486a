"""``wikipedia_search`` and ``wikipedia_summary``, for any wiki that speaks Wikipedia's API.

The address is the operator's choice, so it may be private; what comes from there is foreign text all the same, and its
shape is checked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from html import unescape
from typing import Annotated, Any, Final
from urllib.parse import quote, urlencode, urljoin, urlsplit

import orjson
from pydantic import Field

from organism.config.host_rules import USUAL_PORTS
from organism.config.settings import ShippedTool
from organism.config.tools import Tools, Wikipedia
from organism.model.handler import HandlerMetadata, HandlerResponse
from organism.model.linear import linear
from organism.model.tool import ToolError
from organism.tools.text import cut, decoded
from organism.tools.web import Net, NoAnswer, Place, got

MOST_BYTES: Final = 1024 * 1024
MOST_REDIRECTS: Final = 3
MOST_TITLE_BYTES: Final = 1024
MOST_SNIPPET_BYTES: Final = 2 * 1024
MOST_EXTRACT_BYTES: Final = 32 * 1024
_SECONDS_MORE: Final = 5.0
"""A handling has this much longer than its answer from outside."""
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_OK: Final = 200
_NOT_FOUND: Final = 404
_MARK: Final = linear("<[^>]*>")


@dataclass
class WikipediaSearch:
    """Searches Wikipedia and gives the titles of the best articles, each with a snippet of its text."""

    query: Annotated[str, Field(min_length=1, max_length=300, description="Words to look for.")]
    limit: Annotated[int, Field(ge=1, le=20, description="How many articles at most.")] = 5


@dataclass
class Article:
    """An article that was found; ``wikipedia_summary`` takes its title."""

    title: str
    snippet: str
    url: str


@dataclass
class WikipediaArticles:
    """The articles, best first; none, if nothing was found."""

    results: list[Article]


@dataclass
class WikipediaSummary:
    """Gives the summary of a Wikipedia article by its title."""

    title: Annotated[
        str, Field(min_length=1, max_length=300, description="As wikipedia_search gives it, such as Alan Turing.")
    ]


@dataclass
class WikipediaExtract:
    """The beginning of the article. ``is_ambiguous``: the title has several meanings, which the extract lists."""

    title: str
    description: str
    extract: str
    url: str
    is_ambiguous: bool = False


def tools(settings: Tools) -> tuple[ShippedTool, ShippedTool]:
    return (
        _shipped("wikipedia_search", WikipediaSearch, WikipediaArticles, settings),
        _shipped("wikipedia_summary", WikipediaSummary, WikipediaExtract, settings),
    )


def _shipped(name: str, payload_class: type, reply: type, settings: Tools) -> ShippedTool:
    return ShippedTool(
        name=name,
        payload_class=payload_class,
        replies=(reply,),
        brings_outside_text=True,
        timeout_s=settings.wikipedia.timeout_s + _SECONDS_MORE,
        settings=settings.wikipedia,
    )


class Wiki:
    """One wiki, and the handlers of the tools that ask it."""

    def __init__(self, terms: Wikipedia, net: Net) -> None:
        self._terms = terms
        self._net = net
        self._root = terms.base_url.rstrip("/")

    async def search(self, payload: WikipediaSearch, metadata: HandlerMetadata) -> HandlerResponse:
        return await _answered(
            metadata,
            "search",
            lambda: self._found(payload.query, payload.limit),
            lambda found: WikipediaArticles([Article(**hit) for hit in found["results"]]),
        )

    async def summary(self, payload: WikipediaSummary, metadata: HandlerMetadata) -> HandlerResponse:
        return await _answered(
            metadata, "summary", lambda: self._extract(payload.title), lambda found: WikipediaExtract(**found)
        )

    async def _found(self, query: str, limit: int) -> dict[str, Any]:
        """Hits as ``{"results": […]}``; or a ``code`` and a ``message``."""
        asked = {
            "action": "query",
            "list": "search",
            "srsearch": query,
            "srlimit": limit,
            "format": "json",
            "formatversion": 2,
        }
        found = await self._answer(f"/w/api.php?{urlencode(asked)}", "")
        if "code" in found:
            return found
        hits = _at(found, "query", "search")
        if not isinstance(hits, list):
            return {"code": "upstream_error", "message": f"{self._root} gave no list of results."}
        shown = [_hit(hit, self._root) for hit in hits[:limit] if isinstance(hit, dict)]
        return {"results": [hit for hit in shown if hit["title"]]}

    async def _extract(self, title: str) -> dict[str, Any]:
        """The fields of a ``WikipediaExtract``; or a ``code`` and a ``message``."""
        name = quote(title.strip().replace(" ", "_"), safe="")
        missing = f"There is no article {title!r}; wikipedia_search finds titles."
        found = await self._answer(f"/api/rest_v1/page/summary/{name}", missing)
        if "code" in found:
            return found
        return {
            "title": _text(_at(found, "title"), MOST_TITLE_BYTES) or title,
            "description": _text(_at(found, "description"), MOST_TITLE_BYTES),
            "extract": _text(_at(found, "extract"), MOST_EXTRACT_BYTES),
            "url": _text(_at(found, "content_urls", "desktop", "page"), MOST_TITLE_BYTES)
            or f"{self._root}/wiki/{name}",
            "is_ambiguous": _at(found, "type") == "disambiguation",
        }

    async def _answer(self, path: str, missing: str) -> dict[str, Any]:
        try:
            async with asyncio.timeout(self._terms.timeout_s):
                return await self._json(f"{self._root}{path}", missing)
        except TimeoutError:
            seconds = f"{self._terms.timeout_s:g} seconds"
            return {"code": "upstream_timeout", "message": f"{self._root} did not answer within {seconds}."}
        except NoAnswer as error:
            return {"code": error.code, "message": error.message}

    async def _json(self, url: str, missing: str) -> dict[str, Any]:
        for _ in range(MOST_REDIRECTS + 1):
            answer = await got(self._net, _place(url), "application/json", MOST_BYTES)
            location = answer.headers.get("location")
            if answer.status not in _REDIRECTS or location is None:
                break
            url = self._same_wiki(url, location)
        else:
            raise NoAnswer("upstream_error", f"{self._root} led on more than {MOST_REDIRECTS} times.")
        if answer.status == _NOT_FOUND and missing:
            raise NoAnswer("not_found", missing)
        if answer.status != _OK or answer.is_cut:
            why = f"with status {answer.status}" if answer.status != _OK else f"with more than {MOST_BYTES} bytes"
            raise NoAnswer("upstream_error", f"{self._root} answered {why}.")
        try:
            found = orjson.loads(answer.body)
        except orjson.JSONDecodeError as error:
            raise NoAnswer("upstream_error", f"{self._root} answered with something that is no JSON.") from error
        if not isinstance(found, dict):
            raise NoAnswer("upstream_error", f"{self._root} answered with JSON that is no object.")
        return {key: value for key, value in found.items() if key not in {"code", "message"}}

    def _same_wiki(self, url: str, location: str) -> str:
        """Where a redirect leads, if that is the same wiki: articles are moved, wikis are not."""
        try:
            after = urljoin(url, location)
            if urlsplit(after)[:2] == urlsplit(self._root)[:2] and after.isascii() and after.isprintable():
                return after
        except ValueError as error:
            raise NoAnswer("upstream_error", f"{self._root} led on to what is no address.") from error
        raise NoAnswer("upstream_error", f"{self._root} led on to another place.")


async def _answered(
    metadata: HandlerMetadata,
    key: str,
    ask: Callable[[], Awaitable[dict[str, Any]]],
    reply: Callable[[dict[str, Any]], object],
) -> HandlerResponse:
    """Ask once; a repetition of the handling gets the recorded answer."""
    found = await metadata.effect(key, lambda _key: ask(), kind="pure")
    return HandlerResponse.respond(ToolError(**found) if "code" in found else reply(found))


def _place(url: str) -> Place:
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or USUAL_PORTS[parts.scheme]
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    return Place(parts.scheme, host, port, host, parts.netloc, path or "/")


def _hit(hit: Mapping[str, Any], root: str) -> dict[str, str]:
    title = _text(hit.get("title"), MOST_TITLE_BYTES)
    snippet = _text(unescape(_MARK.sub(lambda _: "", str(hit.get("snippet", "")))), MOST_SNIPPET_BYTES)
    return {"title": title, "snippet": snippet, "url": f"{root}/wiki/{quote(title.replace(' ', '_'), safe='')}"}


def _at(found: Any, *way: str) -> Any:
    for step in way:
        found = found.get(step) if isinstance(found, dict) else None
    return found


def _text(value: Any, most_bytes: int) -> str:
    """A field that should be text, without what XML cannot carry."""
    return cut(decoded(value.encode(), ""), most_bytes) if isinstance(value, str) else ""
