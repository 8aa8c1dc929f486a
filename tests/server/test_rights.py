"""Every route and command, walked with every scope: nothing is open by oversight, all can be narrowed (S3, S5)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from starlette.responses import Response
from websockets.exceptions import ConnectionClosed

from organism.model.ids import DEFAULT_TENANT, TenantId
from organism.model.principal import KINDS, SCOPES, Principal, is_grant
from organism.model.words import Object
from organism.server.app import ROUTES
from organism.server.http.bodies import NoBody
from organism.server.http.call import Call, Route
from organism.server.http.contract import gives
from organism.server.ws.commands import COMMANDS, CommandKind
from tests.flows.world import World
from tests.server.contract import refusal_of
from tests.server.served import Frames, Served, served
from tests.server.tenanted import Wanted, bearer, hello_with, write_tokens


async def _endpoint(call: Call) -> Response:
    return Response()


def test_a_route_without_a_right_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="'right'"):
        Route("GET /secrets", _endpoint, gives=gives(Object))  # type: ignore[call-arg]  # that is the point


def test_a_command_without_a_right_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="'right'"):
        CommandKind(NoBody)  # type: ignore[call-arg]  # that is the point


def test_what_needs_no_token_is_known_by_name() -> None:
    spec = {"/healthz", "/readyz", "/errors", "/openapi.json", "/asyncapi.json", "/docs"}
    assert {route.path for route in ROUTES if not route.right.needs_token} == spec


@pytest.mark.parametrize("scope", SCOPES)
def test_every_scope_can_be_narrowed(scope: str) -> None:
    for kind in KINDS:
        grant = f"{scope}:{kind}:some-name"
        who = Principal(TenantId("acme"), "x", frozenset({grant}))
        assert is_grant(grant)
        assert who.may(scope, [(kind, "some-name")])
        assert not who.may(scope, [(kind, "other")])
        assert not who.may(scope)
        assert who.may_some(scope)


SOURCE = """
async def left(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told("left"))

async def right(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told("right"))

async def alone(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told("alone"))
"""
GRANTS = {
    "one": ["read", "inject:agent:left", "inject:agent:alone"],
    "both": ["read", "inject:agent:left", "inject:agent:right"],
    "whole": ["read", "inject"],
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_group(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    """Two that share what they get, one that does not, and tokens for one of the two, for both, for all."""
    listeners: dict[str, dict[str, Any]] = {"left": {"broadcast": True}, "right": {"broadcast": True}, "alone": {}}
    made = World(tmp_path_factory.mktemp("group"), SOURCE, listeners)
    write_tokens(made.folder, {DEFAULT_TENANT: GRANTS})
    async with served(made.config) as running:
        yield running


@pytest.mark.parametrize(
    ("name", "to", "status"),
    [
        ("one", "left", 403),
        ("one", "right", 403),
        ("one", "alone", 202),
        ("both", "right", 202),
        ("whole", "left", 202),
    ],
)
async def test_who_sends_to_one_of_a_group_must_be_granted_each_of_it(
    shared_group: Served, name: str, to: str, status: int
) -> None:
    headers = bearer(DEFAULT_TENANT, name)
    answer = await shared_group.call("POST", "/inject", json={"to": to, "payload": {"text": ""}}, headers=headers)
    async with shared_group.socket(headers=headers) as socket:
        found = await Frames(socket).ask("inject", to=to, payload={"text": ""})
    assert (answer.status_code, found.get("code", "")) == (status, "forbidden" if status == 403 else "")
    if status == 403:
        assert "'inject:agent:right'" in answer.text
        assert "'inject:agent:right'" in found["error"]


@pytest.mark.parametrize("name", ["to-greeter", "ws-inject"])
async def test_what_a_token_injects_names_its_holder(shared_scopes: Served, name: str) -> None:
    headers = bearer(DEFAULT_TENANT, name)
    head = shared_scopes.log.head
    sent = {"to": "greeter", "payload": {"name": "Dan"}}
    assert (await shared_scopes.call("POST", "/inject", json={**sent, "wait": 10}, headers=headers)).status_code == 200
    first, follows, *_ = (await shared_scopes.get(f"/log?type=message_sent&after={head}"))["events"]
    assert (first["actor"]["principal"], follows["actor"]) == (name, None)
    async with shared_scopes.socket(headers=headers) as socket:
        done = await Frames(socket).ask("inject", **sent)
    (sent_there, *_) = (await shared_scopes.get(f"/log?type=message_sent&thread={done['thread_id']}"))["events"]
    assert sent_there["actor"]["principal"] == name


COMMAND_FIELDS: dict[str, dict[str, Any]] = {
    "subscribe": {"threads": ["x"]},
    "inject": {"to": "greeter", "payload": {"wrong": 1}},
    "kill": {"thread_id": "x"},
    "pause": {"thread_id": "x"},
    "resume": {"thread_id": "x"},
    "resolve": {"approval": "x", "decision": "approve"},
    "auth": {"token": "x"},
    "ping": {},
}


def named(scope: str) -> str:
    """A token's name for a scope."""
    return re.sub("[^a-z]", "-", scope)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_scopes(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    """The hello organism with a token for each scope, with and without ``read``, and some that are narrowed."""
    alone = {named(scope): [scope] for scope in SCOPES}
    watching = {f"ws-{named(scope)}": ["read", scope] for scope in SCOPES}
    narrow: dict[str, list[str]] = {
        "to-greeter": ["read", "inject:agent:greeter"],
        "of-greeter": ["read:agent:greeter", "control:agent:greeter"],
        "all-greeter": ["admin:agent:greeter"],
    }
    folder: Path = tmp_path_factory.mktemp("rights")
    scopes = {**alone, **watching, **narrow}
    often = {name: {"scopes": granted, "rate": 1000} for name, granted in scopes.items()}
    tokens: Wanted = {DEFAULT_TENANT: often, "acme": {"boss": ["admin"]}}
    async with served(hello_with(folder, tokens)) as running:
        yield running


async def knock(server: Served, route: Route, who: tuple[str, str]) -> httpx2.Response:
    """Call a route without effect: a caller with the right is refused for the unknown parameter."""
    path = re.sub(r"\{\w+\}", "x", route.address)
    return await server.client.request(route.method, f"{path}?probe=1", headers=bearer(*who))


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.address}")
async def test_a_route_opens_to_its_scope_and_to_admin_alone(shared_scopes: Served, route: Route) -> None:
    for scope in SCOPES:
        answer = await knock(shared_scopes, route, (DEFAULT_TENANT, named(scope)))
        opens = route.right.scope is None or scope in {route.right.scope, "admin"}
        assert (scope, answer.status_code not in {401, 403}) == (scope, opens), answer.text
        if not opens:
            assert refusal_of(answer)["code"] == "forbidden"
            assert repr(route.right.scope) in refusal_of(answer)["message"]


