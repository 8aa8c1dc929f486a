"""The WebSocket by a real client: the first frame, events, commands, resuming."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from organism.server.serve import MAX_FRAME_BYTES
from organism.server.socket import AUTH_SECONDS
from tests.flows.world import MakeWorld
from tests.server.served import LISTENERS, TOKEN, Frames, Served, served

HOPS = [
    ("console", "greeter"),
    ("greeter", "shouter"),
    ("shouter", "response-handler"),
    ("response-handler", "console"),
]


OWN = {"connected", "agent_state", "caught_up", "checkpoint", "fell_behind"}


def logged(frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The frames that come from the log."""
    return [frame for frame in frames if frame["event"] not in OWN]


async def past(hello: Served, query: str) -> list[dict[str, Any]]:
    """What a client is given that comes with this query."""
    async with hello.socket(query) as socket:
        return logged(await Frames(socket).until("caught_up"))


async def closed(frames: Frames) -> int | None:
    """The code that the server closes with."""
    try:
        while True:
            await frames.next()
    except ConnectionClosed as end:
        return end.rcvd.code if end.rcvd else None


async def test_the_first_frame_is_how_everything_stands(hello: Served) -> None:
    said = await hello.inject()
    async with hello.socket() as socket:
        frame = await Frames(socket).next()
    assert frame["event"] == "connected"
    assert frame["position"] == said["thread"]["position"]
    assert frame["log"] == hello.log.timeline
    assert (frame["organism"]["name"], frame["organism"]["total_messages"]) == ("hello-world", 4)
    assert [agent["name"] for agent in frame["agents"]] == LISTENERS
    assert (frame["threads"], frame["threads_total"]) == ([said["thread"]], 1)


async def test_a_hop_is_pushed_as_it_happens(hello: Served) -> None:
    async with hello.socket() as socket:
        frames = Frames(socket)
        await frames.until("connected")
        said = await hello.inject()
        seen = await frames.until("thread_updated")
        seen = [frame for frame in seen if frame["event"] != "agent_state"]
    assert [frame["event"] for frame in seen] == [
        "thread_created",
        "message",
        "message",
        "message",
        "message",
        "thread_updated",
    ]
    assert [frame["position"] for frame in seen] == sorted({frame["position"] for frame in seen})
    assert (seen[0]["thread"]["status"], seen[0]["thread"]["participants"]) == ("active", ["console", "greeter"])
    assert [(frame["message"]["from"], frame["message"]["to"]) for frame in seen[1:5]] == HOPS
    assert seen[1]["message"] == await hello.get(f"/messages/{said['message_id']}")
    last = seen[-1]
    assert (last["thread_id"], last["status"], last["message_count"]) == (said["thread_id"], "completed", 4)


async def test_each_failed_attempt_is_an_error_and_the_last_one_a_dead_letter_too(world: MakeWorld) -> None:
    made = world(
        "async def broken(payload: Ask, metadata):\n    raise ValueError('no')\n",
        {"broken": {}},
        retry={"attempts": 2, "base_delay_s": 0.01},
    )
    async with served(made.config) as server, server.socket() as socket:
        frames = Frames(socket)
        await frames.until("connected")
        said = await server.inject("broken", {"text": ""})
        seen = await frames.until("thread_updated")
    errors = [frame for frame in seen if frame["event"] == "error"]
    for error in errors:
        assert (error["thread_id"], error["agent"], error["error"]) == (said["thread_id"], "broken", "ValueError: no")
        assert set(error) >= {"timestamp", "position"}
    assert [(error["attempt"], error["next_at"] is None) for error in errors] == [(1, False), (2, True)]
    dead = next(frame for frame in seen if frame["event"] == "dead_letter")
    assert dead["position"] > errors[-1]["position"]
    assert (dead["agent"], dead["dead_letter"]["code"], dead["dead_letter"]["attempts"]) == (
        "broken",
        "handler_error",
        2,
    )
    assert (seen[-1]["status"], seen[-1]["error"]) == ("error", "ValueError: no")


async def test_pauses_and_reloads_of_the_organism_are_pushed(world: MakeWorld) -> None:
    source = "async def one(payload: Ask, metadata):\n    return None\n"
    made = world(source, {"one": {}})
    async with served(made.config) as server, server.socket() as socket:
        frames = Frames(socket)
        await server.call("POST", "/organism/pause")
        await frames.until("organism_state", status="paused")
        await server.call("POST", "/organism/resume")
        await frames.until("organism_state", status="running")
        made.write(source, {"one": {}, "other": {"handler": "one"}})
        await server.call("POST", "/organism/reload")
        assert (await frames.until("reload"))[-1]["added"] == ["other"]


