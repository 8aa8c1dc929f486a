"""The embedded default does what it is told to do, and nothing because it is only spoken of (spec 4.3; adr/0043)."""

from __future__ import annotations

import pytest

from organism.agents.providers.builtin.model import Builtin
from organism.model.completion import ModelRequest
from tests.agents.providers.asking import gathered
from tests.agents.providers.builtin.generated.tools import TOOLS

ACTING = {
    "delete_file",
    "cancel_order",
    "pay_invoice",
    "refund_order",
    "restart_service",
    "transfer_money",
    "lock_door",
}
ACTING |= {"call_contact", "send_email", "move_file", "key_value_delete", "key_value_set", "cancel_booking"}


async def _called(text: str) -> set[str]:
    came = await gathered(Builtin().stream(ModelRequest("m", ({"role": "user", "content": text},), TOOLS)))
    return {call.name for call in came.calls}


@pytest.mark.parametrize(
    "text",
    [
        "Should I delete /tmp/a.txt?",
        "How do I delete /tmp/a.txt?",
        "I deleted the file /tmp/a.txt.",
        "What happens if I delete /tmp/a.txt?",
        "Has the invoice A-4711 been paid?",
        "Was the order A-4711 cancelled?",
        "Wurde die Bestellung A-4711 storniert?",
        "Ich habe die Bestellung A-4711 storniert.",
        "I'd like to know whether order A-4711 was cancelled",
        "If the order A-4711 is late, cancel order A-4711",
        "Don't cancel order A-4711, I still want it.",
        "My brother wants to cancel order A-4711.",
        "Did you lock the front door?",
        "Why did you send the mail to lee@example.com?",
        "I can't transfer 50 euros to Tom Becker.",
        "Never restart nginx.",
    ],
)
async def test_what_is_asked_about_told_or_denied_is_not_done(text: str) -> None:
    assert not await _called(text) & ACTING


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Please cancel order A-4711, I don't want it any more.", "cancel_order"),
        ("I can't do it myself: restart nginx", "restart_service"),
        ("Looks good, lock the front door", "lock_door"),
    ],
)
async def test_what_is_ordered_is_done_though_something_else_is_told(text: str, name: str) -> None:
    assert await _called(text) == {name}
