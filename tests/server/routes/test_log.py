"""``GET /log``: the events themselves, with what looks like a credential masked."""

from __future__ import annotations

from tests.flows.world import MakeWorld
from tests.server.served import served

SOURCE = """
async def careless(payload: Ask, metadata: HandlerMetadata):
    raise ValueError("the key sk-proj-abcdefghijklmnopqrstuvwxyz0123456789 was not taken")
"""


async def test_what_looks_like_a_credential_is_masked_in_the_events_that_are_shown(world: MakeWorld) -> None:
    made = world(SOURCE, {"careless": {}}, retry={"attempts": 2, "base_delay_s": 0.01})
    async with served(made.config) as server:
        await server.inject("careless", {"text": ""})
        events = (await server.get("/log?limit=500"))["events"]
        (kept,) = [event for event in await server.log.read(0) if event.type == "message_retried"]
    assert "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789" in kept.data["error"]
    said = {event["type"]: event["data"] for event in events}
    shown = [said["message_retried"]["error"], said["message_dead"]["reason"], said["thread_failed"]["reason"]]
    assert shown == ["ValueError: the key [redacted] was not taken"] * 3