async def test_a_cut_after_any_frame_loses_nothing(hello: Served) -> None:
    await hello.inject()
    whole = await past(hello, "?since=0")
    for at, frame in enumerate(whole):
        assert await past(hello, f"?since={frame['position']}") == whole[at + 1 :]


async def test_the_past_is_pushed_as_it_was_live(hello: Served) -> None:
    async with hello.socket() as socket:
        frames = Frames(socket)
        start = (await frames.next())["position"]
        await hello.inject()
        await hello.inject()
        live = await frames.until("thread_updated") + await frames.until("thread_updated")
    assert await past(hello, f"?since={start}") == logged(live)


@pytest.mark.parametrize("query", ["?since=999999", "?since=0&log=other", "?log=other"])
async def test_a_position_of_another_log_is_refused(hello: Served, query: str) -> None:
    async with hello.socket(query) as socket:
        frames = Frames(socket)
        assert (await frames.next())["code"] == "bad_position"
        assert await closed(frames) == 1008


async def test_a_token_may_come_as_the_first_message(hello: Served) -> None:
    async with hello.socket(headers={}) as socket:
        await socket.send(orjson.dumps({"cmd": "auth", "token": TOKEN, "id": 7}).decode())
        frames = Frames(socket)
        ok, connected = await frames.next(), await frames.next()
    assert (ok["event"], ok["id"], connected["event"]) == ("ok", 7, "connected")


async def test_whoever_says_nothing_is_told_after_a_while_and_closed(
    hello: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert AUTH_SECONDS == 10
    monkeypatch.setattr("organism.server.socket.AUTH_SECONDS", 0.05)
    async with hello.socket(headers={}) as socket:
        frames = Frames(socket)
        assert (await frames.next())["code"] == "missing_authorization"
        assert await closed(frames) == 4401


async def test_injections_are_answered_with_their_ids(hello: Served) -> None:
    async with hello.socket() as socket:
        frames = Frames(socket)
        sent = await frames.ask("inject", to="greeter", payload={"name": "Dan"}, idempotency_key="k")
        again = await frames.ask("inject", to="greeter", payload={"name": "Dan"}, idempotency_key="k")
        other = await frames.ask("inject", to="greeter", payload={"name": "Eve"}, idempotency_key="k")
    assert (sent["event"], set(sent)) == ("injected", {"event", "id", "thread_id", "message_id", "position"})
    assert {**again, "id": 0} == {**sent, "id": 0}
    assert other["code"] == "idempotency_key_reused"


async def test_commands_control_agents_and_threads(hello: Served) -> None:
    async with hello.socket() as socket:
        frames = Frames(socket)
        assert (await frames.ask("ping"))["event"] == "ok"
        paused = await frames.ask("pause", agent="shouter")
        assert paused["position"] == hello.log.head
        thread = (await frames.ask("inject", to="greeter", payload={"name": "Dan"}))["thread_id"]
        assert (await frames.ask("pause", thread_id=thread))["event"] == "ok"
        assert (await frames.ask("resume", thread_id=thread))["event"] == "ok"
        assert (await frames.ask("kill", thread_id=thread))["event"] == "ok"
        assert (await frames.ask("resume", agent="shouter"))["event"] == "ok"
    assert (await hello.get(f"/threads/{thread}"))["status"] == "killed"


async def test_a_filter_holds_from_its_answer_on(hello: Served) -> None:
    async with hello.socket() as socket:
        frames = Frames(socket)
        await frames.until("connected")
        answer = await frames.ask("subscribe", events=["thread_updated"])
        assert (answer["filter"], answer["position"]) == ({"events": ["thread_updated"]}, hello.log.head)
        await hello.inject()
        assert (await frames.next())["event"] == "thread_updated"
        await frames.ask("subscribe", agents=["shouter"], events=["message"])
        await hello.inject()
        seen = [await frames.next(), await frames.next()]
    assert [(frame["message"]["from"], frame["message"]["to"]) for frame in seen] == HOPS[1:3]


async def test_a_stop_tells_every_viewer_and_closes_its_socket() -> None:
    async with served() as server, server.socket() as socket:
        frames = Frames(socket)
        await frames.until("connected")
        server.serving.stop()
        await frames.until("organism_state", status="stopping")
        assert await closed(frames) in {1001, 1012}


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
            await server.call("POST", "/agents/asker/pause")
            assert (await everything.until("agent_state", agent="asker", state="paused"))[-1]["paused"] is True
    assert thread not in {frame["current_thread"] for frame in seen}


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
