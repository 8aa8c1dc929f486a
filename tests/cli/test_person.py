"""What needs a person: dead letters, approvals and effects in doubt, listed and settled from the command line."""

from __future__ import annotations

from typing import Any

from tests.cli.test_verbs import ask
from tests.server.served import Frames, Served


async def left(needy: Served, text: str, event: str) -> dict[str, Any]:
    """What the worker leaves for a person when it gets this text."""
    async with needy.socket("?since=0") as socket:
        await needy.inject("worker", {"text": text}, wait=None)
        (*_, frame) = await Frames(socket).until(event)
    found: dict[str, Any] = frame[event]
    return found


async def test_a_dead_letter_is_listed_and_replayed_with_another_payload(needy: Served) -> None:
    letter = await left(needy, "bad", "dead_letter")
    (listed,) = (await ask(needy, "dead-letters", "list", "--json")).json
    assert listed["id"] == letter["id"]
    table = (await ask(needy, "dead-letters", "list")).out
    assert letter["id"] in table
    assert "no good" in table
    sent = await ask(needy, "dead-letters", "replay", letter["id"], "--payload", "-", "--json", stdin='{"text":"good"}')
    assert set(sent.json) == {"thread_id", "message_id", "position"}
    assert (await ask(needy, "dead-letters", "list")).out == "no dead letters\n"


async def test_a_dead_letter_is_discarded_once(needy: Served) -> None:
    letter = await left(needy, "bad", "dead_letter")
    assert (await ask(needy, "dead-letters", "discard", letter["id"])).out == f"{letter['thread_id']} error\n"
    again = await ask(needy, "dead-letters", "discard", letter["id"])
    assert (again.code, again.out) == (6, "")


async def test_an_approval_is_resolved_with_edits_and_once(needy: Served) -> None:
    approval = await left(needy, "ask", "approval")
    table = (await ask(needy, "approvals", "list")).out
    assert '{"sum":3}' in table
    checked = await ask(needy, "approvals", "check", approval["id"], "--edits", '{"sum":2}')
    words = ("approvals", "resolve", approval["id"], "approve", "--edits", '{"sum":2}', "--comment", "less")
    resolved = (await ask(needy, *words, "--json")).json
    assert (resolved["status"], f"{resolved['digest']}\n") == ("approved", checked.out)
    again = await ask(needy, *words)
    assert (again.code, again.out) == (6, "")
    assert (await ask(needy, "approvals", "list")).out == "no pending approvals\n"
    assert [each["status"] for each in (await ask(needy, "approvals", "list", "--status", "all", "--json")).json] == [
        "approved"
    ]


async def test_invisible_characters_of_a_preview_are_written_out(needy: Served) -> None:
    await left(needy, "hide", "approval")
    assert '{"file":"invoice⟨U+202E⟩fdp.exe⟨U+200B⟩"}' in (await ask(needy, "approvals", "list")).out
    (listed,) = (await ask(needy, "approvals", "list", "--json")).json
    assert listed["preview"] == {"file": "invoice\u202efdp.exe\u200b"}


async def test_an_effect_in_doubt_is_settled_with_its_result(needy: Served) -> None:
    effect = await left(needy, "pay", "indeterminate")
    assert effect["id"] in (await ask(needy, "indeterminate", "list")).out
    words = ("indeterminate", "resolve", effect["id"], "done", "--result", '"paid"')
    assert (await ask(needy, *words, "--json")).json["status"] == "active"
    assert (await ask(needy, "indeterminate", "list", "--json")).json == []


async def test_an_unknown_outcome_is_refused_with_the_known_ones(needy: Served) -> None:
    effect = await left(needy, "pay", "indeterminate")
    ran = await ask(needy, "indeterminate", "resolve", effect["id"], "maybe")
    assert ran.code == 1
    assert "'done', 'redo' or 'fail'" in ran.err
    broken = await ask(needy, "indeterminate", "resolve", effect["id"], "done", "--result", "{")
    assert (broken.code, "--result" in broken.err) == (2, True)


async def test_what_waits_for_a_person_is_counted_and_listed_with_what_to_do_next(needy: Served) -> None:
    assert "waiting for you" not in (await ask(needy, "status")).out
    approval = await left(needy, "ask", "approval")
    await left(needy, "bad", "dead_letter")
    await left(needy, "pay", "indeterminate")
    status = (await ask(needy, "status")).out
    for verb in ("approvals", "dead-letters", "indeterminate"):
        assert f"1 waiting for you: organism {verb} list" in status
        assert "next: " in (await ask(needy, verb, "list")).err
    now = (await ask(needy, "status", "--json")).json
    assert now["waiting_for_people"] == {"approvals": 1, "dead_letters": 1, "indeterminate": 1, "foreign_tools": 0}
    then = await needy.get(f"/organism?at={approval['position']}")
    assert then["waiting_for_people"] == {"approvals": 1, "dead_letters": 0, "indeterminate": 0, "foreign_tools": 0}
    async with needy.socket() as socket:
        connected = await Frames(socket).next()
    assert connected["organism"]["waiting_for_people"] == now["waiting_for_people"]
