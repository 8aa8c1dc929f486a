"""Acts on several: each is the single act, said for each, done once under one key; and groups of alike failures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from organism.model.ids import DEFAULT_TENANT
from tests.flows.test_failures import ASKERS, CHAIN
from tests.flows.world import MakeWorld, World
from tests.server.acting import asker
from tests.server.served import Served, served
from tests.server.tenanted import bearer, write_tokens

KEY = {"Idempotency-Key": "key-1"}
SEVERAL = ("/threads/kill", "/threads/pause", "/threads/resume", "/dead-letters/replay", "/dead-letters/discard")
OF_LETTERS = SEVERAL[3:]


@pytest.fixture
def made(world: MakeWorld) -> World:
    return asker(world)


async def act(server: Served, path: str, body: Any, headers: dict[str, str] | None = None) -> Any:
    """The answer to an act that must be carried out."""
    answer = await server.call("POST", path, json=body, headers=headers or {})
    assert answer.status_code == 200, answer.text
    return answer.json()


def said(answer: Any) -> dict[str, tuple[int, str]]:
    """Of each its status, and the code if it was refused."""
    return {each["id"]: (each["status"], each.get("error", {}).get("code", "")) for each in answer["results"]}


async def asking(server: Served) -> str:
    """A thread that waits for a person."""
    found: str = (await server.inject("asker", {"text": "ask"}, wait=None))["thread_id"]
    return found


async def fail(server: Served, times: int) -> list[str]:
    """The ids of so many failures that are alike, the oldest first."""
    return [(await server.inject("asker", {"text": "bad"}))["message_id"] for _ in range(times)]


async def events(server: Served, kind: str) -> list[Any]:
    found: list[Any] = (await server.get(f"/log?type={kind}&limit=500"))["events"]
    return found


async def test_several_threads_are_paused_resumed_and_killed_and_each_says_what_became_of_it(made: World) -> None:
    async with served(made.config) as server:
        one, two = await asking(server), await asking(server)
        ids = [one, "thr-none", two, one]
        for verb, status in (("pause", "active"), ("resume", "active"), ("kill", "killed")):
            answer = await act(server, f"/threads/{verb}", {"ids": ids})
            assert [each["id"] for each in answer["results"]] == [one, "thr-none", two]
            assert said(answer) == {one: (200, ""), "thr-none": (404, "not_found"), two: (200, "")}
            assert answer["left"] == 0
            shown = await server.get(f"/threads/{one}")
            assert (shown["status"], shown["paused"]) == (status, verb == "pause")
        assert len(await events(server, "thread_paused")) == 2, "one that is named twice is paused once"
        again = await act(server, "/threads/pause", {"ids": [one, two]})
        assert said(again) == dict.fromkeys((one, two), (409, "thread_killed"))


async def test_failures_are_sent_again_and_discarded_and_each_says_what_became_of_it(made: World) -> None:
    async with served(made.config) as server:
        one, two, three = await fail(server, 3)
        assert said(await act(server, "/dead-letters/replay", {"ids": [one, "msg-none"]})) == {
            one: (202, ""),
            "msg-none": (404, "not_found"),
        }
        discarded = await act(server, "/dead-letters/discard", {"ids": [two, one, three, two]})
        assert said(discarded) == {two: (200, ""), one: (409, "already_resolved"), three: (200, "")}


@pytest.mark.parametrize("path", SEVERAL)
async def test_what_is_no_list_of_ids_is_refused(hello: Served, path: str) -> None:
    too_many = [f"x-{number}" for number in range(501)]
    for body, code in (
        ({}, "missing_field"),
        ({"ids": []}, "invalid_field"),
        ({"ids": too_many}, "invalid_field"),
        ({"ids": [""]}, "invalid_field"),
        ({"ids": "x"}, "invalid_field"),
        ({"ids": ["x"], "left": 1}, "unknown_field"),
        ({"ids": ["x"], "group": "grp-1", "until": 3}, "unknown_field"),
    ):
        answer = await hello.call("POST", path, json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, code), body
    assert (await hello.call("POST", f"{path}?ids=x", json={"ids": ["x"]})).json()["error"]["code"] == "unknown_field"
    guarded = await hello.call("POST", path, json={"ids": ["x"]}, headers={"If-Match": '"3"'})
    assert guarded.json()["error"]["param"] == "headers.if-match"
    at_most = await hello.call("POST", path, json={"ids": too_many[:500]})
    assert {each["status"] for each in at_most.json()["results"]} == {404}


@pytest.mark.parametrize("path", OF_LETTERS)
async def test_a_group_is_named_with_the_position_up_to_which_it_is_meant(hello: Served, path: str) -> None:
    for body, code in (
        ({"group": "grp-1"}, "missing_field"),
        ({"group": "grp-1", "until": -1}, "invalid_field"),
        ({"group": "", "until": 1}, "invalid_field"),
    ):
        assert (await hello.call("POST", path, json=body)).json()["error"]["code"] == code, body
    assert await act(hello, path, {"group": "grp-none", "until": 1}) == {"results": [], "left": 0}


async def test_a_token_for_one_acts_on_that_one_alone_and_on_no_group(made: World) -> None:
    async with served(made.config, made.data) as server:
        one, two = await asking(server), await asking(server)
        dead, other = await fail(server, 2)
    grants = {
        "one": [f"control:thread:{one}", f"inject:dead_letter:{dead}", f"control:dead_letter:{other}"],
        "reader": ["read"],
    }
    write_tokens(made.folder, {DEFAULT_TENANT: grants})
    narrow, reader = bearer(DEFAULT_TENANT, "one"), bearer(DEFAULT_TENANT, "reader")
    async with served(made.config, made.data) as server:
        (group,) = (await server.get("/dead-letters?group=true"))["groups"]
        whole = {"group": group["group"], "until": server.log.head}
        for path in OF_LETTERS:
            refused = await server.call("POST", path, json=whole, headers=narrow)
            assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
        for path in SEVERAL:
            assert (await server.call("POST", path, json={"ids": [one]}, headers=reader)).status_code == 403
        forbidden, both = (403, "forbidden"), {"ids": [dead, other]}
        killed = await act(server, "/threads/kill", {"ids": [one, two]}, narrow)
        replayed = await act(server, "/dead-letters/replay", both, narrow)
        discarded = await act(server, "/dead-letters/discard", both, narrow)
    assert said(killed) == {one: (200, ""), two: forbidden}
    assert said(replayed) == {dead: (202, ""), other: forbidden}
    assert said(discarded) == {dead: forbidden, other: (200, "")}


async def test_the_same_request_again_is_answered_as_before_and_does_what_was_refused_then(made: World) -> None:
    async with served(made.config, made.data) as server:
        one, two = await asking(server), await asking(server)
        await server.call("POST", f"/threads/{two}/kill")
        wanted = {"ids": [one, two]}
        first = await act(server, "/threads/pause", wanted, KEY)
        assert said(first) == {one: (200, ""), two: (409, "thread_killed")}
        await server.call("POST", f"/threads/{one}/resume")
        assert said(await act(server, "/threads/pause", wanted, KEY)) == said(first)
        assert not (await server.get(f"/threads/{one}"))["paused"]
    async with served(made.config, made.data) as server:
        assert said(await act(server, "/threads/pause", wanted, KEY)) == said(first)
        for other in ({"ids": [one]}, {"ids": [two]}, {"ids": ["thr-none"]}):
            refused = await server.call("POST", "/threads/pause", json=other, headers=KEY)
            assert (refused.status_code, refused.json()["error"]["code"]) == (422, "idempotency_key_reused")
        longer = {"Idempotency-Key": "key-1/x"}
        assert said(await act(server, "/threads/resume", {"ids": [one]}, longer)) == {one: (200, "")}
        shorter = {"Idempotency-Key": "key-1"}
        assert said(await act(server, "/threads/resume", {"ids": ["thr-none", one]}, shorter))[one] == (200, "")


async def test_a_group_is_replayed_in_pieces_up_to_the_position_and_no_further(made: World) -> None:
    async with served(made.config, made.data) as server:
        old = await fail(server, 3)
        (group,) = (await server.get("/dead-letters?group=true"))["groups"]
        assert (group["count"], group["newest"]["id"], group["oldest"]["id"]) == (3, old[2], old[0])
        (new,) = await fail(server, 1)
        await server.call("POST", f"/threads/{await asking(server)}/kill")
        body = {"group": group["group"], "until": group["newest"]["position"]}
        first = await act(server, "/dead-letters/discard", body, KEY)
        assert (set(said(first)), first["left"]) == (set(old), 0)
        assert await act(server, "/dead-letters/discard", body, KEY) == first
        (left,) = (await server.get("/dead-letters"))["dead_letters"]
        assert left["id"] == new, "what came after the position stays"


SPREADING = """
async def spreader(payload: Ask, metadata: HandlerMetadata):
    return [HandlerResponse(payload, to="nobody")] * 24
