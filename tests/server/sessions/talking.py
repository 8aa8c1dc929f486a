"""A server with agents that remember, and users who talk with them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import orjson

from tests.flows import stage
from tests.flows.world import World
from tests.server.served import Served, served
from tests.server.tenanted import bearer, write_tokens

SOURCE = """
from organism import Answer, Prompt

async def parrot(payload: Prompt, metadata: HandlerMetadata):
    if payload.message.startswith("wait"):
        await gate(payload.message)
    if payload.message == "fail":
        raise ValueError("no")
    said = [each["content"] for each in await metadata.history()]
    text = f"{payload.message} after {len(said)}: {' | '.join(said)}"
    await metadata.emit("message_start", {"id": "m1"})
    for at in range(0, len(text), 5):
        await metadata.emit("message_delta", {"id": "m1", "delta": text[at : at + 5]})
    await metadata.emit("message_end", {"id": "m1"})
    await metadata.emit("done", {"stopReason": "stop"})
    return HandlerResponse.respond(Answer(text))

small = other = parrot

@dataclass
class Summarize:
    text: str
    is_talk: bool = False
    model: str | None = None

async def summarizer(payload: Summarize, metadata: HandlerMetadata):
    if "wait for it" in payload.text:
        await gate("summary")
    if "no summary" in payload.text:
        raise ValueError("no")
    return HandlerResponse.respond(Told(f"short of {payload.text.count('user: ')}"))
"""
MODES = ["batch", "stream", "force"]
LISTENERS: dict[str, dict[str, Any]] = {
    "parrot": {"payload_class": "Prompt", "invoke": MODES, "max_concurrent": 50},
    "other": {"payload_class": "Prompt", "invoke": MODES},
    "small": {"payload_class": "Prompt", "invoke": MODES, "model": "tiny"},
    "plain": {"payload_class": "Prompt", "handler": "parrot", "invoke": ["batch", "stream"]},
    "summarizer": {"payload_class": "Summarize"},
}
TOKENS: dict[str, Any] = {
    "talker": {"scopes": ["agents:chat"], "rate": 1000},
    "narrow": {"scopes": ["agents:chat:agent:other"], "rate": 1000},
    "boss": {"scopes": ["agents:chat"], "tenant_admin": True, "rate": 1000},
}


@asynccontextmanager
async def talking(folder: Path, data: Path | None = None, **parts: Any) -> AsyncIterator[Served]:
    """Two tenants, each with a token to talk and one of an administrator."""
    tiny = {"provider": "offline", "context_window": 50}
    made = World(folder, SOURCE, LISTENERS, retry={"attempts": 1}, models={"tiny": tiny})
    write_tokens(made.folder, {"default": TOKENS, "acme": TOKENS})
    async with served(made.config, data, **parts) as server:
        yield server


@dataclass(frozen=True)
class User:
    """A user of a tenant, by the tenant's token."""

    server: Served
    name: str | None = "dan"
    tenant: str = "default"
    token: str = "talker"

    async def call(
        self, method: str, path: str, body: Any = None, *, follow_redirects: bool = False, **headers: str
    ) -> httpx2.Response:
        """A request below /a1/agents, or to a whole path."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        named = {} if self.name is None else {"SPASS-User-Id": self.name}
        address = path if path.startswith("/") else f"/a1/agents/{path}"
        wanted = {**bearer(self.tenant, self.token), **named, **given}
        how = {"json": body, "headers": wanted, "follow_redirects": follow_redirects}
        return await self.server.client.request(method, address, **how)

    async def begin(self, agent: str = "parrot", **settings: Any) -> str:
        """A new session."""
        answer = await self.call("POST", f"{agent}/sessions", settings)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    async def say(
        self, session: str, message: str, agent: str = "parrot", *, follow_redirects: bool = False, **more: Any
    ) -> httpx2.Response:
        """A turn; what begins with a capital is a header."""
        headers = {name: value for name, value in more.items() if name[0].isupper()}
        body = {name: value for name, value in more.items() if name not in headers}
        path = f"{agent}/sessions/{session}/messages"
        return await self.call("POST", path, {"message": message, **body}, follow_redirects=follow_redirects, **headers)

    async def history(self, session: str, query: str = "") -> Any:
        """Its messages."""
        answer = await self.call("GET", f"parrot/sessions/{session}/messages{query}")
        assert answer.status_code == 200, answer.text
        return answer.json()


def events_of(text: str) -> list[tuple[str, Any]]:
    """The id and the entry of each event of the run."""
    found = [dict(line.split(": ", 1) for line in part.split("\n")) for part in text.split("\n\n") if "data: " in part]
    return [(each["id"], orjson.loads(each["data"])) for each in found if "id" in each]


def text_of(entries: list[tuple[str, Any]]) -> str:
    """What they say."""
    return "".join(entry["data"].get("delta", "") for _, entry in entries)


async def at_gate(server: Served, name: str) -> None:
    """Wait until a turn has come to this gate."""
    await stage.at_gate(_running(server), name)


def open_gate(server: Served, *names: str) -> None:
    """Let the turns at these gates go on."""
    stage.open_gate(_running(server), *names)


def _running(server: Served) -> Any:
    return server  # it has an organism, too


def error_of(answer: httpx2.Response) -> tuple[int, str, str | None]:
    """The status, code and place of a refusal."""
    said = answer.json()["error"]
    return answer.status_code, said["code"], said["param"]
