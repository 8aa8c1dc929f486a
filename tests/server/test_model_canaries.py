"""Live secrets around a model: none reaches its server in a prompt, none of its answers reaches anybody (S23, S30)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from organism.bootstrap import Parts
from organism.model.redact import MASK, Redactor
from tests.agents.peer.answers import Answer, Called
from tests.agents.peer.fixture import Peer
from tests.flows.world import MakeWorld
from tests.server.logged import Terminal, logged
from tests.server.served import Served, served

SOURCE = """
from organism import CompleteError
from organism.model.tool import ToolSpec

async def thinks(payload: Ask, metadata: HandlerMetadata):
    said = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": payload.text}]
    await metadata.emit("data", {"name": "seen", "data": payload.text})
    try:
        answer = await metadata.complete(said, block="b", max_tokens=500)
    except CompleteError as error:
        return HandlerResponse.respond(Told(error.message))
    calls = " ".join(f"{call.name} {call.input} {call.raw}" for call in answer.tool_calls)
    return HandlerResponse.respond(Told(f"{answer.thought} {answer.text} {calls}"))

async def offers(payload: Ask, metadata: HandlerMetadata):
    tool = ToolSpec("send", payload.text, {"type": "object"})
    try:
        await metadata.complete([{"role": "user", "content": "Hi"}], tools=(tool,))
    except CompleteError as error:
        return HandlerResponse.respond(Told(f"{error.code}: {error.message}"))
"""
KEY = "canary-key-of-the-model-0815"
CANARIES = [f'canary-{at:02}-"é<&>-{at * 7919:x}' for at in range(10)]
ALL = [*CANARIES, KEY]


class Heard:
    """A server whose agent thinks with the peer, and everything that came out of both."""

    def __init__(self, server: Served, peer: Peer, folder: Path, said: Terminal) -> None:
        self.server = server
        self.peer = peer
        self.folder = folder
        self.said = said
        self.texts: list[str] = []

    async def inject(self, text: str, to: str = "thinks") -> str:
        """What the handler answers."""
        done = await self.server.call("POST", "/inject", json={"to": to, "payload": {"text": text}, "wait": 20})
        self.texts.append(done.text)
        told: str = done.json()["replies"][0]["payload"]["text"]
        return told

    async def found(self) -> list[str]:
        """Which canary is where: in answers, frames and the log, in files, and in what the peer was sent."""
        for path in ("/log?content=true&limit=500", "/messages?xml=true", "/threads", "/usage", "/organism/config"):
            self.texts.append((await self.server.call("GET", path)).text)
        asked = [request["body"] for request in await self.peer.requests()]
        await self.server.organism.stop(1)
        places = {path.name: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        assert "log.sqlite" in places
        places |= {"answers": "\n".join(self.texts).encode(), "log": self.said.getvalue().encode()}
        places["prompts"] = orjson.dumps(asked)
        return [f"{canary} in {place}" for place, text in places.items() for canary in ALL if _is_in(canary, text)]


def _is_in(canary: str, text: bytes) -> bool:
    escaped = canary.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    forms = (canary.encode(), orjson.dumps(canary)[1:-1], ascii(canary)[1:-1].encode(), escaped.encode())
    return any(form in text for form in forms)


@pytest.fixture
async def heard(world: MakeWorld, peer: Peer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Heard]:
    """The server and the peer."""
    for at, canary in enumerate(CANARIES):
        monkeypatch.setenv(f"CANARY_{at}_TOKEN", canary)
    monkeypatch.setenv("MODEL_OF_MINE", KEY)
    model = {"provider": "openai", "base_url": peer.url, "api_key_env": "MODEL_OF_MINE"}
    listeners = {"thinks": {"model": "m"}, "offers": {"model": "m"}}
    made = world(SOURCE, listeners, models={"m": model}, retry={"attempts": 1})
    redactor = Redactor()
    with logged(redactor, level="debug") as said:
        async with served(made.config, made.data, parts=Parts(redactor=redactor)) as server:
            yield Heard(server, peer, made.data, said)


async def test_no_live_secret_goes_out_to_a_model_or_comes_back_from_it(heard: Heard) -> None:
    async with heard.server.socket() as socket:
        for at, canary in enumerate(CANARIES):
            answer = Answer(
                text=f"You said {canary}, and my key is {KEY}.",
                thought=f"Hm, {canary}.",
                calls=(Called("send", {"to": canary}), Called("send", f"{{{canary}")),
                pieces=5 + at * 7,
            )
            await heard.peer.script(answer)
            said = await heard.inject(f"Mine is {canary}; keep it.")
            assert said.startswith(f"Hm, {MASK}. You said {MASK}, and my key is {MASK}.")
        heard.texts += [str(frame) for frame in await frames(socket)]
    requests = await heard.peer.requests()
    assert [request["body"]["messages"][1]["content"] for request in requests] == [f"Mine is {MASK}; keep it."] * 10
    assert {request["headers"]["authorization"] for request in requests} == {f"Bearer {KEY}"}
    assert await heard.found() == []


async def test_a_server_that_repeats_a_secret_in_its_error_is_not_quoted(heard: Heard) -> None:
    for canary in ALL:
        await heard.peer.script(Answer(error=f"no such key: {canary}", status=401, times=0))
        assert "MODEL_OF_MINE" in await heard.inject("Hi")
        await heard.peer.reset()
    await heard.peer.script(Answer(error=f"bad request {CANARIES[0]}", status=400, times=0))
    assert "refused the request" in await heard.inject("Hi")
    assert await heard.found() == []


async def test_a_secret_in_a_tool_s_description_refuses_the_call(heard: Heard) -> None:
    said = await heard.inject(f"Send {CANARIES[0]} home", to="offers")
    assert said.startswith("leak_refused: ")
    assert await heard.peer.requests() == []
    assert await heard.found() == []


async def frames(socket: Any) -> list[Any]:
    """Every frame up to the answer of a last command."""
    await socket.send('{"cmd":"ping","id":"the last"}')
    heard: list[Any] = []
    while '"the last"' not in str(heard[-1:]):
        heard.append(await asyncio.wait_for(socket.recv(), 10))
    return heard
