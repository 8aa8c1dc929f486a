"""Runs: what a handling shows of itself to people, as the entries of its run.

``done`` is the last entry of every run and only there: it lies in the unit that ends the message, whatever ended it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from organism.model.events import Content
from organism.model.run import BLOCKS, faults
from organism.model.thread import Message
from organism.model.visible import visible
from organism.pump import spend
from organism.pump.block import Block
from organism.pump.handling import Run
from organism.pump.story import Story
from organism.pump.unit import Decision
from organism.pump.wording import json_of

PAYLOADS_AN_ENTRY: Final = 4
"""So many times ``limits.max_payload_bytes`` an entry may have: a payload that is written out as a text grows."""

MOST_AHEAD: Final = 32
"""So many entries of a handling may be on their way to the disk."""


def story_of(run: Run) -> Story:
    """What the handling has shown, from here on."""
    if run.story is None:
        run.story = Story(run)
    return run.story


def hold_free(run: Run, block_id: str | None) -> None:
    """Raise ``ValueError`` if a model's answer cannot be shown under this id."""
    story = run.story
    if story is None or block_id is None:
        return
    if story.reason:
        raise ValueError(f"The run is over: `done` was shown already, and {block_id!r} comes after it.")
    if _is_open(story, "message", block_id):
        raise ValueError(f"The message {block_id!r} has begun already: give each its own `block`.")


async def emit(run: Run, kind: str, data: Mapping[str, Any]) -> None:
    """See ``HandlerMetadata.emit``."""
    wrong = faults(kind, data)
    if wrong:
        raise ValueError(wrong)
    body = _written(run, kind, data)
    story = story_of(run)
    if story.reason:
        raise ValueError(f"The run is over: `done` was shown already, and {kind} comes after it.")
    block, _, part = kind.partition("_")
    if kind == "done":
        story.reason = data["stopReason"]
    elif block in BLOCKS and part:
        await _PARTS[part](run, story, block, data)
    elif not story.is_told(f"{kind} {data.get('id', '')}"):
        message = run.message
        decision = run.decide()
        said = {"message": message.id, "agent": message.to}
        if "id" in data:
            said["id"] = data["id"]
        decision.add(f"run_{kind}", said, Content(message.thread.id, body), message.thread.id)
        await _show(run, story, decision)


async def _show(run: Run, story: Story, decision: Decision) -> None:
    """Write what is shown. Nothing that the handler does next rests on it, so it goes on; but not far ahead."""
    run.pump.write(decision)
    story.ahead += 1
    if story.ahead >= MOST_AHEAD:
        await run.pump.settled()
        story.ahead = 0


def _written(run: Run, kind: str, data: Mapping[str, Any]) -> bytes:
    """The data as JSON. Raises ``ValueError`` for what cannot be, or is too long."""
    try:
        body = written(dict(data))
    except (TypeError, ValueError) as error:
        raise ValueError(f"The data of {kind} cannot be written as JSON: {error}.") from error
    most = PAYLOADS_AN_ENTRY * run.rules.limits.max_payload_bytes
    if len(body) > most:
        raise ValueError(f"The data of {kind} has {len(body)} bytes as JSON; at most {most} are taken.")
    return body


def written(value: Any) -> bytes:
    """JSON of what a model or a handler said: halves of characters, which no UTF-8 holds, become question marks."""
    try:
        return json_of(value)
    except TypeError:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


async def _start(run: Run, story: Story, kind: str, data: Mapping[str, Any]) -> None:
    block_id: str = data["id"]
    if _is_open(story, kind, block_id):
        raise ValueError(f"The {kind} {block_id!r} has begun already: show {kind}_end before it begins again.")
    if story.is_whole(kind, block_id):
        story.blocks[kind, block_id] = None
        return
    decision = run.decide()
    block = story.begin(kind, block_id, decision, _more(run, data))
    block.on_disk(await run.pump.commit(decision))


async def _delta(run: Run, story: Story, kind: str, data: Mapping[str, Any]) -> None:
    block = _open_block(story, kind, data["id"])
    if block is None:
        return
    appended = block.appended
    block.add(data["delta"])
    if block.appended > appended:  # it comes faster than the disk may take it
        await run.pump.settled()


