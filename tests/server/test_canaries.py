"""Live secrets, in each place that takes input and around a model: none comes out anywhere (S23, S30)."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from websockets.asyncio.client import ClientConnection

from organism.bootstrap import Parts
from organism.model.redact import MASK, Redactor
from tests.agents.peer.answers import Answer, Called
from tests.agents.peer.steering import Peer
from tests.flows.world import MakeWorld, World
from tests.server.logged import Terminal, logged
from tests.server.served import Frames, Served, served
from tests.server.tenanted import token, write_tokens

SOURCE = """
async def echo(payload: Ask, metadata: HandlerMetadata):
    await metadata.effect("say " + payload.text[:20], lambda key: deliver(payload))
    return HandlerResponse.respond(Told("told: " + payload.text))

async def deliver(payload):
    return payload.text

async def fails(payload: Ask, metadata: HandlerMetadata):
    raise ValueError("no: " + payload.text)

async def asks(payload: Ask, metadata: HandlerMetadata):
    await metadata.approve({"text": payload.text})
    return HandlerResponse.respond(Told(payload.text))
"""
THINKS = """
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
FROM_ENVIRONMENT = 26
CANARIES = [f'canary-{at:02}-"é<&>-{at * 7919:x}' for at in range(FROM_ENVIRONMENT)]
IN_CONFIG = ["canary-of-a-user-4711", "canary-of-an-address-4712"]
IN_TOKENS = [token("default", "used"), token("default", "never")]
ALL = [*CANARIES, *IN_CONFIG, *IN_TOKENS]
KEY = "canary-key-of-the-model-0815"
JSON = {"Content-Type": "application/json"}
LISTS = [
    "/organism", "/organism/config", "/agents", "/agents/echo/config", "/threads",
    "/messages?xml=true&limit=500", "/usage", "/log?content=true&limit=500", "/log?limit=500", "/dead-letters",
    "/approvals", "/indeterminate", "/organism/graph",
]  # fmt: skip
"""Every list there is, with everything that it can show."""


