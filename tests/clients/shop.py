"""A tool of one's own, for the organism that the clients ask."""

from __future__ import annotations

from dataclasses import dataclass

from organism import HandlerMetadata, HandlerResponse, ToolError


@dataclass
class Wanted:
    """Says what something costs."""

    what: str


@dataclass
class Price:
    """What it costs, and how it is labelled."""

    cents: int
    tags: list[str]


async def sell(payload: Wanted, metadata: HandlerMetadata) -> HandlerResponse:
    if payload.what == "gold":
        return HandlerResponse.respond(ToolError("upstream_error", "Gold is sold out."))
    return HandlerResponse.respond(Price(180, ["hot"]))
