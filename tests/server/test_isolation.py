"""Foreign and missing look the same: whatever a tenant asks by another's id is answered as if there were none (S4).

The pairs are made of the route table and the table of commands: each operation that takes an id, with each kind of id
that the other tenant has; what it is answered is held against the answer for an id of the same form that nobody has.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx2
import orjson
import pytest
import pytest_asyncio

from organism.server.app import ROUTES
from organism.server.http.call import USER, Route
from tests.flows.world import World
from tests.server.served import Frames, Served, served
from tests.server.tenanted import Wanted, bearer, write_tokens

pytestmark = pytest.mark.asyncio(loop_scope="module")

OWNER, STRANGER = ({**bearer(tenant, "boss"), USER: "ann"} for tenant in ("acme", "globex"))
WANTED: Wanted = {"acme": {"boss": ["admin"]}, "globex": {"boss": ["admin"]}}
SECRET = "what-acme-alone-knows"
SOURCE = """
async def teller(payload: Ask, metadata):
    return HandlerResponse(Told(payload.text), to="console")

async def asker(payload: Ask, metadata):
    await metadata.approve({"sum": 3})

async def breaker(payload: Ask, metadata):
    raise ValueError(payload.text)

async def payer(payload: Ask, metadata):
    async def pay(key: str):
        await asyncio.Event().wait()
    await metadata.effect("pay", pay, kind="unsafe")
"""
LISTENERS: dict[str, dict[str, Any]] = {
    "teller": {"peers": ["console"]},
    "asker": {},
    "breaker": {},
    "payer": {"timeout_s": 0.2},
}


@dataclass(frozen=True)
class Estate:
    """A server with two tenants; ``foreign`` is what ``acme`` has, by kind; ``own`` is a thread of ``globex``."""

    server: Served
    foreign: dict[str, str]
    own: str


async def injected(server: Served, who: dict[str, str], to: str, text: str = SECRET) -> dict[str, Any]:
    body = {"to": to, "payload": {"text": text}, "wait": 10 if to in {"teller", "breaker"} else 0.01}
    key = {"Idempotency-Key": f"acme-{to}"} if who is OWNER else {}
    answer = await server.call("POST", "/inject", json=body, headers={**who, **key})
    assert answer.status_code in {200, 202}, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def first(server: Served, path: str) -> str:
    """The id of the first row of a list of the owner's."""
    rows: list[dict[str, str]] = (await server.get(f"/{path}", headers=OWNER))[path.replace("-", "_")]
    return rows[0]["id"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def estate(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Estate]:
    folder = tmp_path_factory.mktemp("estate")
    made = World(folder, SOURCE, LISTENERS, retry={"attempts": 1})
    write_tokens(folder, WANTED)
    async with served(made.config) as server:
        own = (await injected(server, STRANGER, "teller", "hello"))["thread_id"]
        async with server.socket("?since=0", headers=OWNER) as socket:
            frames = Frames(socket)
            sent = await injected(server, OWNER, "teller")
            await injected(server, OWNER, "breaker")
            await injected(server, OWNER, "asker")
            await frames.until("approval")
            await injected(server, OWNER, "payer")
            await frames.until("indeterminate")
        await server.call("POST", "/agents/teller/pause", headers=OWNER)
        foreign = {
            "thread": sent["thread_id"],
            "message": sent["message_id"],
            "dead_letter": await first(server, "dead-letters"),
            "approval": await first(server, "approvals"),
            "indeterminate": await first(server, "indeterminate"),
            "cursor": (await server.get("/messages?limit=1", headers=OWNER))["next"],
            "timeline": server.organism.tenants["acme"].log.timeline,
            "key": "acme-teller",
            "text": SECRET,
        }
        assert set(foreign) == set(MISSING)
        yield Estate(server, foreign, own)


MISSING = {
    "thread": "thr-" + secrets.token_hex(16),
    "message": "msg-" + secrets.token_hex(16),
    "dead_letter": "msg-" + secrets.token_hex(16),
    "approval": "apr-" + secrets.token_hex(16),
    "indeterminate": "msg-" + secrets.token_hex(16) + ":1",
    "cursor": secrets.token_urlsafe(18),
    "timeline": secrets.token_hex(16),
    "key": "none-teller",
    "text": "what-noone-ever-knows",
}
BODIES: dict[str, Any] = {
    "/approvals/{id}/resolve": {"decision": "approve"},
    "/indeterminate/{id}/resolve": {"outcome": "redo"},
    "/a1/agents/{name}/chat": {"message": "hello"},
    "/a1/agents/{name}/sessions/{sid}/messages": {"message": "hello"},
}
FILTERS: dict[str, tuple[str, ...]] = {
    "/threads": ("agent", "cursor", "status", "since", "q"),
    "/messages": ("agent", "cursor", "status", "q"),
    "/threads/OWN/messages": ("agent", "cursor", "status", "q"),
    "/agents": ("agent", "cursor", "status", "since"),
    "/dead-letters": ("thread_id", "agent", "cursor", "q"),
    "/approvals": ("thread_id", "agent", "cursor", "status"),
    "/indeterminate": ("thread_id", "agent", "cursor"),
    "/log": ("thread", "type"),
    "/events": ("log", "since"),
}
COMMANDS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("kill", "thread_id", {}),
    ("pause", "thread_id", {}),
    ("resume", "thread_id", {}),
    ("pause", "agent", {}),
    ("resume", "agent", {}),
    ("resolve", "approval", {"decision": "approve"}),
    ("inject", "thread_id", {"to": "asker", "payload": {"text": ""}}),
    ("inject", "to", {"payload": {"text": ""}}),
    ("subscribe", "log", {"since": 0}),
)
KINDS = tuple(MISSING)
BY_PATH = [(route, kind) for route in ROUTES if "{" in route.path for kind in KINDS]
BY_QUERY = [(path, name, kind) for path, names in FILTERS.items() for name in names for kind in KINDS]
BY_BODY = [(field, kind) for field in ("thread_id", "to") for kind in KINDS]
BY_COMMAND = [(*command, kind) for command in COMMANDS for kind in KINDS]

