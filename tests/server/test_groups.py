"""A token that is narrowed to an agent reaches no other by the agent's broadcast group (S3)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from organism.model.ids import DEFAULT_TENANT
from tests.flows.world import MakeWorld
from tests.server.served import Frames, Served, served
from tests.server.tenanted import bearer, write_tokens

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
