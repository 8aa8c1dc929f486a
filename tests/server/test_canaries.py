"""Thirty live secrets, one for each place that takes input: none is in any answer, frame, log line or file (S30)."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import pytest

from organism.bootstrap import Parts
from organism.model.redact import Redactor
from tests.flows.world import MakeWorld
from tests.server.logged import Terminal, logged
from tests.server.served import Frames, Served, served
from tests.server.tenanted import token, write_tokens

SOURCE = """
async def echo(payload: Ask, metadata: HandlerMetadata):
    await metadata.effect("say " + payload.text[:20], lambda key: told(payload))
    return HandlerResponse.respond(Told("told: " + payload.text))

async def told(payload):
    return payload.text

async def fails(payload: Ask, metadata: HandlerMetadata):
    raise ValueError("no: " + payload.text)

async def asks(payload: Ask, metadata: HandlerMetadata):
    await metadata.approve({"text": payload.text})
    return HandlerResponse.respond(Told(payload.text))
"""
FROM_ENVIRONMENT = 26
CANARIES = [f'canary-{at:02}-"é<&>-{at * 7919:x}' for at in range(FROM_ENVIRONMENT)]
IN_CONFIG = ["canary-of-a-user-4711", "canary-of-an-address-4712"]
IN_TOKENS = [token("default", "used"), token("default", "never")]
ALL = [*CANARIES, *IN_CONFIG, *IN_TOKENS]
JSON = {"Content-Type": "application/json"}


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

    async def inject(self, to: str, text: str, **more: Any) -> Any:
        """One injection of a text, waiting for its end."""
        return await self.call("POST", "/inject", json={"to": to, "payload": {"text": text}, **more})

    def found(self) -> list[str]:
        """Which canary is where: in answers and frames, in the log, or in a file of the data directory."""
        places = {path.name: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        assert "log.sqlite" in places
        places |= {"answers": "\n".join(self.texts).encode(), "log": self.said.getvalue().encode()}
        return [
            f"{canary} as {form!r} in {place}: {text[max(text.index(form) - 80, 0) : text.index(form) + 80]!r}"
            for place, text in places.items()
            for canary in ALL
            for form in forms(canary)
            if form in text
        ]


def forms(canary: str) -> set[bytes]:
    """How a canary would look in text, in JSON with and without escapes, in XML, and in a URL."""
    escaped = canary.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    in_json = orjson.dumps(canary)[1:-1]
    return {canary.encode(), in_json, ascii(canary)[1:-1].encode(), escaped.encode(), quote(canary).encode()}


@pytest.fixture
async def heard(world: MakeWorld, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Heard]:
    """A server on disk whose environment, configuration and tokens hold the canaries."""
    for at, canary in enumerate(CANARIES):
        monkeypatch.setenv(f"CANARY_{at}_TOKEN", canary)
    users = (IN_CONFIG[0], f"me:{IN_CONFIG[1]}")
    embeddings = {user[:2]: {"provider": "openai", "base_url": f"https://{user}@models.example/v1"} for user in users}
    listeners: dict[str, dict[str, Any]] = {"echo": {"peers": ["console"]}, "fails": {}, "asks": {"peers": ["console"]}}
    made = world(SOURCE, listeners, embeddings=embeddings, retry={"attempts": 1})
    write_tokens(made.folder, {"default": {"used": ["admin"], "never": ["admin"]}})
    redactor = Redactor()
    with logged(redactor, level="debug") as said:
        async with served(made.config, made.data, parts=Parts(redactor=redactor)) as server:
            yield Heard(server, made.data, said)


async def say_in_headers(heard: Heard, canaries: list[str]) -> None:
    """One canary in each header that means something, and in some that mean nothing."""
    names = [
        "Idempotency-Key",
        "If-Match",
        "If-None-Match",
        "Accept",
        "Content-Type",
        "User-Agent",
        "Referer",
        "Cookie",
        "Origin",
        "Host",
        "X-Request-Id",
        "Authorization",
        "X-API-Key",
        "Last-Event-ID",
    ]
    for name, canary in zip(names, canaries * 2, strict=False):
        value = canary.encode("utf-8") if name != "Authorization" else b"Bearer " + canary.encode()
        for method, path in (("POST", "/inject"), ("GET", "/organism")):
            await heard.call(method, path, content=b"{}" if method == "POST" else None, headers={**JSON, name: value})


async def say_in_addresses(heard: Heard, canaries: list[str]) -> None:
    """In paths, names and values of queries, cursors and credentials."""
    paths = [
        "/{}",
        "/agents/{}",
        "/threads/{}",
        "/messages/{}/why",
        "/agents/{}/config",
        "/messages?q={}",
        "/messages?{}=1",
        "/messages?cursor={}",
        "/messages?agent={}",
        "/log?type={}",
        "/log?thread={}",
        "/organism?token={}",
        "/threads?status={}",
        "/organism/graph?format={}",
    ]
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
        await heard.inject("echo", f"see {canary}", wait=5)
        await heard.inject("fails", f"see {canary}", wait=5)


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
        await socket.send('{"cmd":"ping","id":"the last"}')
        while '"the last"' not in heard.texts[-1]:
            heard.texts.append(str(await asyncio.wait_for(socket.recv(), 10)))


async def say_on_the_command_line(heard: Heard, canaries: list[str]) -> None:
    """As an argument and as an option of the verbs; what they print is heard too."""
    verbs = [["agents"], ["messages", "--agent"], ["why"], ["kill"], ["inject", "echo", '{"text":"x"}', "--thread"]]
    for verb, canary in zip(verbs, canaries, strict=False):
        place = ["--url", heard.server.url, "--token", "org_for_tests"]
        told = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "organism", *verb, canary, *place, stdout=PIPE, stderr=STDOUT
        )
        said, _ = await told.communicate()
        assert said
        heard.texts.append(said.decode())


async def look_at_all(heard: Heard) -> None:
    """Every list there is, with everything that it can show."""
    letters = await heard.call("GET", "/dead-letters")
    assert letters["dead_letters"]
    for path in (
        "/organism",
        "/organism/config",
        "/agents",
        "/agents/echo/config",
        "/threads",
        "/messages?xml=true&limit=500",
        "/log?content=true&limit=500",
        "/log?limit=500",
        "/dead-letters",
        "/approvals",
        "/indeterminate",
        "/organism/graph",
    ):
        await heard.call("GET", path)


async def test_no_live_secret_is_in_any_answer_frame_log_line_or_file(heard: Heard) -> None:
    assert len(ALL) == len(set(ALL)) == 30
    await heard.call("GET", "/organism", headers={"Authorization": f"Bearer {IN_TOKENS[0]}"})
    await say_in_headers(heard, ALL)
    await say_in_addresses(heard, ALL)
    await say_in_bodies(heard, ALL)
    await say_in_commands(heard, ALL)
    await say_on_the_command_line(heard, ALL)
    await look_at_all(heard)
    await heard.server.organism.stop(1)
    assert heard.found() == []


async def test_any_other_text_is_stored_as_it_came(heard: Heard) -> None:
    text = "sk-proj-abcdefghijklmnop1234 is nobody's key here, <password>hunter2</password>"
    done = await heard.inject("echo", text, wait=5)
    assert done["replies"][0]["payload"]["text"] == f"told: {text}"


async def test_a_handler_gets_the_payload_as_it_came(heard: Heard) -> None:
    done = await heard.inject("echo", CANARIES[0], wait=5)
    assert done["replies"][0]["payload"]["text"] == "told: [redacted]"
    assert done["thread"]["status"] == "completed"