@pytest.mark.parametrize("route", [route for route in ROUTES if route.right.of_process], ids=lambda route: route.path)
async def test_what_concerns_the_process_is_for_the_operators_tenant_alone(shared_scopes: Served, route: Route) -> None:
    answer = await knock(shared_scopes, route, ("acme", "boss"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_command_is_taken_with_its_scope_and_with_admin_alone(shared_scopes: Served, scope: str) -> None:
    async with shared_scopes.socket(headers=bearer(DEFAULT_TENANT, f"ws-{named(scope)}")) as socket:
        frames = Frames(socket)
        await frames.until("connected")
        for name, kind in COMMANDS.items():
            answer = await frames.ask(name, **COMMAND_FIELDS[name])
            assert (name, answer.get("code") != "forbidden") == (
                name,
                kind.right.scope in {"read", scope} or scope == "admin",
            )


@pytest.mark.parametrize("scope", [scope for scope in SCOPES if scope not in {"read", "admin"}])
async def test_a_socket_needs_read(shared_scopes: Served, scope: str) -> None:
    async with shared_scopes.socket(headers=bearer(DEFAULT_TENANT, named(scope))) as socket:
        frames = Frames(socket)
        assert (await frames.next())["code"] == "forbidden"
        with pytest.raises(ConnectionClosed) as closed:
            await frames.next()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4403


async def inject(server: Served, name: str, to: str) -> list[int]:
    """The statuses of an injection as JSON and as XML."""
    headers = bearer(DEFAULT_TENANT, name)
    as_json = await server.call("POST", "/inject", json={"to": to, "payload": {"wrong": 1}}, headers=headers)
    as_xml = await server.call(
        "POST", f"/inject?to={to}", content=b"<wrong/>", headers={**headers, "Content-Type": "application/xml"}
    )
    return [as_json.status_code, as_xml.status_code]


async def test_an_injection_can_be_narrowed_to_an_agent(shared_scopes: Served) -> None:
    assert await inject(shared_scopes, "to-greeter", "greeter") == [400, 400]
    assert await inject(shared_scopes, "to-greeter", "shouter") == [403, 403]
    assert await inject(shared_scopes, "to-greeter", "nobody") == [403, 403]
    assert await inject(shared_scopes, "all-greeter", "greeter") == [400, 400]
    assert await inject(shared_scopes, "of-greeter", "greeter") == [403, 403]


async def test_an_injection_over_the_socket_is_narrowed_likewise(shared_scopes: Served) -> None:
    async with shared_scopes.socket(headers=bearer(DEFAULT_TENANT, "to-greeter")) as socket:
        frames = Frames(socket)
        mine = await frames.ask("inject", to="greeter", payload={"wrong": 1})
        other = await frames.ask("inject", to="shouter", payload={"wrong": 1})
        pause = await frames.ask("pause", agent="greeter")
    assert (mine["code"], other["code"], pause["code"]) == ("invalid_payload", "forbidden", "forbidden")
    assert "'inject:agent:shouter'" in other["error"]


async def test_reading_and_control_can_be_narrowed_to_an_agent(shared_scopes: Served) -> None:
    headers = bearer(DEFAULT_TENANT, "of-greeter")
    for method, path, status in (
        ("GET", "/agents/greeter", 200),
        ("GET", "/agents/greeter/schema", 200),
        ("GET", "/agents/shouter", 403),
        ("GET", "/agents", 403),
        ("GET", "/messages", 403),
        ("POST", "/agents/greeter/resume", 200),
        ("POST", "/agents/shouter/resume", 403),
        ("POST", "/organism/resume", 403),
    ):
        answer = await shared_scopes.call(method, path, headers=headers)
        assert (path, answer.status_code) == (path, status)