Face = tuple[int, str, tuple[str, ...]]


def face(answer: httpx2.Response, said: str) -> Face:
    """What can be seen of an answer but the request's id: the id that was asked for is the same for both."""
    text = masked(re.sub(r'"request_id":"[^"]*"', "", answer.text), said)
    return answer.status_code, text, tuple(sorted(answer.headers))


def masked(text: str, said: str) -> str:
    """The text without what was said, of which a refusal may show no more than 40 characters."""
    return text.replace(said, "ID").replace(said[:40], "ID")


async def both(estate: Estate, kind: str, method: str, path: str, **more: Any) -> tuple[Face, Face]:
    """How the stranger's request looks with the owner's id in the place of ``ID``, and with one that nobody has."""
    faces = []
    for entry in (estate.foreign[kind], MISSING[kind]):
        filled = {
            name: orjson.loads(orjson.dumps(value).replace(b"ID", entry.encode())) for name, value in more.items()
        }
        headers = {**STRANGER, **filled.pop("headers", {})}
        answer = await estate.server.call(method, path.replace("ID", entry), headers=headers, **filled)
        faces.append(face(answer, entry))
    return faces[0], faces[1]


async def test_there_are_at_least_two_hundred_pairs() -> None:
    assert len(BY_PATH) + len(BY_QUERY) + len(BY_BODY) + len(BY_COMMAND) >= 200


@pytest.mark.parametrize(("route", "kind"), BY_PATH, ids=lambda each: getattr(each, "path", each))
async def test_a_foreign_id_in_a_path_looks_missing(estate: Estate, route: Route, kind: str) -> None:
    path = "/" + re.sub(r"\{\w+\}", "ID", route.address)
    body = {} if route.method == "GET" else {"json": BODIES.get(route.path, {})}
    foreign, missing = await both(estate, kind, route.method, path, **body)
    assert foreign == missing
    assert foreign[0] in {400, 403, 404}  # 403: what is the operator's alone


@pytest.mark.parametrize(("path", "name", "kind"), BY_QUERY)
async def test_a_foreign_id_in_a_filter_looks_missing(estate: Estate, path: str, name: str, kind: str) -> None:
    extra = "&since=0" if name == "log" else ""
    foreign, missing = await both(estate, kind, "GET", f"{path.replace('OWN', estate.own)}?{name}=ID{extra}")
    assert foreign == missing


