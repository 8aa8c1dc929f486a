"""What was decided, by whom; and what a decision would be bound to, before it is made."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from organism.model.ids import DEFAULT_TENANT
from tests.flows.world import MakeWorld, World
from tests.server.acting import asker
from tests.server.served import Frames, Served, served
from tests.server.tenanted import bearer, write_tokens

ASKING = """
async def shown(payload: Ask, metadata: HandlerMetadata):
    import json
    await metadata.approve(json.loads(payload.text))
    return HandlerResponse.respond(Told("done"))

async def careful(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told("done"))
"""
LISTENERS: dict[str, Any] = {"shown": {}, "careful": {"approval": True}}


async def pending(server: Served, to: str, text: str) -> Any:
    """The approval for which a new thread waits."""
    async with server.socket() as socket:
        frames = Frames(socket)
        await server.inject(to, {"text": text}, wait=None)
        asked = (await frames.until("approval"))[-1]["approval"]
    (row,) = [each for each in await approvals(server) if each["id"] == asked["id"]]
    return row


async def approvals(server: Served, query: str = "") -> list[Any]:
    found: list[Any] = (await server.get(f"/approvals?limit=500{query}"))["approvals"]
    return found


async def resolve(server: Served, approval: str, headers: dict[str, str] | None = None, **body: Any) -> tuple[int, Any]:
    path = f"/approvals/{approval}/resolve"
    answer = await server.call("POST", path, json={"decision": "approve", **body}, headers=headers or {})
    return answer.status_code, answer.json()


@pytest.fixture
def made(world: MakeWorld) -> World:
    return world(ASKING, dict(LISTENERS))


async def test_a_check_says_to_what_a_decision_would_be_bound_and_decides_nothing(made: World) -> None:
    async with served(made.config) as server:
        approval = await pending(server, "careful", "pay 3")
        head = server.log.head
        as_asked = await resolve(server, approval["id"], check=True)
        assert as_asked == (200, {"digest": approval["digest"], "details": []})
        edited = await resolve(server, approval["id"], check=True, edits={"text": "pay 2"})
        status, unfit = await resolve(server, approval["id"], check=True, edits={"text": 2, "sum": 3})
        assert (status, unfit["digest"]) == (200, None)
        assert {each["param"] for each in unfit["details"]} == {"/edits/text", "/edits/sum"}
        assert (server.log.head, await approvals(server)) == (head, [approval])
        assert (await resolve(server, approval["id"], check="yes"))[1]["error"]["param"] == "/check"
        stale = await resolve(server, approval["id"], {"If-Match": '"1"'}, check=True)
        assert (stale[0], stale[1]["error"]["code"]) == (409, "stale_position")
        _, row = await resolve(server, approval["id"], edits={"text": "pay 2"}, comment="less")
        assert edited == (200, {"digest": row["digest"], "details": []})
        assert row["resolved"]["digest"] == row["digest"]
        again = await resolve(server, approval["id"], check=True)
        assert (again[0], again[1]["error"]["code"]) == (409, "already_resolved")
        assert (await resolve(server, "apr-none", check=True))[0] == 404


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


async def test_the_digest_of_a_check_is_the_one_that_the_decision_binds(made: World) -> None:
    cases: list[tuple[Any, Any]] = []

    @settings(max_examples=25, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(JSON_VALUES, JSON_VALUES)
    def draw(preview: Any, edits: Any) -> None:
        cases.append((preview, edits))

    draw()
    async with served(made.config) as server:
        for preview, edits in cases:
            approval = await pending(server, "shown", orjson.dumps(preview).decode())
            body = {} if edits is None else {"edits": edits}
            checked = await resolve(server, approval["id"], check=True, **body)
            status, row = await resolve(server, approval["id"], **body)
            assert (checked, status) == ((200, {"digest": row["digest"], "details": []}), 200)
            assert row["resolved"]["digest"] == row["digest"]
            if edits is None:
                assert row["digest"] == approval["digest"]


async def test_the_form_of_what_is_no_payload_is_made_of_its_values_while_it_is_pending(made: World) -> None:
    async with served(made.config) as server:
        value = {
            "sum": 3,
            "to": "Dan",
            "rate": 1.5,
            "is_new": True,
            "why": None,
            "items": [{"n": 1}, {"n": 2}],
            "mixed": [1, "a"],
        }
        approval = await pending(server, "shown", orjson.dumps(value).decode())
        assert approval["form_schema"] == {
            "type": "object",
            "properties": {
                "sum": {"type": "integer"},
                "to": {"type": "string"},
                "rate": {"type": "number"},
                "is_new": {"type": "boolean"},
                "why": {},
                "items": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
                "mixed": {"type": "array", "items": {}},
            },
        }
        assert (await server.get("/organism/snapshot"))["approvals"] == [approval]
        assert "form_schema" not in (await resolve(server, approval["id"]))[1]


async def test_a_closed_approval_says_who_decided_when_what_and_why_in_its_row_and_its_frame(made: World) -> None:
    async with served(made.config, made.data) as server, server.socket() as socket:
        frames = Frames(socket)
        one, two, three = [await pending(server, "shown", '{"sum": 3}') for _ in range(3)]
        assert [each["resolved"] for each in (one, two, three)] == [None] * 3
        before = server.log.head
        user = {"SPASS-User-Id": "dan"}
        await resolve(server, one["id"], user, comment="fine")
        await resolve(server, two["id"], decision="reject", edits={"sum": 2})
        await server.call("POST", f"/threads/{three['thread_id']}/kill")
        rows = await approvals(server)
        said = [
            (each["resolved"]["decision"], each["resolved"]["comment"], each["resolved"]["digest"]) for each in rows
        ]
        edited = hashlib.sha256(b'{"sum":2}').hexdigest()
        assert said == [("approve", "fine", one["digest"]), ("reject", "", edited), ("cancelled", "", None)]
        assert [each["resolved"]["by"]["principal"] for each in rows] == ["operator"] * 3
        closings: list[Any] = []
        while len(closings) < 3:
            frame = await frames.next()
            if frame["event"] == "approval" and frame["approval"].get("status") != "pending":
                closings.append(frame)
        assert [each["approval"]["resolved"] for each in closings] == [each["resolved"] for each in rows]
        assert [each["resolved"]["at"] for each in rows] == [each["timestamp"] for each in closings]
        assert [each["resolved"] for each in await approvals(server, f"&at={before}")] == [None] * 3


async def test_who_comes_second_is_told_who_was_first(world: MakeWorld) -> None:
    made = asker(world)
    write_tokens(made.folder, {DEFAULT_TENANT: {"ann": ["admin"]}})
    ann = bearer(DEFAULT_TENANT, "ann")
    async with served(made.config) as server, server.socket() as socket:
        frames = Frames(socket)
        (letter, other) = [(await server.inject("asker", {"text": "bad"}))["message_id"] for _ in range(2)]
        await server.inject("asker", {"text": "pay"}, wait=None)
        effect = (await frames.until("indeterminate"))[-1]["indeterminate"]["id"]
        await server.inject("asker", {"text": "ask"}, wait=None)
        approval = (await frames.until("approval"))[-1]["approval"]["id"]
        acts = [
            ("POST", f"/approvals/{approval}/resolve", {"decision": "reject"}, "reject"),
            ("POST", f"/indeterminate/{effect}/resolve", {"outcome": "done", "result": 1}, "done"),
            ("POST", f"/dead-letters/{letter}/replay", {}, "replayed"),
            ("DELETE", f"/dead-letters/{other}", {}, "discarded"),
        ]
        for method, path, body, decision in acts:
            assert (await server.call(method, path, json=body, headers=ann)).status_code in {200, 202}
            error = (await server.call(method, path, json=body)).json()["error"]
            assert (error["code"], error["resolved"]["decision"]) == ("already_resolved", decision), path
            assert error["resolved"]["by"] == {"principal": "ann", "user": None, "reason": None}
        refused = await frames.ask("resolve", approval=approval, decision="approve")
        assert refused["resolved"]["decision"] == "reject"
        several = await server.call("POST", "/dead-letters/discard", json={"ids": [other]})
        assert several.json()["results"][0]["error"]["resolved"]["decision"] == "discarded"


async def test_an_effect_in_doubt_says_when_it_began(world: MakeWorld, tmp_path: Path) -> None:
    async with served(asker(world).config) as server, server.socket("?events=indeterminate,step") as socket:
        frames = Frames(socket)
        await server.inject("asker", {"text": "pay"}, wait=None)
        began = (await frames.until("step", kind="effect"))[-1]["timestamp"]
        found = (await frames.until("indeterminate"))[-1]["timestamp"]
        (row,) = (await server.get("/indeterminate"))["indeterminate"]
        assert (row["started_at"], row["since"]) == (began, found)
        assert began < found