class Heard:
    """Everything that came out."""

    def __init__(self, server: Served, folder: Path, said: Terminal) -> None:
        self.server = server
        self.folder = folder
        self.said = said
        self.texts: list[str] = []

    async def call(self, method: str, path: str, **more: Any) -> Any:
        """One request; gives its JSON."""
        answer = await self.server.call(method, path, **more)
        self.texts += [answer.text, str(answer.headers)]
        assert answer.status_code < 500, answer.text
        return answer.json() if answer.content and "json" in answer.headers["content-type"] else None

    async def inject(self, to: str, text: str) -> str:
        """What a handler answers to a text; nothing if it fails."""
        done = await self.call("POST", "/inject", json={"to": to, "payload": {"text": text}, "wait": 20})
        return "".join(reply["payload"]["text"] for reply in done["replies"])

    async def listen(self, socket: ClientConnection) -> None:
        """Hear every frame up to the answer of a last command."""
        await socket.send('{"cmd":"ping","id":"the last"}')
        while '"the last"' not in self.texts[-1]:
            self.texts.append(str(await asyncio.wait_for(socket.recv(), 10)))

    async def found(self, prompts: object = None) -> list[str]:
        """Which secret is where: in an answer or a frame, in the log, in a file of the data directory, in a prompt."""
        for path in LISTS:
            await self.call("GET", path)
        await self.server.organism.stop(1)
        places = {path.name: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        assert "log.sqlite" in places
        places |= {"answers": "\n".join(self.texts).encode(), "log": self.said.getvalue().encode()}
        places["prompts"] = orjson.dumps(prompts)
        return [
            f"{secret} as {form!r} in {place}: {text[max(text.index(form) - 80, 0) : text.index(form) + 80]!r}"
            for place, text in places.items()
            for secret in (*ALL, KEY)
            for form in forms(secret)
            if form in text
        ]


def forms(canary: str) -> set[bytes]:
    """How a canary would look in text, in JSON with and without escapes, in XML, and in a URL."""
    escaped = canary.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    in_json = orjson.dumps(canary)[1:-1]
    return {canary.encode(), in_json, ascii(canary)[1:-1].encode(), escaped.encode(), quote(canary).encode()}


@asynccontextmanager
async def hearing(made: World) -> AsyncIterator[Heard]:
    """A server on disk, and everything that comes out of it."""
    redactor = Redactor()
    with logged(redactor, level="debug") as log:
        async with served(made.config, made.data, parts=Parts(redactor=redactor)) as server:
            yield Heard(server, made.data, log)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets in variables."""
    for at, canary in enumerate(CANARIES):
        monkeypatch.setenv(f"CANARY_{at}_TOKEN", canary)
    monkeypatch.setenv("MODEL_OF_MINE", KEY)


@pytest.fixture
async def heard(world: MakeWorld) -> AsyncIterator[Heard]:
    """A server whose environment, configuration and tokens hold secrets."""
    users = (IN_CONFIG[0], f"me:{IN_CONFIG[1]}")
    of = {"provider": "openai", "model": "m", "dim": 8}
    embeddings = {user[:2]: {**of, "base_url": f"https://{user}@models.example/v1"} for user in users}
    listeners: dict[str, dict[str, Any]] = {"echo": {"peers": ["console"]}, "fails": {}, "asks": {"peers": ["console"]}}
    made = world(SOURCE, listeners, embeddings=embeddings, retry={"attempts": 1})
    write_tokens(made.folder, {"default": {"used": ["admin"], "never": ["admin"]}})
    async with hearing(made) as opened:
        yield opened


@pytest.fixture
async def thinking(world: MakeWorld, peer: Peer) -> AsyncIterator[Heard]:
    """A server whose agents think with the peer."""
    models = {"m": {"provider": "openai", "base_url": peer.url, "api_key_env": "MODEL_OF_MINE"}}
    made = world(THINKS, {"thinks": {"model": "m"}, "offers": {"model": "m"}}, models=models, retry={"attempts": 1})
    async with hearing(made) as opened:
        yield opened


async def say_in_headers(heard: Heard, canaries: list[str]) -> None:
    """One canary in each header that means something, and in some that mean nothing."""
    names = [
        "Idempotency-Key", "If-Match", "If-None-Match", "Accept", "Content-Type", "User-Agent", "Referer",
        "Cookie", "Origin", "Host", "X-Request-Id", "Authorization", "X-API-Key", "Last-Event-ID",
    ]  # fmt: skip
    for name, canary in zip(names, canaries * 2, strict=False):
        value = canary.encode("utf-8") if name != "Authorization" else b"Bearer " + canary.encode()
        for method, path in (("POST", "/inject"), ("GET", "/organism")):
            await heard.call(method, path, content=b"{}" if method == "POST" else None, headers={**JSON, name: value})


async def say_in_addresses(heard: Heard, canaries: list[str]) -> None:
    """In paths, names and values of queries, cursors and credentials."""
    paths = [
        "/{}", "/agents/{}", "/threads/{}", "/messages/{}/why", "/agents/{}/config", "/messages?q={}",
        "/messages?{}=1", "/messages?cursor={}", "/messages?agent={}", "/log?type={}", "/log?thread={}",
        "/organism?token={}", "/threads?status={}", "/organism/graph?format={}",
    ]  # fmt: skip
    for path, canary in zip(paths, canaries * 2, strict=False):
        await heard.call("GET", path.format(quote(canary, safe="")))


async def say_in_bodies(heard: Heard, canaries: list[str]) -> None:
    """In every field of an injection, in keys, documents, and what is no JSON."""
    for canary in canaries:
        bodies: list[Any] = [
            {"to": canary, "payload": {}},
            {canary: 1},
            {"to": "echo", "payload": {canary: 1}},
            {"to": "echo", "payload": {"text": "x"}, "thread_id": canary},
            {"to": "echo", "payload": canary},
        ]
        for body in bodies:
            await heard.call("POST", "/inject", json=body)
        await heard.call("POST", "/inject", content=canary.encode(), headers=JSON)
        for document in (
            f"<{canary}/>",
            f"<Ask a='{canary}'/>",
            canary,
            "<Ask><text><![CDATA[" + canary + "]]></text></Ask>",
        ):
            await heard.call(
                "POST", "/inject?to=echo&wait=5", content=document.encode(), headers={"Content-Type": "application/xml"}
            )
        await heard.inject("echo", f"see {canary}")
        await heard.inject("fails", f"see {canary}")


async def say_in_commands(heard: Heard, canaries: list[str]) -> None:
    """In every field of a command, while everything is listened to."""
    async with heard.server.socket() as socket:
        frames = Frames(socket)
        await frames.until("connected")
        for canary in canaries:
            for fields in (
                {"cmd": canary},
                {"cmd": "ping", canary: 1},
                {"cmd": "ping"},
                {"cmd": "kill", "thread_id": canary},
                {"cmd": "pause", "agent": canary},
                {"cmd": "auth", "token": canary},
                {"cmd": "subscribe", "agents": [canary]},
                {"cmd": "subscribe"},
                {"cmd": "inject", "to": "echo", "payload": {"text": canary}},
                {"cmd": "inject", "to": "echo", "payload": {"text": "x"}, "idempotency_key": canary},
            ):
                await socket.send(orjson.dumps({"id": canary, **fields}).decode())
        await heard.listen(socket)


async def say_on_the_command_line(heard: Heard, canaries: list[str]) -> None:
    """As an argument and as an option of the verbs; what they print is heard too."""
    verbs = [["agents"], ["messages", "--agent"], ["why"], ["kill"], ["inject", "echo", '{"text":"x"}', "--thread"]]
    place = ["--url", heard.server.url, "--token", "org_for_tests"]

    async def run(verb: list[str], canary: str) -> None:
        line = ["-m", "organism", *verb, canary, *place]
        shown = await asyncio.create_subprocess_exec(sys.executable, *line, stdout=PIPE, stderr=STDOUT)
        said, _ = await shown.communicate()
        assert said
        heard.texts.append(said.decode())

    await asyncio.gather(*map(run, verbs, canaries))


@pytest.mark.thorough
async def test_no_live_secret_is_in_any_answer_frame_log_line_or_file(heard: Heard) -> None:
    assert len(ALL) == len(set(ALL)) == 30
    await heard.call("GET", "/organism", headers={"Authorization": f"Bearer {IN_TOKENS[0]}"})
    await say_in_headers(heard, ALL)
    await say_in_addresses(heard, ALL)
    await say_in_bodies(heard, ALL)
    await say_in_commands(heard, ALL)
    await say_on_the_command_line(heard, ALL)
    assert (await heard.call("GET", "/dead-letters"))["dead_letters"]
    assert await heard.found() == []


async def test_any_other_text_is_stored_as_it_came(heard: Heard) -> None:
    text = "sk-proj-abcdefghijklmnop1234 is nobody's key here, <password>hunter2</password>"
    assert await heard.inject("echo", text) == f"told: {text}"
    assert await heard.inject("echo", CANARIES[0]) == "told: [redacted]"


async def test_no_live_secret_goes_out_to_a_model_or_comes_back_from_it(thinking: Heard, peer: Peer) -> None:
    async with thinking.server.socket() as socket:
        for at, canary in enumerate(CANARIES[:10]):
            answer = Answer(
                text=f"You said {canary}, and my key is {KEY}.",
                thought=f"Hm, {canary}.",
                calls=(Called("send", {"to": canary}), Called("send", f"{{{canary}")),
                pieces=5 + at * 7,
            )
            await peer.script(answer)
            injected = await thinking.inject("thinks", f"Mine is {canary}; keep it.")
            assert injected.startswith(f"Hm, {MASK}. You said {MASK}, and my key is {MASK}.")
        await thinking.listen(socket)
    requests = await peer.requests()
    prompts = [request["body"] for request in requests]
    assert [prompt["messages"][1]["content"] for prompt in prompts] == [f"Mine is {MASK}; keep it."] * 10
    assert {request["headers"]["authorization"] for request in requests} == {f"Bearer {KEY}"}
    assert await thinking.found(prompts) == []


async def test_a_model_s_server_that_repeats_a_secret_in_its_error_is_not_quoted(thinking: Heard, peer: Peer) -> None:
    for secret in (*CANARIES[:3], KEY):
        await peer.script(Answer(error=f"no such key: {secret}", status=401, times=0))
        assert "MODEL_OF_MINE" in await thinking.inject("thinks", "Hi")
        await peer.reset()
    await peer.script(Answer(error=f"bad request {CANARIES[0]}", status=400, times=0))
    assert "refused the request" in await thinking.inject("thinks", "Hi")
    assert await thinking.found() == []


async def test_a_secret_in_a_tool_s_description_refuses_the_call(thinking: Heard, peer: Peer) -> None:
    assert (await thinking.inject("offers", f"Send {CANARIES[0]} home")).startswith("leak_refused: ")
    assert await peer.requests() == []
    assert await thinking.found() == []
