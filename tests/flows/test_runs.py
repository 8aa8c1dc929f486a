"""A run: what a handling shows of itself, each entry once, and ``done`` at its end, whatever ended it."""

from __future__ import annotations

from typing import Any

import pytest

from organism.bootstrap import Parts
from organism.events.record import Record
from organism.events.vocabulary import (
    MessageHandled,
    OrganismStarted,
    RunData,
    RunEvent,
    RunMessage,
    RunMessageDelta,
    RunMessageStart,
    RunToolResult,
)
from organism.model.commands import KillThread
from organism.model.run import REQUIRED
from organism.pump.run.run_stream import MOST_AHEAD
from organism.views.run import entry_of, fold
from tests.flows.disk import Disk
from tests.flows.speaker import Speaker
from tests.flows.stage import at_gate, decided, folded_again, folded_live, open_gate, pairs, play, shown
from tests.flows.world import MakeWorld

SHOWER = """
async def shower(payload: Ask, metadata: HandlerMetadata):
    {steps}
    return HandlerResponse.respond(Told("shown"))
"""

DATA: dict[str, dict[str, Any]] = {
    "message": {"text": "hi"},
    "thought": {"text": "hm"},
    "tool_call": {"id": "c1", "name": "echo", "input": {"text": "x"}, "rawInput": "{x"},
    "tool_result": {"id": "c1", "output": {"text": "X"}, "isError": False},
    "interaction_request": {"id": "i1", "kind": "approval", "payload": {"toolName": "echo"}},
    "interaction_response": {"id": "i1", "decision": "approve"},
    "data": {"name": "chart", "data": [1, 2]},
    "file": {"url": "data:,x", "mediaType": "text/plain"},
    "usage": {"input": 1, "output": 2, "total": 3},
    "error": {"code": "upstream_error", "message": "It did not work."},
}


def kinds(records: list[Record[Any]]) -> list[str]:
    """Their types, and the ids of those that have one."""
    return [" ".join(filter(None, (record.type[4:], record.event.id))) for record in records]


def steps(*lines: str) -> str:
    """The handler that does these things, one after the other."""
    return SHOWER.format(steps="\n    ".join(lines))


async def test_an_entry_is_one_event_with_what_it_says_beside_it(world: MakeWorld) -> None:
    async with world(
        steps(f"await metadata.emit(payload.text, {DATA!r}[payload.text])"), {"shower": {}}
    ).running() as o:
        for kind, data in DATA.items():
            outcome = await o.inject("shower", {"text": kind}, wait=True)
            entry, done = await shown(o, outcome.thread_id)
            assert entry.type == f"run_{kind}"
            assert (entry.event.message, entry.event.agent) == (outcome.message_id, "shower")
            assert entry_of(entry) == {"type": kind, "data": data}
            assert entry.content is not None
            assert entry.content.owner == outcome.thread_id
            assert not {"text", "output", "input", "payload", "url"} & {*entry.event.__struct_fields__}
            assert entry_of(done) == {"type": "done", "data": {"stopReason": "stop"}}


def test_each_type_of_the_vocabulary_is_tried() -> None:
    blocks = {f"{block}_{part}" for block in ("message", "thought") for part in ("start", "delta", "end")}
    assert set(REQUIRED) == set(DATA) | blocks | {"done"}


NO_ENTRIES = [
    ("'poem', {}", "A run has entries of the types message, thought"),
    ("'message', 'hi'", "is a dict with text; str came"),
    ("'message', {}", "needs text; text is missing"),
    ("'message', {'text': 1}", "`text` is a text; 1 came"),
    ("'message_start', {'id': ''}", "`id` is a text of 1 to 200 characters"),
    ("'tool_call', {'id': 'c', 'name': 'n'}", "needs id, name, input; input is missing"),
    ("'tool_result', {'id': 'c', 'output': 1, 'isError': 'no'}", "`isError` is true or false"),
    ("'usage', {'input': True, 'output': 1, 'total': 1}", "`input` is a number of tokens"),
    ("'done', {'stopReason': 'bored'}", "`stopReason` is one of stop, length"),
    ("'data', {'name': 'x', 'data': {1, 2}}", "cannot be written as JSON"),
    ("'data', {'name': 'x', 'data': 'y' * 2000}", "at most 1200 are taken"),
    ("'message_delta', {'id': 'm', 'delta': 'x'}", "No message 'm' has begun"),
    ("'thought_end', {'id': 'm'}", "No thought 'm' has begun"),
]


