"""``wikipedia_summary``: what an article begins with."""

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
    return ShippedTool(
        name="wikipedia_summary",
        payload_class=WikipediaSummary,
        replies=(WikipediaExtract,),
        brings_outside_text=True,
        timeout_s=tools.wikipedia.timeout_s + _SECONDS_MORE,
        settings=tools.wikipedia,
    )


def summing_up(wiki: Wiki) -> Callable[[WikipediaSummary, HandlerMetadata], Awaitable[HandlerResponse]]:
    """The handler for a wiki. What was found once is recorded, and given again to a repetition."""

    async def sum_up(payload: WikipediaSummary, metadata: HandlerMetadata) -> HandlerResponse:
        found = await metadata.effect("summary", lambda _key: wiki.summary(payload.title), kind="pure")
        return HandlerResponse.respond(ToolError(**found) if "code" in found else WikipediaExtract(**found))

    return sum_up
