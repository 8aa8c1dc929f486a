"""Filters, arrays and positions of a subscription, by a real client; and what a socket does not take."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from organism.server.serve import MAX_FRAME_BYTES
from tests.flows.world import MakeWorld
from tests.server.served import TOKEN, Frames, Served, served

OWN = {"connected", "agent_state", "caught_up", "checkpoint", "fell_behind"}


def logged(frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The frames that come from the log."""
    return [frame for frame in frames if frame["event"] not in OWN]


async def past(hello: Served, query: str) -> list[dict[str, Any]]:
    """What a client is given that comes with this query."""
    async with hello.socket(query) as socket:
        return logged(await Frames(socket).until("caught_up"))


async def test_an_address_may_hold_the_filter_from_the_first_frame_on(hello: Served) -> None:
    mine = (await hello.inject())["thread_id"]
    await hello.inject()
    named = await past(hello, f"?since=0&threads={mine}&agents=shouter,nobody&events=message,thread_updated")
    assert [frame["event"] for frame in named] == ["message", "message", "thread_updated"]
    assert {frame.get("thread_id") or frame["message"]["thread_id"] for frame in named} == {mine}


async def test_a_thread_s_event_names_who_takes_part_by_then(hello: Served) -> None:
    await hello.inject()
    wanted = "events=thread_created,thread_updated,message"
    told = {
        name: [frame["event"] for frame in await past(hello, f"?since=0&agents={name}&{wanted}")]
        for name in ("summarizer", "shouter", "console")
    }
    assert told == {
        "summarizer": [],
        "shouter": ["message", "message", "thread_updated"],
        "console": ["thread_created", "message", "message", "thread_updated"],
    }


async def test_an_agent_s_state_names_the_thread_that_it_works_on(world: MakeWorld) -> None:
    made = world("async def asker(payload: Ask, metadata):\n    await metadata.approve({})\n", {"asker": {}})
    async with served(made.config) as server, server.socket("?events=agent_state") as socket:
        everything = Frames(socket)
        async with server.socket("?events=agent_state&threads=another") as other:
            filtered = Frames(other)
            await everything.until("connected")
            await filtered.until("connected")
            thread = (await server.inject("asker", {"text": ""}, wait=None))["thread_id"]
            await everything.until("agent_state", agent="asker", state="waiting", current_thread=thread)
            await server.call("POST", f"/threads/{thread}/kill")
            seen = await filtered.until("agent_state", agent="asker", current_thread=None, state="idle", queue_depth=0)
    assert thread not in {frame["current_thread"] for frame in seen}


