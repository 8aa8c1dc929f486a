"""A listener that leaves what a person can act on: dead letters, approvals, effects in doubt, ended threads."""

from __future__ import annotations

from tests.flows.world import MakeWorld, World

_SOURCE = """
async def asker(payload: Ask, metadata: HandlerMetadata):
    if payload.text == "bad":
        raise ValueError("bad")
    if payload.text == "ask":
        await metadata.approve({"sum": 3})
    if payload.text == "pay":
        async def pay(key: str):
            await asyncio.sleep(60)
        await metadata.effect("pay", pay, kind="unsafe")
    return HandlerResponse.respond(Told("done"))
"""


def asker(world: MakeWorld) -> World:
    """The listener ``asker``: it fails on ``bad``, needs approval on ``ask``, hangs in an unsafe effect on ``pay``."""
    return world(_SOURCE, {"asker": {"timeout_s": 0.5}}, retry={"attempts": 1})
