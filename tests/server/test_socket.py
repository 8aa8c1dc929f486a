"""The WebSocket by a real client: the first frame, events, commands, resuming."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import orjson
import pytest
import pytest_asyncio
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from organism.server.http.connections import Timeouts
from organism.server.runner import MAX_FRAME_BYTES
from tests.flows.world import MakeWorld, World
from tests.server.served import LISTENERS, TOKEN, Frames, Served, patience, served

WAY = ["console", "greeter", "shouter", "response-handler", "console"]
HOPS = list(itertools.pairwise(WAY))
OWN = {"connected", "agent_state", "caught_up", "checkpoint", "fell_behind"}
PLAYED = """
async def asker(payload: Ask, metadata):
    await metadata.approve({"n": 1})

async def broken(payload: Ask, metadata):
    raise ValueError("no")
"""


async def closed(frames: Frames) -> int | None:
    """The code that the server closes with."""
    try:
        while True:
            await frames.next()
    except ConnectionClosed as end:
        return end.rcvd.code if end.rcvd else None


def logged(frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The frames that come from the log."""
    return [frame for frame in frames if frame["event"] not in OWN]


async def past(server: Served, query: str) -> list[dict[str, Any]]:
    """What a client is given that comes with this query."""
    async with server.socket(query) as socket:
        return logged(await Frames(socket).until("caught_up"))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_play(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    """One who asks for an approval, and one who fails."""
    retry = {"attempts": 2, "base_delay_s": 0.01}
    made = World(tmp_path_factory.mktemp("play"), PLAYED, {"asker": {}, "broken": {}}, retry=retry)
    async with served(made.config) as server:
        yield server


async def test_the_first_frame_is_how_everything_stands(hello: Served) -> None:
    injected = await hello.inject()
    async with hello.socket() as socket:
        frame = await Frames(socket).next()
    assert frame["event"] == "connected"
    assert frame["position"] == injected["thread"]["position"]
    assert frame["log"] == hello.log.timeline
    assert (frame["organism"]["name"], frame["organism"]["total_messages"]) == ("hello-world", 4)
    assert [agent["name"] for agent in frame["agents"]] == LISTENERS
    assert (frame["threads"], frame["threads_total"]) == ([injected["thread"]], 1)


async def test_a_hop_is_pushed_as_it_happens(shared: Served) -> None:
    async with shared.socket() as socket:
        frames = Frames(socket)
        await frames.until("connected")
        injected = await shared.inject()
        seen = await frames.until("thread_updated")
        seen = [frame for frame in seen if frame["event"] != "agent_state"]
    assert [frame["event"] for frame in seen] == ["thread_created", *["message"] * 4, "thread_updated"]
    assert [frame["position"] for frame in seen] == sorted({frame["position"] for frame in seen})
    assert (seen[0]["thread"]["status"], seen[0]["thread"]["participants"]) == ("active", ["console", "greeter"])
    assert [(frame["message"]["from"], frame["message"]["to"]) for frame in seen[1:5]] == HOPS
    assert seen[1]["message"] == await shared.get(f"/messages/{injected['message_id']}")
    last = seen[-1]
    assert (last["thread_id"], last["status"], last["message_count"]) == (injected["thread_id"], "completed", 4)


async def test_an_agents_state_and_the_thread_that_it_works_on_are_pushed(shared_play: Served) -> None:
    async with (
        shared_play.socket("?events=agent_state") as socket,
        shared_play.socket("?events=agent_state&threads=another") as other,
    ):
        frames, filtered = Frames(socket), Frames(other)
        await frames.until("connected")
        await filtered.until("connected")
        thread = (await shared_play.inject("asker", {"text": ""}, wait=None))["thread_id"]
        await frames.until("agent_state", agent="asker", state="waiting", current_thread=thread)
        await shared_play.call("POST", f"/threads/{thread}/kill")
        await frames.until("agent_state", agent="asker", state="idle", current_thread=None)
        seen = await filtered.until("agent_state", agent="asker", current_thread=None, state="idle", queue_depth=0)
        assert thread not in {frame["current_thread"] for frame in seen}
        await shared_play.call("POST", "/agents/asker/pause")
        assert (await frames.until("agent_state", agent="asker", state="paused"))[-1]["paused"] is True
        await shared_play.call("POST", "/agents/asker/resume")


async def test_each_failed_attempt_is_an_error_and_the_last_one_a_dead_letter_too(shared_play: Served) -> None:
    async with shared_play.socket() as socket:
        frames = Frames(socket)
        await frames.until("connected")
        injected = await shared_play.inject("broken", {"text": ""})
        seen = await frames.until("thread_updated", thread_id=injected["thread_id"])
    errors = [frame for frame in seen if frame["event"] == "error"]
    for error in errors:
        assert (error["thread_id"], error["agent"], error["error"]) == (
            injected["thread_id"],
            "broken",
            "ValueError: no",
        )
        assert set(error) >= {"timestamp", "position"}
    assert [(error["attempt"], error["next_at"] is None) for error in errors] == [(1, False), (2, True)]
    dead = next(frame for frame in seen if frame["event"] == "dead_letter")
    letter = dead["dead_letter"]
    assert dead["position"] > errors[-1]["position"]
    assert (dead["agent"], letter["code"], letter["attempts"]) == ("broken", "handler_error", 2)
    assert (seen[-1]["status"], seen[-1]["error"]) == ("error", "ValueError: no")


async def test_an_approval_is_resolved_over_the_socket_and_once(shared_play: Served) -> None:
    async with shared_play.socket() as socket:
        frames = Frames(socket)
        await frames.until("connected")
        thread = (await frames.ask("inject", to="asker", payload={"text": ""}))["thread_id"]
        (open_one,) = (await shared_play.get(f"/approvals?thread_id={thread}"))["approvals"]
        approval = open_one["id"]
        assert (await frames.ask("resolve", approval=approval, decision="maybe"))["code"] == "invalid_field"
        done = await frames.ask("resolve", approval=approval, decision="reject", comment="no")
        assert set(done) == {"event", "id", "position"}
        assert (await frames.ask("resolve", approval=approval, decision="approve"))["code"] == "already_resolved"


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


async def test_a_cut_after_any_frame_loses_nothing_and_the_past_is_pushed_as_it_was_live(shared: Served) -> None:
    async with shared.socket() as socket:
        frames = Frames(socket)
        start = (await frames.next())["position"]
        await shared.inject()
        await shared.inject()
        live = logged(await frames.until("thread_updated") + await frames.until("thread_updated"))
        cuts = [start, *(frame["position"] for frame in live[:-1])]
        from_window = [await past(shared, f"?since={position}") for position in cuts]
    from_log = [await past(shared, f"?since={position}") for position in cuts]
    assert from_window == from_log == [live[at:] for at in range(len(cuts))]


@pytest.mark.parametrize("query", ["?since=999999", "?since=0&log=other", "?log=other"])
async def test_a_position_of_another_log_is_refused(shared: Served, query: str) -> None:
    async with shared.socket(query) as socket:
        frames = Frames(socket)
        assert (await frames.next())["code"] == "bad_position"
        assert await closed(frames) == 1008


async def test_a_token_may_come_as_the_first_message(shared: Served) -> None:
    async with shared.socket(headers={}) as socket:
        await socket.send(orjson.dumps({"cmd": "auth", "token": TOKEN, "id": 7}).decode())
        frames = Frames(socket)
        ok, connected = await frames.next(), await frames.next()
    assert (ok["event"], ok["id"], connected["event"]) == ("ok", 7, "connected")


async def test_a_client_that_sends_no_token_is_refused_after_ten_seconds() -> None:
    assert Timeouts().auth_seconds == 10
    async with served(settings=patience(auth_seconds=0.05)) as server, server.socket(headers={}) as socket:
        frames = Frames(socket)
        assert (await frames.next())["code"] == "missing_authorization"
        assert await closed(frames) == 4401


async def test_injections_are_answered_with_their_ids(shared: Served) -> None:
    async with shared.socket() as socket:
        frames = Frames(socket)
        sent = await frames.ask("inject", to="greeter", payload={"name": "Dan"}, idempotency_key="of-a-socket")
        again = await frames.ask("inject", to="greeter", payload={"name": "Dan"}, idempotency_key="of-a-socket")
        other = await frames.ask("inject", to="greeter", payload={"name": "Eve"}, idempotency_key="of-a-socket")
    assert (sent["event"], set(sent)) == ("injected", {"event", "id", "thread_id", "message_id", "position"})
    assert {**again, "id": 0} == {**sent, "id": 0}
    assert other["code"] == "idempotency_key_reused"


async def test_a_token_is_no_idempotency_key(shared: Served) -> None:
    async with shared.socket() as socket:
        refused = await Frames(socket).ask("inject", to="greeter", payload={"name": "Dan"}, idempotency_key=TOKEN)
    assert (refused["code"], refused["param"]) == ("invalid_field", "/idempotency_key")


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


async def test_a_filter_holds_from_its_answer_on_and_replaces_the_whole_one_before_it(shared: Served) -> None:
    async with shared.socket("?agents=nobody&events=error") as socket:
        frames = Frames(socket)
        assert set(await frames.next()) >= {"organism", "agents", "threads"}
        answer = await frames.ask("subscribe", events=["thread_updated"])
        assert (answer["filter"], answer["position"]) == ({"events": ["thread_updated"]}, shared.log.head)
        await shared.inject()
        assert (await frames.next())["event"] == "thread_updated"
        ahead = await frames.ask("subscribe", events=["error"], since=shared.log.head + 1)
        other = await frames.ask("subscribe", events=["error"], since=0, log="another")
        assert (ahead["code"], other["code"]) == ("bad_position", "bad_position")
        head = shared.log.head
        await shared.inject()
        assert (await frames.next())["event"] == "thread_updated", "a refused filter changes nothing"
        back = await frames.ask("subscribe", agents=["shouter"], events=["message"], since=head)
        assert back["position"] == head
        seen = logged(await frames.until("caught_up"))
        assert (await frames.ask("subscribe"))["filter"] == {}
        assert (await frames.ask("subscribe", events=[]))["filter"] == {"events": []}
    assert [(frame["message"]["from"], frame["message"]["to"]) for frame in seen] == HOPS[1:3]


async def test_a_stop_tells_every_viewer_and_closes_its_socket() -> None:
    async with served() as server, server.socket() as socket:
        frames = Frames(socket)
        await frames.until("connected")
        server.serving.stop()
        await frames.until("organism_state", status="stopping")
        assert await closed(frames) in {1001, 1012}


async def test_an_address_may_hold_the_filter_from_the_first_frame_on(shared: Served) -> None:
    mine = (await shared.inject())["thread_id"]
    await shared.inject()
    of = f"?since=0&threads={mine}&events=thread_created,message,thread_updated"
    named = await past(shared, f"{of}&agents=shouter,nobody")
    assert {frame.get("thread_id") or frame["message"]["thread_id"] for frame in named} == {mine}
    assert [frame["event"] for frame in named] == ["message", "message", "thread_updated"]
    assert await past(shared, f"{of}&agents=summarizer") == []
    assert [frame["event"] for frame in await past(shared, f"{of}&agents=console")] == [
        "thread_created", "message", "message", "thread_updated",
    ]  # fmt: skip


async def test_with_batch_the_events_of_a_commit_come_as_an_array_until_a_subscription_without_it(
    shared: Served,
) -> None:
    async with shared.socket("?events=message&batch=true") as socket:
        frames = Frames(socket)
        await socket.recv()
        for batch in (True, False, True):
            answer = await frames.ask("subscribe", events=["message"], batch=batch)
            assert set(answer) == {"event", "id", "filter", "position"}
            await shared.inject()
            came = [orjson.loads(await socket.recv()) for _ in range(4)]
            events = [frame["event"] for each in came for frame in (each if batch else [each])]
            assert events == ["message"] * 4


async def test_a_connection_knows_a_token_from_what_is_none(shared: Served) -> None:
    async with shared.socket() as socket:
        frames = Frames(socket)
        assert (await frames.ask("auth", token=TOKEN))["event"] == "ok"
        assert (await frames.ask("auth", token="wrong"))["code"] == "invalid_authorization"
        assert (await frames.ask("ping"))["event"] == "ok"


async def test_commands_of_every_kind_echo_any_id(shared: Served) -> None:
    async with shared.socket() as socket:
        frames = Frames(socket)
        await frames.until("connected")
        ids: list[Any] = [0, False, "", [], {"a": 1}]
        for given in ids:
            await socket.send(orjson.dumps({"cmd": "ping", "id": given}).decode())
            assert (await frames.until("ok"))[-1]["id"] == given
        await socket.send('{"cmd":"ping"}')
        assert set((await frames.until("ok"))[-1]) == {"event", "position"}


async def test_a_log_that_closes_ends_the_connection_so_that_its_client_comes_back(hello: Served) -> None:
    async with hello.socket() as socket:
        await Frames(socket).until("connected")
        await hello.log.close()
        with suppress(ConnectionClosed):
            async for _ in socket:  # a client that reads no more does not see the end
                pass
    assert socket.close_code == 1012


async def test_a_message_in_parts_is_measured_whole(shared: Served) -> None:
    async with shared.socket() as socket:
        frames = Frames(socket)
        await frames.until("connected")
        await socket.send(['{"cmd":"ping",', '"id":', "7}"])
        assert (await frames.until("ok"))[-1]["id"] == 7
        await socket.send([" " * (MAX_FRAME_BYTES // 2 + 1)] * 2)
        await socket.wait_closed()
    assert socket.close_code == 1009


async def test_a_client_that_offers_compression_gets_none(shared: Served) -> None:
    url = shared.url.replace("http", "ws", 1) + "/ws"
    async with connect(url, additional_headers=shared.bearer, compression="deflate", proxy=None) as socket:
        assert socket.response is not None
        assert "Sec-WebSocket-Extensions" not in socket.response.headers