async def _end(run: Run, story: Story, kind: str, data: Mapping[str, Any]) -> None:
    block = _open_block(story, kind, data["id"])
    if block is None:
        story.passed(kind, data["id"])
        return
    decision = run.decide()
    story.end(block, decision, _more(run, data))
    await _show(run, story, decision)


def _open_block(story: Story, kind: str, block_id: str) -> Block | None:
    """The block; None if the log holds it whole. Raises ``ValueError``."""
    if not _is_open(story, kind, block_id):
        raise ValueError(f"No {kind} {block_id!r} has begun: show {kind}_start first.")
    return story.blocks[kind, block_id]


def _is_open(story: Story, kind: str, block_id: str) -> bool:
    """Whether such a block has begun and not ended; one that was cut may begin again."""
    if (kind, block_id) not in story.blocks:
        return False
    block = story.blocks[kind, block_id]
    return block is None or not block.is_over


def _more(run: Run, data: Mapping[str, Any]) -> Content | None:
    """What a start or an end says besides its id."""
    return Content(run.message.thread.id, written(dict(data))) if len(data) > 1 else None


_PARTS: Final[Mapping[str, Callable[[Run, Story, str, Mapping[str, Any]], Coroutine[Any, Any, None]]]] = {
    "start": _start,
    "delta": _delta,
    "end": _end,
}


def show_request(decision: Decision, message: Message, arguments: Any, why: str) -> None:
    """The run that made this call shows that a person is asked about it."""
    called = {"id": _call_id(message), "name": message.to, "input": visible(arguments)}
    payload = {"toolName": message.to, "toolCall": called, **({"why": why} if why else {})}
    _show_to_caller(decision, message, "interaction_request", {"kind": "approval", "payload": payload})


def show_response(decision: Decision, message: Message, said: str) -> None:
    """The run that made this call shows what the person said of it."""
    _show_to_caller(decision, message, "interaction_response", {"decision": said})


def _call_id(message: Message) -> str:
    return message.step.key if message.step is not None else ""


def _show_to_caller(decision: Decision, message: Message, kind: str, data: dict[str, Any]) -> None:
    """An entry of the run whose call the message is, under the call's id, if that run shows the call and goes on."""
    step, call_id = message.step, _call_id(message)
    if step is None or not call_id or step.message.id not in decision.state.routing.messages:
        return
    said = {"message": step.message.id, "agent": step.message.to, "id": call_id}
    thread_id = step.message.thread.id
    decision.add(f"run_{kind}", said, Content(thread_id, written({"id": call_id, **data})), thread_id)


def finish(decision: Decision, run: Run) -> None:
    """The handler gave its answer: its run is over, for the reason that it gave."""
    story = run.story
    if story is not None and story.calls:
        spend.settle_all_lost(decision, run.message)
    end(decision, run.message, story.reason if story is not None and story.reason else "stop")


def cut(decision: Decision, message: Message) -> None:
    """An attempt is over, and another one follows: it goes on with the run."""
    spend.settle_all_lost(decision, message)
    if message.handling is not None and message.handling.story is not None:
        message.handling.story.cut(decision)


def lose(decision: Decision, message: Message, reason: str) -> None:
    """A handling ends that gave no answer: calls under way are lost, what was shown stays, and its run is over."""
    cut(decision, message)
    end(decision, message, reason)


def end(decision: Decision, message: Message, reason: str) -> None:
    """The run is over, if there is one: its blocks end, and ``done`` is its last entry."""
    story: Story | None = message.handling.story if message.handling is not None else None
    if story is not None:
        story.cut(decision)
    if message.shown is None and (story is None or not story.reason):
        return
    said = {"message": message.id, "agent": message.to}
    for name in tuple(message.shown.open) if message.shown is not None else ():
        kind, _, block_id = name.partition(" ")
        decision.add(f"run_{kind}_end", {**said, "id": block_id}, None, message.thread.id)
    decision.add("run_done", {**said, "stopReason": reason}, None, message.thread.id)
