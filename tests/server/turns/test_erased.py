"""A turn whose text was erased is still answered under its key, without that text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from organism.model.run import REQUIRED
from organism.server.turns.answer import Writer
from organism.server.turns.run_result import FoldedRun
from organism.server.turns.write.ndjson import LineWriter
from organism.server.turns.write.openai import CompletionWriter, Head
from organism.server.turns.write.sse import EventWriter
from organism.server.turns.write.vercel import UiWriter
from tests.server.sessions.talking import User, talking

ERASED = {"erased": True}
WRITERS: list[Writer] = [
    LineWriter("application/x-ndjson"),
    EventWriter(),
    UiWriter("msg-1"),
    CompletionWriter(Head("thr-1", 1, "m"), lambda error: error.message.encode()),
]


@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: type(writer).__name__)
def test_each_form_has_room_for_entries_that_were_erased(writer: Writer) -> None:
    run = FoldedRun()
    kinds = [kind for kind in REQUIRED if kind != "done"]
    for entry in ({"type": kind, "data": ERASED} for kind in kinds):
        run.add(entry)
        assert b"Traceback" not in writer.lines(entry)
    end: dict[str, Any] = {"type": "done", "data": {"stopReason": "stop"}}
    run.add({"type": "message", "data": ERASED})
    run.add(end)
    writer.lines({"type": "message", "data": ERASED})
    assert isinstance(writer.lines(end) + writer.end({}), bytes)
    assert writer.whole(run)


async def test_the_key_of_a_turn_opens_it_after_its_session_was_deleted(tmp_path: Path) -> None:
    async with talking(tmp_path) as server:
        dan = User(server)
        session = await dan.begin()
        inputs = {"data": {"inputs": {"message": "secret"}}, "session_id": session}
        once: Any = {"Idempotency_Key": "one"}

        async def all_forms() -> list[Any]:
            ui: Any = {"x-ag-messages-format": "vercel", **once}
            return [
                await dan.say(session, "secret", **once),
                await dan.call("POST", "/agents/parrot/invoke", inputs, **once),
                await dan.call("POST", "/invoke", {"agent": "parrot", "flags": {"stream": True}, **inputs}, **ui),
            ]

        first = await all_forms()
        assert (await dan.call("DELETE", f"parrot/sessions/{session}")).status_code == 204
        again = await all_forms()
    assert [each.status_code for each in (*first, *again)] == [200] * 6
    assert "secret" in first[0].text
    assert not [each.text for each in again if "secret" in each.text]
    assert [each.text.count('"stop"') for each in again] == [1, 1, 1]
