"""``wikipedia_search``: which articles there are on something."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field

from organism.config.shipped import ShippedTool
from organism.config.tool_settings import Tools
from organism.model.handler import HandlerMetadata, HandlerResponse
from organism.model.tool import ToolError
from organism.tools.wikipedia import Wiki

_SECONDS_MORE: Final = 5.0
"""A handling has this much longer than its answer from outside."""


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


def tool(tools: Tools) -> ShippedTool:
    """The tool."""
    return ShippedTool(
        name="wikipedia_search",
        payload_class=WikipediaSearch,
        replies=(WikipediaArticles,),
        brings_outside_text=True,
        timeout_s=tools.wikipedia.timeout_s + _SECONDS_MORE,
        settings=tools.wikipedia,
    )


def searching(wiki: Wiki) -> Callable[[WikipediaSearch, HandlerMetadata], Awaitable[HandlerResponse]]:
    """The handler for a wiki. What was found once is recorded, and given again to a repetition."""

    async def search(payload: WikipediaSearch, metadata: HandlerMetadata) -> HandlerResponse:
        found = await metadata.effect("search", lambda _key: wiki.search(payload.query, payload.limit), kind="pure")
        if "code" in found:
            return HandlerResponse.respond(ToolError(**found))
        return HandlerResponse.respond(WikipediaArticles([Article(**hit) for hit in found["results"]]))

    return search
