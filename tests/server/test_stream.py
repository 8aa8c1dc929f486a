"""``GET /events``: the twin of the WebSocket by Server-Sent Events."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from organism.bootstrap import Parts
from organism.events.vocabulary import MessageSent
from organism.log.log import EventFilter
from organism.views.run import fold
from tests.flows.speaker import Speaker
from tests.flows.stage import TurnedTime
from tests.flows.world import MakeWorld
from tests.server.contract import contract
from tests.server.served import PATIENCE_SECONDS, TOKEN, Frames, Served, lines_of, patience, served
from tests.server.tenanted import bearer, hello_with, write_tokens

Said = tuple[str | None, dict[str, Any]]
GIVEN_UP_SECONDS = 60
"""The kernel does it after eight, if the machine has nothing else to do."""


class Listening:
    """A client of the stream: the events one by one, each with its id."""

    def __init__(self, lines: AsyncIterator[str]) -> None:
        self._lines = lines
        self.comments = 0

    async def next(self) -> Said:
        """The next event."""
        shown: dict[str, str] = {}
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for line in self._lines:
                if not line and shown:
                    contract().check_frame(shown["data"])
                    return shown.get("id"), orjson.loads(shown["data"])
                self.comments += line.startswith(":")
                name, _, value = line.partition(": ")
                shown |= {name: value} if value else {}
        raise EOFError

    async def until(self, event: str, **fields: Any) -> list[Said]:
        """The events up to one of this name with these fields, it included."""
        seen: list[Said] = []
        while not seen or (seen[-1][1]["event"], fields) != (event, {name: seen[-1][1].get(name) for name in fields}):
            seen.append(await self.next())
        return seen


@asynccontextmanager
async def listening(server: Served, query: str = "", **headers: str) -> AsyncIterator[Listening]:
    """A stream that is open and has been accepted."""
    given = {**server.bearer, **{name.replace("_", "-"): value for name, value in headers.items()}}
    async with server.client.stream("GET", f"/api/v1/events{query}", headers=given) as answer:
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")
        yield Listening(lines_of(answer))


async def until_free(server: Served) -> None:
    """Wait until nobody watches."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while server.serving.process.connections.count:
            await server.get("//healthz")


async def test_it_says_what_the_socket_says_with_the_position_as_id(hello: Served) -> None:
    async with listening(hello) as events, hello.socket() as peer:
        frames = Frames(peer)
        name, first = await events.next()
        same = await frames.next()
        assert name == str(first["position"])
        assert [first.pop("organism")["name"], same.pop("organism")["name"]] == ["hello-world"] * 2
        assert first == same
        await hello.inject()
        shown = await events.until("thread_updated", status="completed")
        seen = await frames.until("thread_updated", status="completed")
    assert [said for _, said in shown if "position" in said] == [frame for frame in seen if "position" in frame]
    assert all(name == (str(said["position"]) if "position" in said else None) for name, said in shown)
    assert [said["message"]["to"] for _, said in shown if said["event"] == "message"] == [
        "greeter", "shouter", "response-handler", "console",
    ]  # fmt: skip


@pytest.mark.parametrize("query", ["", "?since=1"])
async def test_a_client_that_comes_again_goes_on_after_the_last_id(shared: Served, query: str) -> None:
    since = f"?since={shared.log.head}"
    await shared.inject()
    async with listening(shared, since) as events:
        everything = [each for each in await events.until("caught_up") if each[1]["event"] != "agent_state"]
    cut = next(name for name, each in everything if each["event"] == "message")
    assert cut is not None
    async with listening(shared, query, Last_Event_ID=cut) as events:
        rest = await events.until("caught_up")
    at = [name for name, _ in everything].index(cut)
    assert [each for each in rest[1:] if each[1]["event"] != "agent_state"] == everything[at + 1 :]