async def test_what_is_no_entry_is_reported_with_what_is(world: MakeWorld) -> None:
    entries = ", ".join(f"({entry})" for entry, _ in NO_ENTRIES)
    source = steps(
        "try:",
        f"    await metadata.emit(*[{entries}][int(payload.text)])",
        "except ValueError as error:",
        "    TRACE.append(str(error))",
    )
    async with world(source, {"shower": {}}, limits={"max_payload_bytes": 300}).running() as o:
        for number, (_, reason) in enumerate(NO_ENTRIES):
            outcome = await o.inject("shower", {"text": str(number)}, wait=True)
            assert await shown(o, outcome.thread_id) == []
            assert reason in play(o)["TRACE"][-1]


async def test_a_block_begins_once_until_it_has_ended(world: MakeWorld) -> None:
    source = steps(
        "await metadata.emit('message_start', {'id': 'm'})",
        "for _ in range(2):",
        "    try:",
        "        await metadata.emit('message_start', {'id': 'm'})",
        "    except ValueError as error:",
        "        TRACE.append(str(error))",
        "    await metadata.emit('message_end', {'id': 'm'})",
        "    await metadata.emit('message_start', {'id': 'm'})",
    )
    async with world(source, {"shower": {}}).running() as o:
        outcome = await o.inject("shower", {"text": ""}, wait=True)
        assert play(o)["TRACE"] == ["The message 'm' has begun already: show message_end before it begins again."] * 2
        assert kinds(await shown(o, outcome.thread_id))[-2:] == ["message_end m", "done"]


async def test_nothing_comes_after_done_and_done_lies_in_the_unit_that_ends_the_message(world: MakeWorld) -> None:
    source = steps(
        "await metadata.emit('message', {'text': 'hi'})",
        "await metadata.emit('done', {'stopReason': 'length'})",
        "try:",
        "    await metadata.emit('message', {'text': 'more'})",
        "except ValueError as error:",
        "    TRACE.append(str(error))",
    )
    async with world(source, {"shower": {}}).running() as o:
        outcome = await o.inject("shower", {"text": ""}, wait=True)
        records = await o.records(thread=outcome.thread_id)
        assert play(o)["TRACE"] == ["The run is over: `done` was shown already, and message comes after it."]
    entries = [record for record in records if isinstance(record.event, RunEvent)]
    assert pairs(entries, "stop_reason") == [("run_message", None), ("run_done", "length")]
    handled = next(
        record for record in records if isinstance(record.event, MessageHandled) and record.event.agent == "shower"
    )
    assert handled.position == entries[-1].position + 1
    assert handled.at == entries[-1].at


ENDS = {
    "stop": ("pass", "stop"),
    "raises": ("raise ValueError('no')", "error"),
    "wrong return": ("return 5", "error"),
    "said done": ("await metadata.emit('done', {'stopReason': 'stop'}); raise ValueError('no')", "error"),
}


@pytest.mark.parametrize("end", ENDS)
async def test_done_is_the_last_entry_whatever_ended_the_run(world: MakeWorld, end: str) -> None:
    last, reason = ENDS[end]
    async with world(steps("await metadata.emit('message', {'text': 'hi'})", last), {"shower": {}}).running() as o:
        outcome = await o.inject("shower", {"text": ""}, wait=True)
        entries = await shown(o, outcome.thread_id)
        assert await folded_live(o) == await folded_again(o.log)
    assert pairs(entries, "stop_reason") == [("run_message", None), ("run_done", reason)]


async def test_a_killed_run_keeps_what_was_said_and_is_done_before_its_thread(world: MakeWorld) -> None:
    source = """
    async def talker(payload: Ask, metadata: HandlerMetadata):
        await metadata.complete([{"role": "user", "content": payload.text}], block="m1")
    """
    made, speaker = world(source, {"talker": {}}), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        injected = await o.inject("talker", {"text": "half an @answer more"})
        await speaker.at("answer")
        await o.until(RunMessageStart)
        await o.do(KillThread(thread_id=injected.thread_id))
        records = await o.records(thread=injected.thread_id)
    entries = [record for record in records if isinstance(record.event, RunEvent)]
    assert fold(map(entry_of, entries))["messages"] == [{"role": "assistant", "content": "halfan"}]
    assert kinds(entries) == ["message_start m1", "message_delta m1", "message_end m1", "done"]
    assert entries[-1].event.stop_reason == "killed"
    assert [record.type for record in records[-2:]] == ["message_handled", "thread_killed"]