@pytest.mark.parametrize(("field", "kind"), BY_BODY)
async def test_a_foreign_id_in_an_injection_looks_missing(estate: Estate, field: str, kind: str) -> None:
    body = {"to": "asker", "payload": {"text": ""}, field: "ID"}
    foreign, missing = await both(estate, kind, "POST", "/inject", json=body)
    assert foreign == missing
    assert foreign[0] == 404
    query = "&".join(f"{name}={value}" for name, value in body.items() if name != "payload")
    xml = {"content-type": "application/xml"}
    foreign, missing = await both(estate, kind, "POST", f"/inject?{query}", headers=xml)
    assert foreign == missing


@pytest.mark.parametrize(("name", "field", "fields", "kind"), BY_COMMAND)
async def test_a_foreign_id_in_a_command_looks_missing(
    estate: Estate, name: str, field: str, fields: dict[str, Any], kind: str
) -> None:
    async with estate.server.socket(headers=STRANGER) as socket:
        frames = Frames(socket)
        answers = []
        for entry in (estate.foreign[kind], MISSING[kind]):
            answer = await frames.ask(name, **{**fields, field: entry})
            assert (answer["event"], answer["code"] != "forbidden") == ("error", True)
            shown = {key: value for key, value in answer.items() if key not in {"id", "request_id"}}
            answers.append(masked(repr(shown), entry))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_filter_of_a_socket_tells_nothing_of_foreign_ids(estate: Estate, kind: str) -> None:
    async with estate.server.socket("?since=0", headers=STRANGER) as socket:
        frames = Frames(socket)
        seen = []
        for entry in (estate.foreign[kind], MISSING[kind]):
            for field in ("threads", "agents"):
                await frames.ask("subscribe", **{field: [entry]}, since=0)
                passed = [
                    frame["event"] for frame in await frames.until("caught_up") if frame["event"] != "agent_state"
                ]
                seen.append((field, passed))
    assert seen[:2] == seen[2:]


@pytest.mark.parametrize("path", ["/agents/asker/resume", "/agents/asker/pause", "/organism/pause", "/organism/resume"])
async def test_a_foreign_idempotency_key_is_a_new_one(estate: Estate, path: str) -> None:
    for who in (OWNER, STRANGER):
        answer = await estate.server.call("POST", path, headers={**who, "Idempotency-Key": "of-acme"})
        assert answer.status_code == 200
        again = await estate.server.call("POST", path, headers={**who, "Idempotency-Key": "of-acme"})
        assert again.content == answer.content


async def test_an_injection_under_a_foreign_idempotency_key_is_a_new_one(estate: Estate) -> None:
    body = {"to": "breaker", "payload": {"text": "another"}, "wait": 10}
    headers = {**STRANGER, "Idempotency-Key": "acme-breaker"}
    mine = await estate.server.call("POST", "/inject", json=body, headers=headers)
    theirs = await estate.server.call("POST", "/inject", json=body, headers={**headers, **OWNER})
    assert (mine.status_code, theirs.status_code) == (200, 422)


async def test_an_agent_that_another_tenant_paused_works(estate: Estate) -> None:
    owner = await estate.server.get("/agents/teller", headers=OWNER)
    stranger = await estate.server.get("/agents/teller", headers=STRANGER)
    assert (owner["paused"], stranger["paused"]) == (True, False)


async def test_counts_and_lists_are_of_ones_own_tenant(estate: Estate) -> None:
    lists = ("/threads", "/messages", "/log", "/agents", "/dead-letters", "/approvals", "/indeterminate")
    for path in ("/organism", *lists):
        text = (await estate.server.call("GET", path, headers=STRANGER)).text
        for kind in ("thread", "message", "approval", "text", "timeline"):
            assert estate.foreign[kind] not in text, (path, kind)
    assert (await estate.server.get("/approvals", headers=STRANGER))["total"] == 0


async def test_the_owner_finds_what_the_stranger_does_not(estate: Estate) -> None:
    for path in (f"/threads/{estate.foreign['thread']}", f"/messages/{estate.foreign['message']}"):
        assert (await estate.server.call("GET", path, headers=OWNER)).status_code == 200
    cursor = await estate.server.call("GET", f"/messages?cursor={estate.foreign['cursor']}", headers=OWNER)
    assert cursor.status_code == 200
    for kind, path in (("dead_letter", "dead-letters"), ("approval", "approvals"), ("indeterminate", "indeterminate")):
        assert await first(estate.server, path) == estate.foreign[kind]
