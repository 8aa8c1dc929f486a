"""The commands of one WebSocket run side by side: answers carry their ids, injections keep their order."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from websockets.asyncio.client import ClientConnection

from organism.bootstrap import Parts
from organism.events.record import Record
from organism.events.vocabulary import Event, MessageSent
from organism.log.log import EventFilter, EventLog
from organism.model.ids import CONSOLE
from organism.server.ws.socket import MAX_UNDER_WAY
from tests.flows.disk import Disk
from tests.server.logged import logged
from tests.server.served import HELLO, Frames, Served, served
from tests.server.tenanted import bearer, hello_with, write_tokens
from tests.server.test_protocols import watching
from tests.server.test_socket import closed


@pytest.fixture
def disk() -> Disk:
    """The disk below ``server``."""
    return Disk()


@pytest.fixture
async def server(tmp_path: Path, disk: Disk) -> AsyncIterator[Served]:
    """The hello organism on a disk that a test can hold."""
    async with served(HELLO, tmp_path / "data", parts=Parts(driver=disk)) as made:
        yield made


async def send(socket: ClientConnection, cmd: str, mark: Any, **fields: Any) -> None:
    """Send a command and do not wait for its answer."""
    await socket.send(orjson.dumps({"cmd": cmd, "id": mark, **fields}).decode())


async def inject(socket: ClientConnection, name: str, **fields: Any) -> None:
    """Send an injection whose payload and id are its name."""
    await send(socket, "inject", name, to="greeter", payload={"name": name}, **fields)


async def answers(frames: Frames, count: int) -> dict[Any, dict[str, Any]]:
    """The next answers in the order in which they come, by the ids of their commands."""
    found: dict[Any, dict[str, Any]] = {}
    while len(found) < count:
        frame = await frames.next()
        if "id" in frame:
            found[frame["id"]] = frame
    return found


async def injections(log: EventLog) -> list[Record[Event]]:
    """What was injected, in the order of the log."""
    sent = await log.read(wanted=EventFilter(types=(MessageSent,), content=True), limit=10_000)
    return [record for record in sent if isinstance(record.event, MessageSent) and record.event.sender == CONSOLE]


async def injected_names(server: Served) -> list[str]:
    """Who was to be greeted, in the order of the log."""
    return [orjson.loads(record.content.json)["name"] for record in await injections(server.log) if record.content]


async def test_a_command_is_answered_while_an_earlier_one_waits_for_the_disk(server: Served, disk: Disk) -> None:
    async with server.socket("?events=reload") as socket:
        frames = Frames(socket)
        disk.hold()
        await inject(socket, "first")
        await send(socket, "inject", "second", to="nobody", payload={})
        await send(socket, "ping", "third")
        early = await answers(frames, 2)
        disk.release()
        late = await answers(frames, 1)
    assert {mark: said["event"] for mark, said in early.items()} == {"second": "error", "third": "ok"}
    assert late["first"]["event"] == "injected"


async def test_sixteen_injections_and_a_kill_take_two_commits(server: Served, disk: Disk) -> None:
    await server.call("POST", "/agents/greeter/pause")
    thread = (await server.inject(wait=None))["thread_id"]
    async with server.socket("?events=reload") as socket:
        frames = Frames(socket)
        disk.hold()
        for number in range(16):
            await inject(socket, str(number))
        await send(socket, "kill", "kill", thread_id=thread)
        await send(socket, "ping", "ping")
        assert set(await answers(frames, 1)) == {"ping"}  # all are under way
        disk.let_one()
        disk.let_one()
        done = await answers(frames, 17)
        disk.release()
    assert done["kill"]["event"] == "ok"
    assert (await server.get(f"/threads/{thread}"))["status"] == "killed"


async def test_injections_keep_their_order_whatever_each_has_to_look_up_or_is_refused_for(server: Served) -> None:
    ended = (await server.inject())["thread_id"]
    kinds: list[dict[str, str]] = [{}, {"idempotency_key": "key-"}, {"thread_id": ended}]
    names = [f"name {number}" for number in range(60)]
    async with server.socket("?events=reload") as socket:
        for number, name in enumerate(names):
            fields = {key: value + str(number) * (key != "thread_id") for key, value in kinds[number % 3].items()}
            await inject(socket, name, **fields)
            if number == 1:
                await inject(socket, "other", **fields)
                await inject(socket, "lost", thread_id="thr-0000000000000000")
        done = await answers(Frames(socket), len(names) + 2)
    assert await injected_names(server) == ["Dan", *names]
    assert done.pop("other")["code"] in {"request_in_progress", "idempotency_key_reused"}
    assert done.pop("lost")["code"] == "not_found"
    positions = [done[name]["position"] for name in names]
    assert positions == sorted(set(positions))


async def test_who_leaves_has_done_what_was_read_and_leaves_nothing_behind(server: Served, disk: Disk) -> None:
    with logged(level="warning") as log:
        async with server.socket("?events=reload") as socket:
            disk.hold()
            for number in range(3):
                await inject(socket, str(number), idempotency_key=str(number))
            await send(socket, "ping", "ping")
            await answers(Frames(socket), 1)
        disk.release()
        await watching(server, 0)
    assert await injected_names(server) == ["0", "1", "2"]
    assert log.entries == []


async def test_a_stop_answers_what_is_under_way(server: Served, disk: Disk) -> None:
    async with server.socket("?events=reload") as socket:
        frames = Frames(socket)
        disk.hold()
        for number in range(3):
            await inject(socket, str(number))
        await send(socket, "ping", "ping")
        await answers(frames, 1)
        server.serving.stop()
        await inject(socket, "late")
        disk.release()
        done = await answers(frames, 4)
        assert await closed(frames) in {1001, 1012}
    assert {said["event"] for mark, said in done.items() if mark != "late"} == {"injected"}
    assert done["late"].get("code") in {"stopping", None}


async def test_a_command_that_waits_when_its_token_ends_is_not_carried_out(tmp_path: Path, disk: Disk) -> None:
    config = hello_with(tmp_path, {"acme": {"ci": {"scopes": ["read", "inject"], "rate": 1000}}})
    async with served(config, tmp_path / "data", parts=Parts(driver=disk)) as server:
        async with server.socket("?events=reload", headers=bearer("acme", "ci")) as socket:
            disk.hold()
            for number in range(MAX_UNDER_WAY + 1):
                await inject(socket, str(number))
            write_tokens(tmp_path, {"acme": {}})
            assert await closed(Frames(socket)) == 4401
        disk.release()
        await watching(server, 0)
        log = server.organism.tenants["acme"].log
        assert len(await injections(log)) == MAX_UNDER_WAY
