"""``wikipedia_summary``: what an article begins with."""

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


def tool(tools: Tools) -> ShippedTool:
    """The tool."""
    return shipped("wikipedia_summary", WikipediaSummary, WikipediaExtract, tools)


def summing_up(wiki: Wiki) -> Callable[[WikipediaSummary, HandlerMetadata], Awaitable[HandlerResponse]]:
    """The handler for a wiki."""

    async def sum_up(payload: WikipediaSummary, metadata: HandlerMetadata) -> HandlerResponse:
        return await answered(
            metadata, "summary", lambda: wiki.summary(payload.title), lambda found: WikipediaExtract(**found)
        )

    return sum_up