@pytest.mark.parametrize(
    ("query", "headers", "code", "param"),
    [
        ("?since=x", {}, "invalid_field", "query.since"),
        ("?since=", {}, "invalid_field", "query.since"),
        ("?since=-1", {}, "invalid_field", "query.since"),
        ("?since=99999", {}, "bad_position", "query.since"),
        ("?log=other&since=0", {}, "bad_position", "query.log"),
        ("?log=other", {}, "bad_position", "query.log"),
        ("", {"Last-Event-ID": "soon"}, "invalid_field", "headers.last-event-id"),
        ("", {"Last-Event-ID": "99999"}, "bad_position", "headers.last-event-id"),
        ("?events=message,eaten", {}, "invalid_field", "query.events"),
        ("?batch=true", {}, "unknown_field", "query.batch"),
    ],
)
async def test_what_cannot_be_followed_is_refused_before_it_begins(
    shared: Served, query: str, headers: dict[str, str], code: str, param: str
) -> None:
    answer = await shared.call("GET", f"/events{query}", headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"], answer.json()["error"]["param"]) == (400, code, param)
    await until_free(shared)


async def test_a_quiet_stream_is_kept_open_by_a_heartbeat() -> None:
    async with (
        served(settings=patience(heartbeat_seconds=0.01)) as server,
        listening(server, "?since=0&events=error") as events,
    ):
        await events.until("caught_up")
        nothing = asyncio.ensure_future(events.next())
        await server.until(lambda: events.comments > 1)
        nothing.cancel()


async def test_anyone_who_leaves_is_forgotten_and_a_head_ends_at_once(shared: Served) -> None:
    await until_free(shared)
    async with listening(shared) as events:
        await events.next()
        assert shared.serving.process.connections.count == 1
    await until_free(shared)
    answer = await shared.call("HEAD", "/events")
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"] == "text/event-stream"
    await until_free(shared)


async def test_a_stop_ends_the_stream_after_the_last_event() -> None:
    async with served() as server, listening(server) as events:
        await events.next()
        await server.call("POST", "/organism/stop")
        assert (await events.until("organism_state"))[-1][1]["status"] == "stopping"
        with pytest.raises(EOFError):
            await events.until("nothing more")


async def test_a_token_that_lost_its_right_ends_the_stream(tmp_path: Path) -> None:
    config = hello_with(tmp_path, {"acme": {"ci": ["read"]}})
    async with served(config) as server, listening(server, **bearer("acme", "ci")) as events:
        await events.next()
        write_tokens(tmp_path, {"acme": {}})
        with pytest.raises(EOFError):
            await events.until("nothing more")


async def test_who_reads_late_misses_nothing(hello: Served) -> None:
    async with listening(hello, "?since=0&events=message") as events:
        for _ in range(15):  # more than the connection's buffers hold, and not so long that the kernel gives up
            await hello.inject(payload={"name": "x" * 200_000})
        seen = await events.until("message", position=await last_message(hello))
    positions = [said["position"] for _, said in seen if said["event"] == "message"]
    assert positions == sorted(set(positions))
    assert len(positions) == (await hello.get("/organism"))["total_messages"]


async def last_message(server: Served) -> int:
    """The position of the newest message."""
    (found,) = await server.log.read(wanted=EventFilter(types=(MessageSent,)), limit=1, reverse=True)
    return found.position


@pytest.mark.thorough
async def test_who_reads_nothing_is_given_up_by_the_kernel(hello: Served) -> None:
    """It is the kernel that gives up: see ``TCP_USER_TIMEOUT`` in ``serve.listen``."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", int(hello.url.rpartition(":")[2])))
        head = f"GET /api/v1/events?since=0 HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
        client.sendall(head.encode())
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not hello.serving.process.connections.count:
                await hello.get("//healthz")
        for _ in range(60):  # more than the kernel's buffers hold
            await hello.inject(payload={"name": "x" * 50_000})
        async with asyncio.timeout(GIVEN_UP_SECONDS):
            while hello.serving.process.connections.count:
                await hello.get("//healthz")


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


def kinds_of(frames: list[dict[str, Any]]) -> list[tuple[str, Any]]:
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


async def test_the_socket_and_the_stream_show_a_run_as_it_comes_and_again_from_the_log(world: MakeWorld) -> None:
    made, speaker = world(TALKER, {"talker": {}}), Speaker()
    async with (
        served(made.config, parts=still(speaker)) as server,
        server.socket("?events=run") as socket,
        listening(server, "?events=run") as page,
    ):
        frames = Frames(socket)
        await frames.next()
        await page.next()
        thread = await inject(server)
        before = await frames.until("run", type="message_delta", data={"id": "m1", "delta": "One,", "offset": 0})
        speaker.open("two")
        before += await frames.until("run", type="message_delta", data={"id": "m1", "delta": "2,", "offset": 4})
        speaker.open("three")
        before += await frames.until("run", type="done")
        seen = await page.until("run", type="done")
    assert kinds_of(before) == kinds_of([frame for _, frame in seen]) == SHOWN
    assert all((name == str(frame["position"])) if "position" in frame else name is None for name, frame in seen)
    messages = [frame["data"] for frame in before if "position" not in frame]
    assert [data["delta"] for data in messages if data["id"] == "m1"] == ["One,", "2,", "three."]
    assert {(frame["thread_id"], frame["agent"]) for frame in before} == {(thread, "talker")}
    assert fold(entries(before))["messages"] == [{"role": "assistant", "content": "One,2,three."}]


@pytest.mark.parametrize("cut", [2, 4, 6])
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
    assert kinds_of(seen) == SHOWN
