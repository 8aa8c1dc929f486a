"""Handlers that take words: one answers, one tells it bit by bit, one fails."""

from __future__ import annotations

from organism import Answer, HandlerMetadata, HandlerResponse, Prompt


async def echo(payload: Prompt, metadata: HandlerMetadata) -> HandlerResponse:
    """Say what was said, and what before it."""
    before = " and ".join(said.content for said in payload.history)
    return HandlerResponse.respond(Answer(f"You said: {payload.message}" + (f", after {before}" if before else "")))


async def teller(payload: Prompt, metadata: HandlerMetadata) -> HandlerResponse:
    """The same, bit by bit."""
    text = f"You said: {payload.message}"
    await metadata.emit("message_start", {"id": "m1"})
    for offset in range(0, len(text), 4):
        await metadata.emit("message_delta", {"id": "m1", "delta": text[offset : offset + 4], "offset": offset})
    await metadata.emit("message_end", {"id": "m1"})
    await metadata.emit("done", {"stopReason": "stop"})
    return HandlerResponse.respond(Answer(text))


async def asking(payload: Prompt, metadata: HandlerMetadata) -> HandlerResponse:
    """Say half of it, wait for a human, say the rest."""
    await metadata.emit("message_start", {"id": "m1"})
    await metadata.emit("message_delta", {"id": "m1", "delta": "You said: "})
    await metadata.approve({"say": payload.message})
    await metadata.emit("message_delta", {"id": "m1", "delta": payload.message})
    await metadata.emit("message_end", {"id": "m1"})
    return HandlerResponse.respond(Answer(payload.message))


async def mute(payload: Prompt, metadata: HandlerMetadata) -> HandlerResponse:
    """Wait for a human before a word is said."""
    await metadata.approve({"say": payload.message})
    return HandlerResponse.respond(Answer(payload.message))


async def broken(payload: Prompt, metadata: HandlerMetadata) -> None:
    """Fail for good."""
    raise ValueError(payload.message)
