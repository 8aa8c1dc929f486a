"""A tool for the agents of the bench, and a listener that does all that an agent does but think."""

from __future__ import annotations

from dataclasses import dataclass

from organism import HandlerMetadata, HandlerResponse


@dataclass
class Sum:
    """Add two numbers."""

    left: int
    right: int


@dataclass
class Total:
    """What two numbers are together."""

    value: int


@dataclass
class Said:
    """What somebody said."""

    message: str


async def add(payload: Sum, metadata: HandlerMetadata) -> HandlerResponse:
    return HandlerResponse.respond(Total(payload.left + payload.right))


async def echo(payload: Said, metadata: HandlerMetadata) -> HandlerResponse:
    return HandlerResponse.respond(Said(payload.message))
