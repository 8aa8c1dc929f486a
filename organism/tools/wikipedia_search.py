"""``wikipedia_search``: which articles there are on something."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from organism.config.shipped import ShippedTool
from organism.config.tool_settings import Tools
from organism.model.handler import HandlerMetadata, HandlerResponse
from organism.tools.wikipedia import Wiki, answered, shipped


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
    return shipped("wikipedia_search", WikipediaSearch, WikipediaArticles, tools)


def searching(wiki: Wiki) -> Callable[[WikipediaSearch, HandlerMetadata], Awaitable[HandlerResponse]]:
    """The handler for a wiki."""

    async def search(payload: WikipediaSearch, metadata: HandlerMetadata) -> HandlerResponse:
        return await answered(
            metadata,
            "search",
            lambda: wiki.search(payload.query, payload.limit),
            lambda found: WikipediaArticles([Article(**hit) for hit in found["results"]]),
        )

    return search
