"""What the handling of a session's turn may ask for: the history before it, and what came meanwhile to steer it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import orjson

from organism.events import vocabulary as events
from organism.model.ids import session_of
from organism.model.thread import Message, Step
from organism.pump.decide.decision import Decision
from organism.pump.history import Histories
from organism.pump.run.handling import CalledStep, Handling, step_digest
from organism.pump.state import FoldedState
from organism.views.sessions import SESSION_MESSAGES

DIGEST: Final = step_digest("steer", "", b"")


async def history(handling: Handling, histories: Histories) -> Sequence[Mapping[str, Any]]:
    """See ``HandlerMetadata.history``."""
    session_id, writer = session(handling.message), handling.writer
    begun = await writer.views.private_row(SESSION_MESSAGES, handling.message.id) if session_id is not None else None
    if session_id is None or begun is None:
        return ()
    return await histories.said_before(writer.log, writer.views, session_id, begun.position)


async def steered(handling: Handling, called: CalledStep, *, has_passed: bool) -> Sequence[Any]:
    """See ``HandlerMetadata.steered``. A repeated run gets what was recorded, or nothing."""
    session_id = session(handling.message)
    if session_id is None:
        return ()
    step = handling.looked_up(called)
    if step is None:
        folded = handling.writer.state.folded
        if has_passed or not _steering(folded, session_id):
            return ()
        await handling.wait_while_paused()
        await handling.writer.settled()  # they are read from the log
        waiting = _steering(folded, session_id)
        if not waiting:
            return ()
        step = await _append(handling, called, session_id, waiting)
    return await handling.given(step, partial(_payloads, handling))


async def _payloads(handling: Handling, step: Step) -> Sequence[Any]:
    return [await handling.payload_at(position) for position in await handling.result(step)]


def session(message: Message) -> str | None:
    """The session of which the message is the turn that runs; None for any other message, also in its thread."""
    thread = message.thread
    return session_of(thread.id) if thread.turn is not None and thread.turn.message == message.id else None


def _steering(folded: FoldedState, session_id: str) -> list[Message]:
    """The messages of the waiting turns that are meant for the running one, in order."""
    turns = [folded.threads[thread_id] for thread_id in folded.sessions[session_id].turns[1:]]
    wanted = [each.turn.message for each in turns if each.turn and each.turn.on_busy == "steer" and not each.paused]
    return [folded.messages[message_id] for message_id in wanted]


async def _append(handling: Handling, called: CalledStep, session_id: str, waiting: Sequence[Message]) -> Step:
    """Take in the messages and end their turns, in one unit. Its step refers to where the messages lie."""
    number, _ = handling.find(called)
    positions = orjson.dumps([each.position for each in waiting])
    decision = handling.decide()
    for each in waiting:
        _take_in(decision, session_id, handling.message, each)
    step = handling.add_record(decision, number, called, positions)
    await handling.writer.commit(decision)
    return step


def _take_in(decision: Decision, session_id: str, running: Message, waiting: Message) -> None:
    thread = waiting.thread
    decision.expect[thread.id] = thread.head
    decision.add_to_session(session_id, events.TurnAppended(running.thread.id, waiting.id, thread.id))
    decision.handled(waiting, "appended")
    decision.end_thread(thread, "appended")
