"""``wikipedia_search`` and ``wikipedia_summary``, for any wiki with Wikipedia's API, at a private address too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import unescape
from typing import Annotated, Any, Final
from urllib.parse import quote, urlencode

import orjson
from pydantic import Field

from organism.config.settings import ShippedTool
from organism.config.tools import Tools, Wikipedia
from organism.model.handler import HandlerMetadata, HandlerResponse
from organism.model.linear import linear
from organism.tools.urls import Refused, followed, target_of
from organism.tools.web import EXTRA_SECONDS, Net, ToolFailure, WebAnswer, as_step, clean, cut, get

MOST_BYTES: Final = 1024 * 1024
MOST_REDIRECTS: Final = 3
MOST_URL: Final = 8 * 1024
MOST_TITLE_BYTES: Final = 1024
MOST_SNIPPET_BYTES: Final = 2 * 1024
MOST_EXTRACT_BYTES: Final = 32 * 1024
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
    search = ShippedTool(
        name="wikipedia_search",
        scope="tools:execute",
        payload_class=WikipediaSearch,
        replies=(WikipediaArticles,),
        effect="pure",
        brings_outside_text=True,
        timeout_s=settings.wikipedia.timeout_s + EXTRA_SECONDS,
        settings=settings.wikipedia,
    )
    return search, replace(
        search, name="wikipedia_summary", payload_class=WikipediaSummary, replies=(WikipediaExtract,)
    )


class Wiki:
    """One wiki, and the handlers of the tools that ask it."""

    def __init__(self, terms: Wikipedia, net: Net) -> None:
        self._seconds = terms.timeout_s
        self._net = net
        self._root = terms.base_url.rstrip("/")

    async def search(self, payload: WikipediaSearch, metadata: HandlerMetadata) -> HandlerResponse:
        def reply(results: list[dict[str, str]]) -> WikipediaArticles:
            return WikipediaArticles([Article(**hit) for hit in results])

        return await as_step(metadata, "search", lambda: self._found(payload), self._seconds, reply)

    async def summary(self, payload: WikipediaSummary, metadata: HandlerMetadata) -> HandlerResponse:
        return await as_step(metadata, "summary", lambda: self._extract(payload.title), self._seconds, WikipediaExtract)

    async def _found(self, payload: WikipediaSearch) -> dict[str, Any]:
        wanted = {"list": "search", "srsearch": payload.query, "srlimit": payload.limit}
        query = urlencode({"action": "query", **wanted, "format": "json", "formatversion": 2})
        hits = _at(await self._json(f"/w/api.php?{query}"), "query", "search")
        if not isinstance(hits, list):
            raise ToolFailure("upstream_error", f"{self._root} gave no list of results.")
        shown = [_hit(hit, self._root) for hit in hits[: payload.limit] if isinstance(hit, dict)]
        return {"results": [hit for hit in shown if hit["title"]]}

    async def _extract(self, title: str) -> dict[str, Any]:
        name = quote(title.strip().replace(" ", "_"), safe="")
        missing = f"There is no article {title!r}; wikipedia_search finds titles."
        found = await self._json(f"/api/rest_v1/page/summary/{name}", missing)
        url = _text(_at(found, "content_urls", "desktop", "page"), MOST_TITLE_BYTES)
        return {
            "title": _text(found.get("title"), MOST_TITLE_BYTES) or title,
            "description": _text(found.get("description"), MOST_TITLE_BYTES),
            "extract": _text(found.get("extract"), MOST_EXTRACT_BYTES),
            "url": url or f"{self._root}/wiki/{name}",
            "is_ambiguous": found.get("type") == "disambiguation",
        }

    async def _json(self, path: str, missing: str = "") -> dict[str, Any]:
        answer = await self._answer(path)
        if answer.status == _NOT_FOUND and missing:
            raise ToolFailure("not_found", missing)
        if answer.status != _OK or answer.is_cut:
            why = f"with status {answer.status}" if answer.status != _OK else f"with more than {MOST_BYTES} bytes"
            raise ToolFailure("upstream_error", f"{self._root} answered {why}.")
        try:
            found = orjson.loads(answer.body)
        except orjson.JSONDecodeError as error:
            raise ToolFailure("upstream_error", f"{self._root} answered with something that is no JSON.") from error
        if not isinstance(found, dict):
            raise ToolFailure("upstream_error", f"{self._root} answered with JSON that is no object.")
        return found

    async def _answer(self, path: str) -> WebAnswer:
        """The answer; redirects are followed within the wiki, since articles move and wikis do not."""
        try:
            root = target = target_of(f"{self._root}{path}", MOST_URL)
            for _ in range(MOST_REDIRECTS + 1):
                answer = await get(self._net, target, target.host.strip("[]"), "application/json", MOST_BYTES)
                if answer.location is None:
                    return answer
                target = followed(target, answer.location)
                if target[:3] != root[:3]:
                    raise ToolFailure("upstream_error", f"{self._root} led on to another place.")
        except Refused as error:
            raise ToolFailure("upstream_error", f"{self._root} led to what is no address.") from error
        raise ToolFailure("upstream_error", f"{self._root} led on more than {MOST_REDIRECTS} times.")


def _hit(hit: Mapping[str, Any], root: str) -> dict[str, str]:
    title = _text(hit.get("title"), MOST_TITLE_BYTES)
    snippet = _text(unescape(_MARK.sub(lambda _: "", str(hit.get("snippet", "")))), MOST_SNIPPET_BYTES)
    return {"title": title, "snippet": snippet, "url": f"{root}/wiki/{quote(title.replace(' ', '_'), safe='')}"}


def _at(json: Any, *path: str) -> Any:
    for key in path:
        json = json.get(key) if isinstance(json, dict) else None
    return json


def _text(value: Any, most_bytes: int) -> str:
    """A field that should be text, without what XML cannot carry."""
    return cut(clean(value), most_bytes) if isinstance(value, str) else ""
