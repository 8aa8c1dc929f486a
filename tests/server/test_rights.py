"""The table of rights: nothing is open by oversight, every scope can be narrowed (S3)."""

from __future__ import annotations

import pytest

from organism.errors import Forbidden
from organism.model.ids import TenantId
from organism.model.principal import KINDS, SCOPES, Principal, is_grant
from organism.server import rights
from organism.server.call import Answer, Call, Route
from organism.server.commands import BODIES, COMMANDS
from organism.server.contract import Contract, gives
from organism.server.rights import Right, right_of
from organism.server.shapes.words import Object


async def _endpoint(call: Call) -> Answer:
    return Answer(b"")


def test_a_route_without_a_line_in_the_table_cannot_be_made() -> None:
    with pytest.raises(LookupError, match=r"'GET /secrets' has no line in organism/server/rights\.py"):
        Route("GET", "/secrets", _endpoint, contract=Contract(gives=gives(Object)))


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
    right.check_door(who, {})
    with pytest.raises(Forbidden):
        right.check(who, {})
    with pytest.raises(Forbidden):
        right.check_door(Principal(TenantId("acme"), "x", frozenset({"read"})), {})


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
