"""Handlers that are invoked: one answers, one fails."""

from __future__ import annotations

from dataclasses import dataclass

from organism import HandlerMetadata, HandlerResponse


@dataclass
class Name:
    """Somebody."""

    name: str


@dataclass
class Greeting:
    """Said to them."""

    text: str


async def greet(payload: Name, metadata: HandlerMetadata) -> HandlerResponse:
    """Answer."""
    return HandlerResponse.respond(Greeting(f"Hello, {payload.name}"))


async def fail(payload: Name, metadata: HandlerMetadata) -> None:
    """Fail for good."""
    raise ValueError(payload.name)
