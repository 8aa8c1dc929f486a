"""The WebSocket by a real client: the first frame, events, commands, resuming."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

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


async def test_an_agents_state_is_pushed(world: MakeWorld) -> None:
    made = world("async def asker(payload: Ask, metadata):\n    await metadata.approve({})\n", {"asker": {}})
    async with served(made.config) as server, server.socket() as socket:
        frames = Frames(socket)
        await frames.until("connected")
        thread = (await server.inject("asker", {"text": ""}, wait=None))["thread_id"]
        state = (await frames.until("agent_state", agent="asker", state="waiting"))[-1]
        assert state["current_thread"] == thread
        await server.call("POST", f"/threads/{thread}/kill")
        assert (await frames.until("agent_state", agent="asker", state="idle"))[-1]["current_thread"] is None
        await server.call("POST", "/agents/asker/pause")
        assert (await frames.until("agent_state", agent="asker", state="paused"))[-1]["paused"] is True


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


async def test_whoever_comes_back_with_a_position_gets_all_that_follows_it_and_nothing_twice(hello: Served) -> None:
    async with hello.socket() as socket:
        connected = await Frames(socket).next()
    for _ in range(3):
        await hello.inject()
    async with hello.socket(f"?since={connected['position']}&log={connected['log']}") as socket:
        frames = Frames(socket)
        first = await frames.next()
        assert first == {"event": "connected", "position": connected["position"], "log": connected["log"]}
        missed = [frame for frame in await frames.until("caught_up") if "position" in frame]
    assert missed[-1]["position"] == hello.log.head
    positions = [frame["position"] for frame in missed[:-1]]
    assert positions == sorted(set(positions))
    assert [frame["event"] for frame in missed].count("message") == 12


async def test_a_cut_after_any_frame_loses_nothing(hello: Served) -> None:
    await hello.inject()
    async with hello.socket("?since=0") as socket:
        whole = [
            frame
            for frame in await Frames(socket).until("caught_up")
            if frame["event"] not in {"connected", "agent_state"}
        ]
    for at, frame in enumerate(whole[:-1]):
        async with hello.socket(f"?since={frame['position']}") as socket:
            rest = [
                frame
                for frame in await Frames(socket).until("caught_up")
                if frame["event"] not in {"connected", "agent_state"}
            ]
        assert rest == whole[at + 1 :]


async def test_the_past_is_pushed_as_it_was_live(hello: Served) -> None:
    async with hello.socket() as socket:
        frames = Frames(socket)
        start = (await frames.next())["position"]
        await hello.inject()
        await hello.inject()
        live = [
            frame
            for frame in await frames.until("thread_updated") + await frames.until("thread_updated")
            if "position" in frame
        ]
    async with hello.socket(f"?since={start}") as socket:
        again = [
            frame
            for frame in await Frames(socket).until("caught_up")
            if frame["event"] not in {"connected", "agent_state", "caught_up"}
        ]
    assert again == live


@pytest.mark.parametrize("query", ["?since=999999", "?since=0&log=other", "?log=other"])
async def test_a_position_of_another_log_is_refused(hello: Served, query: str) -> None:
    async with hello.socket(query) as socket:
        frames = Frames(socket)
        assert (await frames.next())["code"] == "bad_position"
        assert await closed(frames) == 1008


@pytest.mark.parametrize("query", ["?since=x", "?since=-1", "?snce=1", f"?token={TOKEN}"])
async def test_a_query_that_is_not_understood_is_refused_at_the_door(hello: Served, query: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with hello.socket(query):
            pass
    assert refused.value.response.status_code == 400
    assert TOKEN.encode() not in refused.value.response.body


async def test_another_name_is_turned_away(hello: Served) -> None:
    port = int(hello.url.rsplit(":", 1)[1])
    with pytest.raises(InvalidStatus) as refused:
        await connect(f"ws://evil.example:{port}/ws", host="127.0.0.1", additional_headers=hello.bearer, proxy=None)
    assert refused.value.response.status_code == 403


async def test_another_sites_page_is_turned_away(hello: Served) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with hello.socket(headers={**hello.bearer, "Origin": "http://evil.example"}):
            pass
    assert refused.value.response.status_code == 403


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


async def test_a_wrong_token_in_a_header_is_closed(hello: Served) -> None:
    async with hello.socket(headers={"X-API-Key": "wrong"}) as socket:
        assert await closed(Frames(socket)) == 4401


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


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"cmd": "dance"}, "invalid_field"),
    ({"cmd": 3}, "invalid_field"),
    ({}, "missing_field"),
    ({"cmd": "inject", "to": "greeter"}, "missing_field"),
    ({"cmd": "inject", "to": "nobody", "payload": {}}, "not_found"),
    ({"cmd": "inject", "to": "greeter", "payload": {"x": 1}}, "invalid_payload"),
    ({"cmd": "inject", "to": "greeter", "payload": {"name": "D"}, "wait": 3}, "unknown_field"),
    ({"cmd": "inject", "to": "greeter", "payload": {}, "idempotency_key": "a b"}, "invalid_field"),
    ({"cmd": "pause"}, "missing_field"),
    ({"cmd": "pause", "agent": "greeter", "thread_id": "x"}, "invalid_field"),
    ({"cmd": "kill", "thread_id": "x"}, "not_found"),
    ({"cmd": "subscribe", "events": ["mesage"]}, "invalid_field"),
    ({"cmd": "subscribe", "threads": "x"}, "invalid_field"),
    ({"cmd": "subscribe", "since": 10**9}, "bad_position"),
    ({"cmd": "subscribe", "since": 0, "log": "other"}, "bad_position"),
    ({"cmd": "resolve", "approval": "x", "decision": "approve"}, "not_found"),
]


async def test_a_command_that_is_wrong_is_answered_and_the_connection_lives(hello: Served) -> None:
    async with hello.socket() as socket:
        frames = Frames(socket)
        for at, (command, code) in enumerate(WRONG):
            await socket.send(orjson.dumps({"id": at, **command}).decode())
            answer = (await frames.until("error"))[-1]
            assert (command, answer["id"], answer["code"]) == (command, at, code)
        assert (await frames.ask("ping"))["event"] == "ok"


async def test_a_frame_that_is_too_large_closes_the_connection(hello: Served) -> None:
    async with hello.socket() as socket:
        await socket.send(" " * (MAX_FRAME_BYTES + 1))
        assert await closed(Frames(socket)) == 1009


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


async def test_a_filter_by_thread_lets_no_other_thread_through(hello: Served) -> None:
    mine = (await hello.inject())["thread_id"]
    async with hello.socket() as socket:
        frames = Frames(socket)
        await frames.until("connected")
        await frames.ask("subscribe", threads=[mine])
        await hello.inject()
        await hello.inject(thread_id=mine)
        seen = await frames.until("thread_updated", status="completed")
    named = [
        frame.get("thread_id") or frame.get("message", {}).get("thread_id")
        for frame in seen
        if frame["event"] != "agent_state"
    ]
    assert set(named) == {mine}


async def test_a_subscription_may_go_back(hello: Served) -> None:
    await hello.inject()
    async with hello.socket() as socket:
        frames = Frames(socket)
        answer = await frames.ask("subscribe", events=["message"], since=0)
        assert answer["position"] == 0
        seen = await frames.until("caught_up")
    assert [frame["event"] for frame in seen] == ["message"] * 4 + ["caught_up"]


async def test_many_watch_the_same_and_each_sees_all(hello: Served) -> None:
    async def watch() -> list[int]:
        async with hello.socket() as socket:
            frames = Frames(socket)
            await frames.until("connected")
            ready.release()
            seen = await frames.until("thread_updated", status="completed")
            return [frame["position"] for frame in seen if "position" in frame]

    ready = asyncio.Semaphore(0)
    watching = [asyncio.ensure_future(watch()) for _ in range(20)]
    for _ in watching:
        await ready.acquire()
    await hello.inject()
    seen = await asyncio.gather(*watching)
    assert all(positions == seen[0] for positions in seen)


async def test_a_stop_tells_every_viewer_and_closes_its_socket() -> None:
    async with served() as server, server.socket() as socket:
        frames = Frames(socket)
        await frames.until("connected")
        server.serving.stop()
        await frames.until("organism_state", status="stopping")
        assert await closed(frames) in {1001, 1012}
