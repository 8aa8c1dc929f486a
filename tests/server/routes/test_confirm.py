"""Calls that are confirmed, over ``/v1/tools/execute``: a preview with a token, then the act."""

from __future__ import annotations

import pytest

from tests.flows.world import MakeWorld, World
from tests.server.routes.test_tools import LISTENERS, SOURCE, execute, told
from tests.server.served import served
from tests.server.tenanted import bearer, write_tokens

CONFIRMED = """
@dataclass
class Asked:
    text: str = ""
    confirm_token: str = ""

"""


def confirmed(world: MakeWorld) -> World:
    """The same with a helper whose calls are confirmed."""
    source = SOURCE.replace("async def helper(payload: Ask,", CONFIRMED + "async def helper(payload: Asked,")
    return world(source, {**LISTENERS, "helper": {"confirm": True, "payload_class": "Asked"}})


@pytest.mark.parametrize(("tenant", "who"), [("acme", "other"), ("globex", "boss")])
async def test_a_confirm_token_of_another_tenant_or_user_is_none(world: MakeWorld, tenant: str, who: str) -> None:
    play = confirmed(world)
    write_tokens(play.folder, {"acme": {"boss": ["admin"], "other": ["admin"]}, "globex": {"boss": ["admin"]}})
    async with served(play.config) as server:
        mine = bearer("acme", "boss")
        given = (await execute(server, "helper", {"text": "x"}, headers=mine)).json()["result"]["confirm_token"]
        call = {"text": "x", "confirm_token": given}
        theirs = await execute(server, "helper", call, headers=bearer(tenant, who))
        assert told(theirs) == (409, "confirm_mismatch", None)
        assert (await execute(server, "helper", call, headers=mine)).json() == {"result": {"text": "told x"}}


async def test_a_tool_that_is_to_be_confirmed_is_called_twice_and_a_wrong_token_is_a_conflict(world: MakeWorld) -> None:
    async with served(confirmed(world).config) as server:
        preview = (await execute(server, "helper", {"text": "x"})).json()["result"]
        assert (preview["confirm_required"], preview["op"]) == (True, "helper")
        given = preview["confirm_token"]
        other = await execute(server, "helper", {"text": "y", "confirm_token": given})
        assert told(other) == (409, "confirm_mismatch", None)
        acted = await execute(server, "helper", {"text": "x", "confirm_token": given})
        assert acted.json() == {"result": {"text": "told x"}}
        again = await execute(server, "helper", {"text": "x", "confirm_token": given})
        assert told(again) == (409, "confirm_used", None)
        listed = (await server.get("//v1/tools"))["data"]
        assert [tool["function"]["name"] for tool in listed if tool["confirm"]] == ["helper"]
