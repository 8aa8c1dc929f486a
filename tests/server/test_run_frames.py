"""A run over real connections: ``/ws`` and ``GET /events`` show it as it comes, and again to who comes again (3.4)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from organism.bootstrap import Parts
from organism.projections.run import fold
from tests.flows.speaker import Speaker
from tests.flows.stage import TurnedTime
from tests.flows.world import MakeWorld
from tests.server.served import Frames, Served, served
from tests.server.test_stream import listening

TALKER = """
async def talker(payload: Ask, metadata: HandlerMetadata):
    said = await metadata.complete([{"role": "user", "content": payload.text}], block="m1")
    await metadata.emit("usage", {"input": 1, "output": 2, "total": 3})
    return HandlerResponse.respond(Told(said.text))
"""
# No piece ends as a secret may begin, which would hold its end back: the key that is drawn is hexadecimal.
WORDS = "~hm One, @two 2, @three three."
SHOWN = [
    ("thought_start", "m1-thought"),
    ("thought_delta", "hm"),
    ("thought_end", "m1-thought"),
    ("message_start", "m1"),
    ("message_delta", "One,2,three."),
    ("message_end", "m1"),
    ("usage", None),
    ("done", None),
]


def entries(frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries that frames show."""
    return [{"type": frame["type"], "data": frame["data"]} for frame in frames if frame["event"] == "run"]


def told(frames: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    """The entries that came from the log: type, and what was said or the id."""
    logged = entries([frame for frame in frames if "position" in frame])
    return [(entry["type"], entry["data"].get("delta", entry["data"].get("id"))) for entry in logged]


def still(speaker: Speaker) -> Parts:
    """Parts whose clock stands: nothing is gathered but at a block's end."""
    return replace(TurnedTime().parts(), models=lambda _: speaker)


async def inject(server: Served) -> str:
    """A message to the talker; gives its thread."""
    found: str = (await server.inject("talker", {"text": WORDS}, wait=0))["thread_id"]
    return found


async def test_the_socket_shows_a_run_as_it_comes_and_again_from_the_log(world: MakeWorld) -> None:
    made, speaker = world(TALKER, {"talker": {}}), Speaker()
    async with served(made.config, parts=still(speaker)) as server, server.socket("?events=run") as socket:
        frames = Frames(socket)
        await frames.next()
        thread = await inject(server)
        before = await frames.until("run", type="message_delta", data={"id": "m1", "delta": "One,", "offset": 0})
        speaker.open("two")
        before += await frames.until("run", type="message_delta", data={"id": "m1", "delta": "2,", "offset": 4})
        speaker.open("three")
        before += await frames.until("run", type="done")
    assert told(before) == SHOWN
    heard = [frame["data"] for frame in before if "position" not in frame]
    assert [data["delta"] for data in heard if data["id"] == "m1"] == ["One,", "2,", "three."]
    assert {frame["thread_id"] for frame in before} == {thread}
    assert {frame["agent"] for frame in before} == {"talker"}
    assert fold(entries(before))["messages"] == [{"role": "assistant", "content": "One,2,three."}]


@pytest.mark.parametrize("cut", range(1, 7))
async def test_who_comes_again_at_any_frame_has_every_character_once(world: MakeWorld, cut: int) -> None:
    made, speaker = world(TALKER, {"talker": {}}), Speaker()
    async with served(made.config, parts=still(speaker)) as server:
        async with server.socket("?events=run") as socket:
            frames = Frames(socket)
            begun = await frames.next()
            await inject(server)
            seen = [await frames.next() for _ in range(min(cut, 5))]
            speaker.open("two")
            seen += [await frames.next() for _ in range(cut - len(seen))]
        since = max((frame["position"] for frame in seen if "position" in frame), default=begun["position"])
        async with server.socket(f"?events=run&since={since}&log={begun['log']}") as socket:
            frames = Frames(socket)
            seen += await frames.until("caught_up")
            speaker.open("two")
            speaker.open("three")
            seen += await frames.until("run", type="done")
    assert fold(entries(seen))["messages"] == [{"role": "assistant", "content": "One,2,three."}]
    assert told(seen) == SHOWN


async def test_a_page_that_listens_only_gets_the_same(world: MakeWorld) -> None:
    made, speaker = world(TALKER, {"talker": {}}), Speaker()
    async with served(made.config, parts=still(speaker)) as server, listening(server, "?events=run") as page:
        await page.next()
        await inject(server)
        seen = await page.until("run", data={"id": "m1", "delta": "One,", "offset": 0})
        speaker.open("two")
        speaker.open("three")
        seen += await page.until("run", type="done")
    assert told([frame for _, frame in seen]) == SHOWN
    assert all((name == str(frame["position"])) if "position" in frame else name is None for name, frame in seen)
