"""The table of rights, walked: every route and every command with every scope (S3)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from websockets.exceptions import ConnectionClosed

from organism.model.ids import DEFAULT_TENANT
from organism.model.principal import SCOPES
from organism.server.app import ROUTES
from organism.server.call import Route
from organism.server.commands import COMMANDS
from organism.server.rights import OPEN
from tests.server.served import Frames, Served, served
from tests.server.tenanted import bearer, hello_with

pytestmark = pytest.mark.asyncio(loop_scope="module")

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


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    """The hello organism with a token for each scope, with and without ``read``, and some that are narrowed."""
    alone = {named(scope): [scope] for scope in SCOPES}
    watching = {f"ws-{named(scope)}": ["read", scope] for scope in SCOPES}
    narrow: dict[str, list[str]] = {
        "to-greeter": ["read", "inject:agent:greeter"],
        "of-greeter": ["read:agent:greeter", "control:agent:greeter"],
        "all-greeter": ["admin:agent:greeter"],
    }
    folder: Path = tmp_path_factory.mktemp("rights")
    tokens = {DEFAULT_TENANT: {**alone, **watching, **narrow}, "acme": {"boss": ["admin"]}}
    async with served(hello_with(folder, tokens)) as running:
        yield running


async def knock(server: Served, route: Route, who: tuple[str, str]) -> httpx2.Response:
    """Call a route so that nothing comes of it: whoever passes the door is told that the parameter is unknown."""
    path = re.sub(r"\{\w+\}", "x", route.address)
    return await server.client.request(route.method, f"{path}?probe=1", headers=bearer(*who))


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.address}")
async def test_a_route_opens_to_its_scope_and_to_admin_alone(server: Served, route: Route) -> None:
    for scope in SCOPES:
        answer = await knock(server, route, (DEFAULT_TENANT, named(scope)))
        opens = route.right is OPEN or scope in {route.right.scope, "admin"}
        assert (scope, answer.status_code not in {401, 403}) == (scope, opens), answer.text
        if not opens:
            assert answer.json()["error"]["code"] == "forbidden"
            assert repr(route.right.scope) in answer.json()["error"]["message"]


@pytest.mark.parametrize("route", [route for route in ROUTES if route.right.of_process], ids=lambda route: route.path)
async def test_what_concerns_the_process_is_for_the_operators_tenant_alone(server: Served, route: Route) -> None:
    answer = await knock(server, route, ("acme", "boss"))
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_command_is_taken_with_its_scope_and_with_admin_alone(server: Served, scope: str) -> None:
    async with server.socket(headers=bearer(DEFAULT_TENANT, f"ws-{named(scope)}")) as socket:
        frames = Frames(socket)
        await frames.until("connected")
        for name, kind in COMMANDS.items():
            answer = await frames.ask(name, **COMMAND_FIELDS[name])
            assert (name, answer.get("code") != "forbidden") == (
                name,
                kind.right.scope in {"read", scope} or scope == "admin",
            )


@pytest.mark.parametrize("scope", [scope for scope in SCOPES if scope not in {"read", "admin"}])
async def test_a_socket_needs_read(server: Served, scope: str) -> None:
    async with server.socket(headers=bearer(DEFAULT_TENANT, named(scope))) as socket:
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


async def test_an_injection_can_be_narrowed_to_an_agent(server: Served) -> None:
    assert await inject(server, "to-greeter", "greeter") == [400, 400]
    assert await inject(server, "to-greeter", "shouter") == [403, 403]
    assert await inject(server, "to-greeter", "nobody") == [403, 403]
    assert await inject(server, "all-greeter", "greeter") == [400, 400]
    assert await inject(server, "of-greeter", "greeter") == [403, 403]


async def test_an_injection_over_the_socket_is_narrowed_likewise(server: Served) -> None:
    async with server.socket(headers=bearer(DEFAULT_TENANT, "to-greeter")) as socket:
        frames = Frames(socket)
        mine = await frames.ask("inject", to="greeter", payload={"wrong": 1})
        other = await frames.ask("inject", to="shouter", payload={"wrong": 1})
        pause = await frames.ask("pause", agent="greeter")
    assert (mine["code"], other["code"], pause["code"]) == ("invalid_payload", "forbidden", "forbidden")
    assert "'inject:agent:shouter'" in other["error"]


async def test_reading_and_control_can_be_narrowed_to_an_agent(server: Served) -> None:
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
        answer = await server.call(method, path, headers=headers)
        assert (path, answer.status_code) == (path, status)