"""


async def test_five_hundred_of_a_group_are_acted_on_at_once_and_the_rest_is_counted(world: MakeWorld) -> None:
    async with served(world(SPREADING, {"spreader": {}}).config) as server:
        for _ in range(21):
            await server.inject("spreader", {"text": ""})
        (group,) = (await server.get("/dead-letters?group=true"))["groups"]
        body = {"group": group["group"], "until": server.log.head}
        pieces = [await act(server, "/dead-letters/discard", body, {"Idempotency-Key": str(n)}) for n in range(2)]
        assert [(len(each["results"]), each["left"]) for each in pieces] == [(500, 4), (4, 0)]


async def test_alike_failures_are_one_group_and_what_failed_with_one_is_not_counted(tmp_path: Path) -> None:
    async with served(World(tmp_path, CHAIN, dict(ASKERS)).config) as server:
        for name in ("ann", "bob", "ann"):
            await server.inject("outer", {"text": name})
        await server.inject("inner", {"text": "ann"})
        listed = await server.get("/dead-letters?group=true")
        (group,) = listed["groups"]
        assert (listed["count"], listed["total"], listed["next"]) == (1, 1, None)
        of_inner = await server.get(f"/dead-letters?in_group={group['group']}")
        assert (group["count"], of_inner["total"], group["agent"]) == (4, 4, "inner")
        letters = of_inner["dead_letters"]
        assert group["line"] == letters[0]["traceback"][0]
        assert (group["newest"]["id"], group["oldest"]["id"]) == (letters[0]["id"], letters[3]["id"])
        assert (await server.get("/dead-letters"))["total"] == 10
        before = group["oldest"]["position"]
        (then,) = (await server.get(f"/dead-letters?group=true&at={before}"))["groups"]
        assert (then["count"], then["newest"]) == (1, group["oldest"])
        assert (await server.get(f"/dead-letters?group=true&at={before - 2}"))["groups"] == []  # before its unit
        assert (await server.get("/dead-letters?group=true&agent=outer"))["groups"] == []
        for more in ("q=a", "payloads=10"):
            refused = await server.call("GET", f"/dead-letters?group=true&{more}")
            assert refused.json()["error"]["param"] == f"query.{more.partition('=')[0]}"
        refused = await server.call("GET", "/dead-letters?group=yes")
        assert refused.json()["error"]["code"] == "invalid_field"


SEVERAL_FAULTS = """
async def failing(payload: Ask, metadata: HandlerMetadata):
    if payload.text == "a":
        raise ValueError("a")
    if payload.text == "b":
        raise ValueError("b")
    if payload.text == "stray":
        return HandlerResponse(payload, to="nobody")
    raise KeyError(payload.text)
"""


async def test_groups_come_newest_first_and_page_by_page_though_failures_go_on(world: MakeWorld) -> None:
    made = world(SEVERAL_FAULTS, {"failing": {}}, retry={"attempts": 1})
    async with served(made.config) as server:
        for text in ("a", "b", "stray", "c"):
            await server.inject("failing", {"text": text})
        whole = (await server.get("/dead-letters?group=true"))["groups"]
        assert [each["code"] for each in whole] == ["handler_error", "routing", "handler_error", "handler_error"]
        assert len({each["group"] for each in whole}) == 4
        assert [each["line"] is None for each in whole] == [False, True, False, False]
        seen, path = [], "/dead-letters?group=true&limit=1"
        page = await server.get(path)
        while True:
            seen += page["groups"]
            await server.inject("failing", {"text": "a"})
            if page["next"] is None:
                break
            page = await server.get(f"{path}&cursor={page['next']}")
        assert seen == whole
        assert (await server.get("/dead-letters?group=true&offset=3"))["groups"][0]["group"] == whole[2]["group"]
