"""``If-Match`` with a thread's position guards every act on the thread against a stale view."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.flows.world import MakeWorld
from tests.server.acting import asker
from tests.server.served import Frames, Served, served

STALE = {"If-Match": '"1"'}


@pytest.fixture
async def acting(world: MakeWorld) -> AsyncIterator[Served]:
    async with served(asker(world).config) as server:
        yield server


async def refused_then_done(server: Served, method: str, path: str, thread: str, **more: Any) -> None:
    """The act is refused for a stale view, and done for the one that the client has just read."""
    stale = await server.call(method, path, headers=STALE, **more)
    assert (path, stale.status_code, stale.json()["error"]["code"]) == (path, 409, "stale_position")
    seen = (await server.call("GET", f"/threads/{thread}")).headers["etag"]
    done = await server.call(method, path, headers={"If-Match": seen}, **more)
    assert (path, done.status_code) in {(path, 200), (path, 202)}
    if done.status_code == 200 and not path.startswith("/approvals"):  # it is answered by the thread
        assert done.headers["etag"] == f'"{done.json()["position"]}"'


@pytest.mark.parametrize("act", ["kill", "pause", "resume"])
async def test_control_of_an_ended_thread(acting: Served, act: str) -> None:
    thread = (await acting.inject("asker", {"text": ""}))["thread_id"]
    await refused_then_done(acting, "POST", f"/threads/{thread}/{act}", thread)


@pytest.mark.parametrize("text", ["", "ask"])
async def test_an_injection_into_a_thread_whether_it_has_ended_or_not(acting: Served, text: str) -> None:
    thread = (await acting.inject("asker", {"text": text}, wait=0.2))["thread_id"]
    body = {"to": "asker", "payload": {"text": ""}, "thread_id": thread}
    await refused_then_done(acting, "POST", "/inject", thread, json=body)


async def test_a_decision_on_an_approval(acting: Served) -> None:
    async with acting.socket("?since=0") as socket:
        thread = (await acting.inject("asker", {"text": "ask"}, wait=None))["thread_id"]
        (*_, frame) = await Frames(socket).until("approval")
    path = f"/approvals/{frame['approval']['id']}/resolve"
    await refused_then_done(acting, "POST", path, thread, json={"decision": "reject"})


async def test_a_word_on_an_indeterminate_effect(acting: Served) -> None:
    async with acting.socket("?since=0") as socket:
        thread = (await acting.inject("asker", {"text": "pay"}, wait=None))["thread_id"]
        (*_, frame) = await Frames(socket).until("indeterminate")
    path = f"/indeterminate/{frame['indeterminate']['id']}/resolve"
    wrong = await acting.call("POST", path, json={"outcome": "fail", "result": 1})
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "/result")
    await refused_then_done(acting, "POST", path, thread, json={"outcome": "fail"})
    again = await acting.call("POST", path, json={"outcome": "fail"})
    assert (again.status_code, again.json()["error"]["code"]) == (409, "already_resolved")


@pytest.mark.parametrize(("method", "act"), [("POST", "/replay"), ("DELETE", "")])
async def test_what_becomes_of_a_dead_letter(acting: Served, method: str, act: str) -> None:
    thread = (await acting.inject("asker", {"text": "bad"}))["thread_id"]
    (letter,) = (await acting.get("/dead-letters"))["dead_letters"]
    await refused_then_done(acting, method, f"/dead-letters/{letter['id']}{act}", thread)


async def test_an_effect_that_never_was_indeterminate_is_not_found(acting: Served) -> None:
    injected = await acting.inject("asker", {"text": ""})
    for number in ("1", "0", "x", "", "9" * 5000, "\u0661"):
        path = f"/indeterminate/{injected['message_id']}:{number}/resolve"
        answer = await acting.call("POST", path, json={"outcome": "redo"})
        assert (number[:9], answer.status_code) == (number[:9], 404)


@pytest.mark.parametrize(("header", "value"), [("Idempotency-Key", ""), ("If-Match", ""), ("If-Match", "new")])
async def test_a_key_or_a_guard_that_is_none_is_refused(hello: Served, header: str, value: str) -> None:
    thread = (await hello.inject())["thread_id"]
    answer = await hello.call("POST", f"/threads/{thread}/pause", headers={header: value})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, f"headers.{header.lower()}")


async def test_an_act_is_never_answered_by_what_the_client_has(hello: Served) -> None:
    thread = (await hello.inject())["thread_id"]
    answer = await hello.call("POST", f"/threads/{thread}/pause", headers={"If-None-Match": "*"})
    assert (answer.status_code, answer.json()["id"]) == (200, thread)


READS = ["/organism", "/organism/graph", "/agents", "/agents/greeter", "/threads", "/messages", "/dead-letters"]
READS += [
    "/organism/config",
    "/agents/greeter/config",
    "/agents/greeter/schema",
    "/approvals",
    "/indeterminate",
    "/log",
    "/log?type=message_sent&limit=2",
]
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


@pytest.mark.parametrize(
    "path", ["/inject", "/organism/pause", "/organism/reload", "/organism/stop", "/agents/greeter/pause"]
)
async def test_a_thread_s_tag_is_refused_where_no_thread_is_acted_on(hello: Served, path: str) -> None:
    body = {"to": "greeter", "payload": {"name": "Dan"}} if path == "/inject" else {}
    answer = await hello.call("POST", path, json=body, headers={"If-Match": '"1"'})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "headers.if-match")
    assert hello.organism.status == "running"