async def test_a_run_whose_listener_is_gone_is_done(world: MakeWorld) -> None:
    source = steps("await metadata.emit('message', {'text': 'hi'})", "await gate('never')")
    made = world(source, {"shower": {}, "other": {"handler": "shower"}})
    async with made.running() as o:
        injected = await o.inject("shower", {"text": ""})
        await o.until(RunMessage)
        await o.crash()
    made.write(source, {"other": {"handler": "shower"}})
    async with made.running() as o:
        assert await o.tenant.ended(injected.thread_id, 10)
        entries = await shown(o, injected.thread_id)
    assert pairs(entries, "stop_reason") == [("run_message", None), ("run_done", "error")]


RESTARTED = """
async def shower(payload: Ask, metadata: HandlerMetadata):
    for number in range(3):
        await metadata.emit("data", {"name": "n", "data": number})
    await metadata.emit("tool_call", {"id": "a", "name": "x", "input": {}})
    await metadata.emit("tool_call", {"id": "b", "name": "x", "input": {}})
    is_first = True
    order = ("a", "b") if is_first else ("b", "a")
    await metadata.emit("tool_result", {"id": order[0], "output": order[0], "isError": False})
    await gate("after")
    await metadata.emit("tool_result", {"id": order[1], "output": order[1], "isError": False})
    return None
"""


async def test_after_a_restart_no_entry_is_shown_again_in_whatever_order_they_come(world: MakeWorld) -> None:
    made = world(RESTARTED, {"shower": {}})
    async with made.running() as o:
        injected = await o.inject("shower", {"text": "first"})
        await o.until(RunToolResult)
        await o.crash()
    made.write(RESTARTED.replace("is_first = True", "is_first = False"))
    async with made.running() as o:
        open_gate(o, "after")
        assert await o.tenant.ended(injected.thread_id, 10)
        entries = await shown(o, injected.thread_id)
    assert [
        (entry["type"], entry["data"].get("data", entry["data"].get("id"))) for entry in map(entry_of, entries)
    ] == [
        ("data", 0),
        ("data", 1),
        ("data", 2),
        ("tool_call", "a"),
        ("tool_call", "b"),
        ("tool_result", "a"),
        ("tool_result", "b"),
        ("done", None),
    ]


async def test_a_new_attempt_goes_on_with_the_run(world: MakeWorld) -> None:
    source = steps(
        "await metadata.emit('message', {'text': 'once'})",
        "await metadata.emit('message_start', {'id': 'm'})",
        "await metadata.emit('message_delta', {'id': 'm', 'delta': f'attempt {metadata.attempt}'})",
        "if metadata.attempt < 3: raise ValueError('no')",
        "await metadata.emit('message_end', {'id': 'm'})",
    )
    async with world(source, {"shower": {}}).running() as o:
        outcome = await o.inject("shower", {"text": ""}, wait=True)
        folded = fold(map(entry_of, await shown(o, outcome.thread_id)))
        pieces = [entry_of(record)["data"]["delta"] for record in await o.records(RunMessageDelta)]
    assert pieces == ["attempt 1", "attempt 2", "attempt 3"]
    assert [message["content"] for message in folded["messages"]] == ["once", "attempt 3"]
    assert folded["stop_reason"] == "stop"


async def test_an_id_is_a_text_of_no_class_of_the_handler_s_and_anything_else_is_not_one(world: MakeWorld) -> None:
    source = steps(
        "Name = type('Name', (str,), {})",
        "await metadata.emit('data', {'name': 'n', 'data': 1, 'id': 7})",
        "await metadata.emit('data', {'name': 'n', 'data': 2, 'id': Name('d')})",
        "await metadata.emit('message_start', {'id': Name('m')})",
        "await metadata.emit('message_delta', {'id': Name('m'), 'delta': 'x'})",
        "await metadata.emit('message_end', {'id': Name('m')})",
        "if metadata.attempt < 2: raise ValueError('no')",
        "await metadata.emit('done', {'stopReason': Name('length')})",
    )
    async with world(source, {"shower": {}}).running() as o:
        outcome = await o.inject("shower", {"text": ""}, wait=True)
        records = await shown(o, outcome.thread_id)
    assert kinds(records) == ["data", "data d", "message_start m", "message_delta m", "message_end m", "done"]
    assert [entry_of(record)["data"].get("id") for record in records[:2]] == [7, "d"]