async def test_an_address_with_a_filter_and_no_position_gets_the_state(hello: Served) -> None:
    async with hello.socket("?events=thread_updated") as socket:
        frames = Frames(socket)
        assert set(await frames.next()) >= {"organism", "agents", "threads"}
        await hello.inject()
        assert (await frames.next())["event"] == "thread_updated"


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("?events=mesage", "query.events"),
        ("?batch=yes", "query.batch"),
        ("?filter=x", "query.filter"),
        ("?threads=" + "x" * 201, "query.threads"),
        ("?log=", "query.log"),
    ],
)
async def test_an_address_that_is_not_understood_names_the_parameter(hello: Served, query: str, param: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with hello.socket(query):
            pass
    assert refused.value.response.status_code == 400
    assert orjson.loads(refused.value.response.body)["error"]["param"] == param


async def test_in_arrays_come_the_same_events(hello: Served) -> None:
    async with hello.socket("?since=0&batch=true") as arrays, hello.socket("?since=0") as plain:
        await hello.inject()
        wanted = await Frames(plain).until("thread_updated")
        got: list[dict[str, Any]] = []
        while not any(event["event"] == "thread_updated" for event in got):
            frame = orjson.loads(await arrays.recv())
            got += frame if isinstance(frame, list) else [frame]
    assert logged(got) == logged(wanted)


async def test_a_subscription_without_batch_ends_the_arrays(hello: Served) -> None:
    async with hello.socket() as socket:
        frames = Frames(socket)
        await frames.until("connected")
        assert set(await frames.ask("subscribe", events=["message"], batch=True)) == {
            "event",
            "id",
            "filter",
            "position",
        }
        await hello.inject()
        first = [orjson.loads(await socket.recv()) for _ in range(4)]
        await frames.ask("subscribe", events=["message"])
        await hello.inject()
        then = [orjson.loads(await socket.recv()) for _ in range(4)]
    assert [[event["event"] for event in array] for array in first] == [["message"]] * 4
    assert [event["event"] for event in then] == ["message"] * 4


async def test_a_subscription_replaces_the_whole_filter(hello: Served) -> None:
    async with hello.socket("?agents=nobody&events=error") as socket:
        frames = Frames(socket)
        await frames.until("connected")
        answer = await frames.ask("subscribe", events=["thread_created"])
        assert answer["filter"] == {"events": ["thread_created"]}
        await hello.inject()
        assert (await frames.next())["position"] > answer["position"]
        assert (await frames.ask("subscribe"))["filter"] == {}


async def test_a_refused_subscription_leaves_the_filter_as_it_was(hello: Served) -> None:
    async with hello.socket("?events=thread_created") as socket:
        frames = Frames(socket)
        await frames.until("connected")
        ahead = await frames.ask("subscribe", events=["message"], since=hello.log.head + 1)
        other = await frames.ask("subscribe", events=["message"], since=0, log="another")
        assert (ahead["code"], other["code"]) == ("bad_position", "bad_position")
        await hello.inject()
        assert (await frames.next())["event"] == "thread_created"


@pytest.mark.parametrize("events", [["run"], ["usage"]])
async def test_frames_of_agents_runs_may_be_asked_for_where_there_are_none(hello: Served, events: list[str]) -> None:
    async with hello.socket() as socket:
        assert (await Frames(socket).ask("subscribe", events=events))["filter"] == {"events": events}


async def test_a_connection_knows_a_token_from_what_is_none(hello: Served) -> None:
    async with hello.socket() as socket:
        frames = Frames(socket)
        assert (await frames.ask("auth", token=TOKEN))["event"] == "ok"
        assert (await frames.ask("auth", token="wrong"))["code"] == "invalid_authorization"
        assert (await frames.ask("ping"))["event"] == "ok"


async def test_commands_of_every_kind_echo_any_id(hello: Served) -> None:
    async with hello.socket() as socket:
        frames = Frames(socket)
        await frames.until("connected")
        ids: list[Any] = [0, False, "", [], {"a": 1}]
        for given in ids:
            await socket.send(orjson.dumps({"cmd": "ping", "id": given}).decode())
            assert (await frames.until("ok"))[-1]["id"] == given
        await socket.send('{"cmd":"ping"}')
        assert set((await frames.until("ok"))[-1]) == {"event", "position"}


async def test_an_approval_is_resolved_over_the_socket_and_once(world: MakeWorld) -> None:
    made = world("async def asker(payload: Ask, metadata):\n    await metadata.approve({'n': 1})\n", {"asker": {}})
    async with served(made.config) as server, server.socket() as socket:
        frames = Frames(socket)
        await frames.until("connected")
        await frames.ask("inject", to="asker", payload={"text": ""})
        approval = (await server.get("/approvals"))["approvals"][0]["id"]
        assert (await frames.ask("resolve", approval=approval, decision="maybe"))["code"] == "invalid_field"
        done = await frames.ask("resolve", approval=approval, decision="reject", comment="no")
        assert set(done) == {"event", "id", "position"}
        assert (await frames.ask("resolve", approval=approval, decision="approve"))["code"] == "already_resolved"


async def test_who_pauses_nothing_is_told_what_can_be_paused(hello: Served) -> None:
    async with hello.socket() as socket:
        refused = await Frames(socket).ask("pause")
    assert (refused["code"], refused["param"]) == ("missing_field", "/agent")
    assert "/api/v1/organism/pause" in refused["error"]


async def test_a_message_in_parts_is_measured_whole(hello: Served) -> None:
    async with hello.socket() as socket:
        frames = Frames(socket)
        await frames.until("connected")
        await socket.send(['{"cmd":"ping",', '"id":', "7}"])
        assert (await frames.until("ok"))[-1]["id"] == 7
        await socket.send([" " * (MAX_FRAME_BYTES // 2 + 1)] * 2)
        await socket.wait_closed()
    assert socket.close_code == 1009


async def test_a_client_that_offers_compression_gets_none(hello: Served) -> None:
    url = hello.url.replace("http", "ws", 1) + "/ws"
    async with connect(url, additional_headers=hello.bearer, compression="deflate", proxy=None) as socket:
        assert socket.response is not None
        assert "Sec-WebSocket-Extensions" not in socket.response.headers
