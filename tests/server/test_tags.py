"""ETags: a thread's is its position, of all else the head; a repetition under a key carries the first one again."""

from __future__ import annotations

import pytest

from tests.flows.world import MakeWorld
from tests.server.served import Frames, Served, served

READS = ["/organism", "/organism/graph", "/agents", "/agents/greeter", "/threads", "/messages", "/dead-letters"]
READS += ["/approvals", "/indeterminate", "/usage", "/log", "/log?type=message_sent&limit=2"]
NEEDY = """
async def worker(payload: Ask, metadata: HandlerMetadata):
    if payload.text == "bad":
        raise ValueError("bad")
    async def pay(key: str):
        await asyncio.sleep(60)
    await metadata.effect("pay", pay, kind="unsafe")
"""
KEY = {"Idempotency-Key": "key-1"}


@pytest.mark.parametrize("path", READS)
async def test_a_read_is_tagged_by_the_head_and_not_sent_again(hello: Served, path: str) -> None:
    await hello.inject()
    tag = (await hello.call("GET", path)).headers["etag"]
    assert tag == f'"{hello.log.head}"'
    known = await hello.call("GET", path, headers={"If-None-Match": tag})
    assert (known.status_code, known.content) == (304, b"")
    await hello.inject()
    assert (await hello.call("GET", path, headers={"If-None-Match": tag})).status_code == 200


@pytest.mark.parametrize("act", ["pause", "resume", "kill"])
async def test_an_act_on_a_thread_is_tagged_by_its_position_and_so_is_its_repetition(hello: Served, act: str) -> None:
    await hello.call("POST", "/organism/pause")
    thread = (await hello.inject(wait=None))["thread_id"]
    if act == "resume":
        await hello.call("POST", f"/threads/{thread}/pause")
    done = await hello.call("POST", f"/threads/{thread}/{act}", headers=KEY)
    assert done.headers["etag"] == f'"{done.json()["position"]}"'
    again = await hello.call("POST", f"/threads/{thread}/{act}", headers=KEY)
    assert (again.headers["etag"], again.content) == (done.headers["etag"], done.content)


async def test_what_settles_a_dead_letter_or_an_effect_is_tagged_by_its_thread(world: MakeWorld) -> None:
    made = world(NEEDY, {"worker": {"timeout_s": 0.2}}, retry={"attempts": 1})
    async with served(made.config) as server, server.socket("?since=0") as socket:
        frames = Frames(socket)
        await server.inject("worker", {"text": "bad"}, wait=None)
        (*_, dead) = await frames.until("dead_letter")
        discarded = await server.call("DELETE", f"/dead-letters/{dead['dead_letter']['id']}")
        await server.inject("worker", {"text": "pay"}, wait=None)
        (*_, effect) = await frames.until("indeterminate")
        path = f"/indeterminate/{effect['indeterminate']['id']}/resolve"
        resolved = await server.call("POST", path, json={"outcome": "done"})
    for done in (discarded, resolved):
        assert (done.status_code, done.headers["etag"]) == (200, f'"{done.json()["position"]}"')


@pytest.mark.parametrize("path", ["/inject", "/organism/reload", "/organism/stop", "/agents/greeter/pause"])
async def test_a_thread_s_tag_is_refused_where_no_thread_is_acted_on(hello: Served, path: str) -> None:
    body = {"to": "greeter", "payload": {"name": "Dan"}} if path == "/inject" else {}
    answer = await hello.call("POST", path, json=body, headers={"If-Match": '"1"'})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "headers.if-match")
    assert hello.organism.status == "running"
