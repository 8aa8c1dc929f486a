"""No live secret goes out in a prompt, and none comes in with an answer (S23, S30)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from organism.agents.providers.scripted import ScriptedCall
from organism.model.completion import CompleteError, TextDelta, ThoughtDelta, ToolCall
from organism.model.redact import MASK, Redactor
from organism.model.tool import ToolSpec
from tests.agents.desk import fails, says
from tests.log.engines import turn

SECRET = "canary-of-the-gateway-4711"
TOKEN = "org_laptop_" + "0a" * 32


async def test_a_prompt_loses_what_is_secret_or_looks_so_before_it_leaves(desk: Any) -> None:
    d = await desk(redactor=Redactor([SECRET]))
    key = "sk-proj-abcdefghijklmnop1234"
    said = [
        {"role": "system", "content": f"Use {SECRET}."},
        {"role": "user", "content": [{"type": "text", "text": f"and {key}, Bearer abcdefgh1234"}]},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "api_key": "short"}]},
    ]
    await d.complete(d.begun(), messages=said)
    assert d.providers["m"].requests[0].messages == (
        {"role": "system", "content": f"Use {MASK}."},
        {"role": "user", "content": [{"type": "text", "text": f"and {MASK}, Bearer {MASK}"}]},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "api_key": MASK}]},
    )


async def test_a_secret_that_comes_while_a_prepared_call_waits_is_masked_too(desk: Any) -> None:
    d = await desk(redactor=Redactor())
    call = d.call_of(d.begun(), messages=[{"role": "user", "content": f"Use {SECRET}."}])
    await d.gateway.prepare(call)
    d.redactor.add(SECRET)
    await d.gateway.call(d.reserved(call), lambda _: None)
    assert d.providers["m"].requests[0].messages == ({"role": "user", "content": f"Use {MASK}."},)


@pytest.mark.parametrize("said", [f"Use x{TOKEN}.", f"Use x{TOKEN} and {SECRET}."])
async def test_a_token_that_is_taken_while_a_prepared_call_waits_refuses_it(desk: Any, said: str) -> None:
    taken: set[str] = set()
    d = await desk(redactor=Redactor([SECRET], taken.__contains__))
    call = d.call_of(d.begun(), messages=[{"role": "user", "content": said}])
    await d.gateway.prepare(call)
    taken.add(TOKEN)
    with pytest.raises(CompleteError) as caught:
        d.reserved(call)
    assert caught.value.code == "leak_refused"


async def test_a_secret_that_is_a_number_refuses_the_call(desk: Any) -> None:
    d = await desk(redactor=Redactor(["4711471147"]))
    with pytest.raises(CompleteError) as caught:
        await d.complete(d.begun(), messages=[{"role": "user", "content": "Pay", "amount": 4711471147}])
    assert caught.value.code == "leak_refused"


@pytest.mark.parametrize("text", ["x" * (16 << 10), f"{SECRET} " * 500])
async def test_the_loop_has_its_turns_while_a_long_prompt_is_prepared(desk: Any, text: str) -> None:
    d = await desk(redactor=Redactor([SECRET]))
    turns: dict[int, int] = {}
    for count in (1, 64):
        call = d.call_of(d.begun(), messages=[{"role": "user", "content": text}] * count)
        preparing = asyncio.ensure_future(d.gateway.prepare(call))
        turns[count] = 0
        while not preparing.done():
            await turn()
            turns[count] += 1
    assert turns[1] < 3
    assert turns[64] > 8


@pytest.mark.parametrize(
    "options",
    [
        {"tools": (ToolSpec("t", f"Send {SECRET}", {}),)},
        {"tools": (ToolSpec("t", "", {"properties": {SECRET: {}}}),)},
        {"response_format": {"type": "json_schema", "json_schema": {"name": SECRET}}},
    ],
)
async def test_a_live_secret_where_nothing_may_be_changed_refuses_the_call(desk: Any, options: Any) -> None:
    d = await desk(redactor=Redactor([SECRET]))
    with pytest.raises(CompleteError) as caught:
        await d.complete(d.begun(), **options)
    assert caught.value.code == "leak_refused"
    assert SECRET not in caught.value.message
    assert (d.providers["m"].requests, d.purse.state.folded.spend.open) == ([], {})


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
async def test_an_answer_loses_live_secrets_however_it_is_cut_into_pieces(desk: Any, size: int) -> None:
    text = f"It is {SECRET}! And {SECRET[:-1]}, and {SECRET}"
    d = await desk(says(text, thought=f"{SECRET}?", chunk_chars=size), redactor=Redactor([SECRET]))
    done = await d.complete(d.begun())
    shown = "".join(part.text for part in done.parts if isinstance(part, TextDelta))
    thought = "".join(part.text for part in done.parts if isinstance(part, ThoughtDelta))
    assert shown == done.text == f"It is {MASK}! And {SECRET[:-1]}, and {MASK}"
    assert thought == done.outcome.completion.thought == f"{MASK}?"


async def test_a_tool_call_loses_live_secrets_too(desk: Any) -> None:
    calls = (ScriptedCall("send", {"to": [f"x{SECRET}"]}, id=SECRET), ScriptedCall(SECRET, {}, raw=f"{{{SECRET}"))
    d = await desk(says("", calls=calls), redactor=Redactor([SECRET]))
    done = await d.complete(d.begun())
    assert done.outcome.completion.tool_calls == (
        ToolCall(MASK, "send", {"to": [f"x{MASK}"]}),
        ToolCall("call_1_2", MASK, None, f"{{{MASK}"),
    )
    assert SECRET not in repr(done.parts)


async def test_what_was_held_back_as_the_begin_of_a_secret_is_sent_before_a_call(desk: Any) -> None:
    calls = (ScriptedCall("send", {}),)
    d = await desk(says(f"Sending {SECRET[:3]}", calls=calls), redactor=Redactor([SECRET]))
    parts = (await d.complete(d.begun())).parts
    words = [place for place, part in enumerate(parts) if isinstance(part, TextDelta)]
    assert "".join(parts[place].text for place in words) == f"Sending {SECRET[:3]}"
    assert max(words) < next(place for place, part in enumerate(parts) if isinstance(part, ToolCall))


async def test_an_error_of_a_server_loses_them_too(desk: Any) -> None:
    d = await desk(fails("rejected", message=f"bad key {SECRET}"), redactor=Redactor([SECRET]))
    assert (await d.complete(d.begun())).outcome.error.message == f"m: bad key {MASK}"