async def test_what_is_said_piece_by_piece_is_gathered_once_a_second(world: MakeWorld) -> None:
    source = steps(
        "await metadata.emit('message_start', {'id': 'm', 'role': 'assistant'})",
        "for word in ('one ', 'two ', 'three ', 'four'):",
        "    await metadata.emit('message_delta', {'id': 'm', 'delta': word})",
        "    if word == 'two ': await gate('second')",
        "await metadata.emit('message_end', {'id': 'm'})",
    )
    async with world(source, {"shower": {}}).running() as o:
        injected = await o.inject("shower", {"text": ""})
        begun, gathered = await o.until(RunMessageStart), await o.until(RunMessageDelta)
        assert gathered.at - begun.at >= 900_000
        open_gate(o, "second")
        assert await o.tenant.ended(injected.thread_id, 10)
        entries = [entry_of(record) for record in await shown(o, injected.thread_id)]
    assert entries == [
        {"type": "message_start", "data": {"id": "m", "role": "assistant"}},
        {"type": "message_delta", "data": {"id": "m", "delta": "one two ", "offset": 0}},
        {"type": "message_delta", "data": {"id": "m", "delta": "three four", "offset": 8}},
        {"type": "message_end", "data": {"id": "m"}},
        {"type": "done", "data": {"stopReason": "stop"}},
    ]


async def test_text_that_comes_fast_is_written_before_its_second_is_over(world: MakeWorld) -> None:
    source = steps(
        "await metadata.emit('message_start', {'id': 'm'})",
        "for _ in range(100):",
        "    await metadata.emit('message_delta', {'id': 'm', 'delta': 'x' * 1000})",
        "await metadata.emit('message_end', {'id': 'm'})",
    )
    async with world(source, {"shower": {}}).running() as o:
        outcome = await o.inject("shower", {"text": ""}, wait=True)
        pieces = [record.event.length for record in await o.records(RunMessageDelta)]
        folded = fold(map(entry_of, await shown(o, outcome.thread_id)))
    assert (max(pieces), sum(pieces)) == (17_000, 100_000)
    assert folded["messages"][0]["content"] == "x" * 100_000


async def test_a_live_secret_and_half_a_character_never_come_through(world: MakeWorld) -> None:
    source = steps(
        "await metadata.emit('message_start', {'id': 'm'})",
        "for piece in ('my key sk-se', 'cret', '-0123', '45 \\ud83d', '\\ude00', '\\ud83d'):",
        "    await metadata.emit('message_delta', {'id': 'm', 'delta': piece})",
        "await metadata.emit('message_end', {'id': 'm'})",
        "await metadata.emit('message', {'text': 'sk-secret-012345 \\ud83d'})",
    )
    made, parts = world(source, {"shower": {}}), Speaker().parts()
    parts.redactor.add("sk-secret-012345")
    async with made.running(parts=parts) as o:
        heard: list[str] = []
        o.tenant.feed.subscribe(lambda delta: heard.append(delta.text))
        outcome = await o.inject("shower", {"text": ""}, wait=True)
        folded = fold(map(entry_of, await shown(o, outcome.thread_id)))
    assert "".join(heard) == "my key [redacted] 😀?"
    assert [message["content"] for message in folded["messages"]] == ["my key [redacted] 😀?", "[redacted] ?"]


async def test_a_handler_goes_on_while_what_it_shows_is_written_but_not_far_ahead(world: MakeWorld) -> None:
    show = "    await metadata.emit('data', {'name': 'n', 'data': number})"
    source = steps("await gate('go')", "for number in range(1000):", f"    {show}", "        TRACE.append(number)")
    disk = Disk()
    async with world(source, {"shower": {}}).running(parts=Parts(driver=disk)) as o:
        injected = await o.inject("shower", {"text": ""})
        await at_gate(o, "go")
        await o.pump.settled()
        disk.hold()
        open_gate(o, "go")
        await decided(o)
        for _ in range(100):
            await o.records(OrganismStarted)
        ahead = len(play(o)["TRACE"])
        disk.release()
        assert await o.tenant.ended(injected.thread_id, 30)
        entries = [record for record in await shown(o, injected.thread_id) if isinstance(record.event, RunData)]
    assert 0 < ahead <= MOST_AHEAD
    assert len(entries) == 1000
