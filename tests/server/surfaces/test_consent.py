"""Calls that wait for consent, as ``/approvals`` shows them."""

from __future__ import annotations

import hashlib

from tests.flows.world import MakeWorld
from tests.server.served import Served, served

SOURCE = """
@dataclass
class Payment:
    to: str
    cents: int = 1

async def pay(payload: Payment, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told(f"paid {payload.cents} to {payload.to}"))

async def asking(payload: Ask, metadata: HandlerMetadata):
    word = await metadata.approve({"what": payload.text})
    return HandlerResponse.respond(Told(word.decision))
"""
LISTENERS = {"pay": {"payload_class": "Payment", "approval": True}, "asking": {}}


async def pending(server: Served) -> dict[str, object]:
    """The one question that is open."""
    (found,) = (await server.get("/approvals?status=pending"))["approvals"]
    assert isinstance(found, dict)
    return found


async def test_a_call_is_shown_with_its_payload_the_digest_of_it_and_a_form(world: MakeWorld) -> None:
    async with served(world(SOURCE, LISTENERS).config) as server:
        await server.inject("pay", {"to": "ann", "cents": 7}, wait=None)
        found = await pending(server)
        assert (found["preview"], found["payload_type"], found["agent"]) == (
            {"to": "ann", "cents": 7},
            "Payment",
            "pay",
        )
        assert found["digest"] == hashlib.sha256(b'{"cents":7,"to":"ann"}').hexdigest()
        assert found["form_schema"] == await server.get(
            "/agents/pay/schema", headers={"Accept": "application/schema+json"}
        )


async def test_what_a_handler_asks_has_a_form_of_its_values(world: MakeWorld) -> None:
    async with served(world(SOURCE, LISTENERS).config) as server:
        await server.inject("asking", {"text": "x"}, wait=None)
        found = await pending(server)
        assert (found["preview"], found["payload_type"], "form_schema" in found) == ({"what": "x"}, None, True)


async def test_edits_that_do_not_fit_are_refused_at_their_place_and_others_run(world: MakeWorld) -> None:
    async with served(world(SOURCE, LISTENERS).config) as server:
        sent = await server.inject("pay", {"to": "ann"}, wait=None)
        path = f"/approvals/{(await pending(server))['id']}/resolve"
        wrong = await server.call("POST", path, json={"decision": "approve", "edits": {"to": "ann", "cents": "many"}})
        assert (wrong.status_code, wrong.json()["error"]["code"]) == (400, "invalid_payload")
        assert wrong.json()["error"]["param"] == "/edits/cents"
        maybe = await server.call("POST", path, json={"decision": "maybe"})
        assert (maybe.status_code, maybe.json()["error"]["param"]) == (400, "/decision")
        right = await server.call("POST", path, json={"decision": "approve", "edits": {"to": "bob"}})
        assert (right.status_code, right.json()["status"]) == (200, "approved")
        assert right.json()["digest"] == hashlib.sha256(b'{"to":"bob"}').hexdigest()
        assert "form_schema" not in right.json()
        again = await server.call("POST", path, json={"decision": "approve"})
        assert (again.status_code, again.json()["error"]["code"]) == (409, "already_resolved")
        thread = await server.get(f"/threads/{sent['thread_id']}")
        assert thread["messages"][-1]["payload"] == {"text": "paid 1 to bob"}
