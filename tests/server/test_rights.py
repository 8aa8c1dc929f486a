"""The table of rights: nothing is open by oversight, every scope can be narrowed (S3); the log names who asked (S5)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from organism.errors import Forbidden
from organism.model.ids import DEFAULT_TENANT, TenantId
from organism.model.principal import KINDS, SCOPES, Principal, is_grant
from organism.server import rights
from organism.server.call import Answer, Call, Route
from organism.server.commands import BODIES, COMMANDS
from organism.server.contract import gives
from organism.server.rights import Right, right_of
from organism.server.shapes.words import Object
from tests.flows.world import MakeWorld
from tests.server.served import Frames, Served, served
from tests.server.tenanted import bearer, hello_with, write_tokens


async def _endpoint(call: Call) -> Answer:
    return Answer(b"")


def test_a_route_without_a_line_in_the_table_cannot_be_made() -> None:
    with pytest.raises(LookupError, match=r"'GET /secrets' has no line in organism/server/rights\.py"):
        Route("GET", "/secrets", _endpoint, gives=gives(Object))


def test_a_command_without_a_line_in_the_table_cannot_be_made() -> None:
    assert set(BODIES) == set(COMMANDS)
    with pytest.raises(LookupError, match="'dance'"):
        right_of(rights.COMMANDS, "dance")


def test_what_needs_no_token_is_known_by_name() -> None:
    spec = {"/healthz", "/readyz", "/errors", "/openapi.json", "/asyncapi.json", "/docs"}
    assert {operation.split()[1] for operation, right in rights.ROUTES.items() if right.scope is None} == spec


def test_a_right_that_names_its_object_in_the_body_waits_for_it_at_the_door() -> None:
    right = Right("inject", {"to": "agent"}, in_body=True)
    who = Principal(TenantId("acme"), "x", frozenset({"inject:agent:greeter"}))
    right.check_early(who, {})
    with pytest.raises(Forbidden):
        right.check(who, {})
    with pytest.raises(Forbidden):
        right.check_early(Principal(TenantId("acme"), "x", frozenset({"read"})), {})


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


@pytest.fixture
async def server(world: MakeWorld) -> AsyncIterator[Served]:
    """Two that share what they get, one that does not, and tokens for one of the two, for both, for all."""
    made = world(SOURCE, {"left": {"broadcast": True}, "right": {"broadcast": True}, "alone": {}})
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
    server: Served, name: str, to: str, status: int
) -> None:
    headers = bearer(DEFAULT_TENANT, name)
    answer = await server.call("POST", "/inject", json={"to": to, "payload": {"text": ""}}, headers=headers)
    async with server.socket(headers=headers) as socket:
        said = await Frames(socket).ask("inject", to=to, payload={"text": ""})
    assert (answer.status_code, said.get("code", "")) == (status, "forbidden" if status == 403 else "")
    if status == 403:
        assert "'inject:agent:right'" in answer.text
        assert "'inject:agent:right'" in said["error"]


@pytest.mark.parametrize(("who", "name"), [(bearer("default", "clerk"), "clerk"), ({}, "operator")])
async def test_what_a_token_injects_names_its_holder(tmp_path: Path, who: dict[str, str], name: str) -> None:
    config = hello_with(tmp_path, {"default": {"clerk": ["inject", "read"]}})
    async with served(config, tmp_path / "data") as server:
        body = {"to": "greeter", "payload": {"name": "Dan"}, "wait": 10}
        assert (await server.call("POST", "/inject", json=body, headers=who)).status_code == 200
        log = await server.get("/log?type=message_sent")
    assert log["events"][0]["actor"]["principal"] == name
    assert log["events"][1]["actor"] is None


async def test_what_comes_by_the_socket_names_its_holder_too(tmp_path: Path) -> None:
    async with served(hello_with(tmp_path, {}), tmp_path / "data") as server:
        async with server.socket() as socket:
            await Frames(socket).ask("inject", to="greeter", payload={"name": "Dan"})
        log = await server.get("/log?type=message_sent")
    assert log["events"][0]["actor"]["principal"] == "operator"
