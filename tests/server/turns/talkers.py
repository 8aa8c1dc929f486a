"""Handlers that take words.

One answers, one names its source, one tells it bit by bit, two ask a person first, one fails.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.flows.world import World

SOURCE = """
from organism import Answer, Prompt

async def echo(payload: Prompt, metadata: HandlerMetadata):
    before = " and ".join(said.content for said in payload.history)
    return HandlerResponse.respond(Answer(f"You said: {payload.message}" + (f", after {before}" if before else "")))

async def teller(payload: Prompt, metadata: HandlerMetadata):
    text = f"You said: {payload.message}"
    await metadata.emit("message_start", {"id": "m1"})
    for offset in range(0, len(text), 4):
        await metadata.emit("message_delta", {"id": "m1", "delta": text[offset : offset + 4], "offset": offset})
    await metadata.emit("message_end", {"id": "m1"})
    await metadata.emit("done", {"stopReason": "stop"})
    return HandlerResponse.respond(Answer(text))

async def asking(payload: Prompt, metadata: HandlerMetadata):
    await metadata.emit("message_start", {"id": "m1"})
    await metadata.emit("message_delta", {"id": "m1", "delta": "You said: "})
    await metadata.approve({"say": payload.message})
    await metadata.emit("message_delta", {"id": "m1", "delta": payload.message})
    await metadata.emit("message_end", {"id": "m1"})
    return HandlerResponse.respond(Answer(payload.message))

async def mute(payload: Prompt, metadata: HandlerMetadata):
    await metadata.approve({"say": payload.message})
    return HandlerResponse.respond(Answer(payload.message))

async def citing(payload: Prompt, metadata: HandlerMetadata):
    return HandlerResponse.respond(Answer(payload.message, ["a.md"]))

async def broken(payload: Prompt, metadata: HandlerMetadata):
    raise ValueError(payload.message)
"""


def talkers(folder: Path, **more: Any) -> Path:
    """The configuration of an organism of these; all but ``echo`` and ``citing`` stream."""
    keys: dict[str, Any] = {"payload_class": "Prompt", "invoke": ["batch", "stream"]}
    names = ("teller", "asking", "mute", "broken")
    plain = {"payload_class": "Prompt"}
    listeners = {"echo": plain, "citing": plain, **dict.fromkeys(names, keys)}
    return World(folder, SOURCE, listeners, retry={"attempts": 1}, **more).config
