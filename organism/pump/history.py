"""The history of a session: rows say which messages there are and where, the log has what they say.

A turn's entries become messages by the fold of its answer. A turn that died is shown as far as it came: its last
message says so (``stop_reason``), and a tool call without a result gets an error as its result.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson
from msgspec import field

from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Record
from organism.log.log import EventFilter, EventLog
from organism.model.completion import WITHHELD, ChatMessage
from organism.model.ids import session_of
from organism.pump.prompt import PromptMessage
from organism.views.run import Fold, Message, entry_of
from organism.views.sessions import MessagePlace, SessionRow
from organism.views.views import Query, ViewStore, Where, rows_of

PAGE_ROWS: Final = 500
PAGE_EVENTS: Final = 2000
MOST_BYTES: Final = 16_000_000
"""So much of the histories of a tenant is in memory."""
MESSAGE_BYTES: Final = 1000
"""What a message takes in memory besides its text."""
PROMPT_MESSAGE_BYTES: Final = 600
"""What a message of a prompt takes besides its text, which is there twice."""
READ: Final = (
    events.MessageSent,
    events.MessageHandled,
    events.MessageDead,
    events.MessageDropped,
    events.RunMessage,
    events.RunMessageStart,
    events.RunMessageDelta,
    events.RunMessageEnd,
    events.RunToolCall,
    events.RunToolResult,
    events.RunDone,
)
NO_RESULT: Final = "The turn ended before this call had a result."


async def said_before(log: EventLog, views: ViewStore, session_id: str, position: int) -> list[Message]:
    """All messages of the session before the position, oldest first."""
    return turns_in_order(await _between(log, views, session_id, 0, position))


async def _between(log: EventLog, views: ViewStore, session_id: str, begin: int, end: int) -> list[Message]:
    """The messages from one position up to another one."""
    where = (Where("session_id", "=", session_id), Where("position", ">=", begin), Where("position", "<", end))
    found: list[Message] = []
    after = None
    while True:
        page = await views.rows("session_messages", Query(where, "position", limit=PAGE_ROWS, after=after))
        found += await messages(log, rows_of(page, MessagePlace))
        if page.count < PAGE_ROWS:
            return found
        after = page.last


class Known(NamedTuple):
    """The messages of a session up to a position, and those of its last prompt by their text.

    Both with about how much memory they take.
    """

    end: int = 0
    messages: Sequence[Message] = ()
    messages_bytes: int = 0
    prompt: Mapping[str, PromptMessage] = {}
    prompt_bytes: int = 0

    @property
    def size_bytes(self) -> int:
        return self.messages_bytes + self.prompt_bytes


class Histories(Entity):
    """The messages of recently read sessions, and what their last prompts were made of.

    So a turn reads, and writes as JSON, only what the one before it has added.
    """

    _known: OrderedDict[str, Known] = field(default_factory=OrderedDict)
    _size_bytes: int = 0

    async def said_before(self, log: EventLog, views: ViewStore, session_id: str, position: int) -> list[Message]:
        """All messages of the session before the position, where a turn begins: nothing before it changes any more."""
        known = self._known.get(session_id, Known())
        if known.end < position:
            more = await _between(log, views, session_id, known.end, position)
            size_bytes = known.messages_bytes + sum(MESSAGE_BYTES + len(message["content"]) for message in more)
            known = known._replace(end=position, messages=(*known.messages, *more), messages_bytes=size_bytes)
            self._remember(session_id, known)
        return turns_in_order(known.messages)

    def prompt(self, session_id: str | None, messages: Sequence[ChatMessage]) -> list[PromptMessage]:
        """The messages of a call; those of texts alone that the session's last call had are the same objects.

        Raises ``TypeError`` for what is no JSON.
        """
        known = self._known.get(session_id or "", Known())
        prompt: list[PromptMessage] = []
        of_texts: dict[str, PromptMessage] = {}
        for message in messages:
            content = message.get("content")
            found = known.prompt.get(content) if type(content) is str else None
            if found is None or found.given != message:
                found = PromptMessage.of(message)
            if found.is_text:
                of_texts[found.given["content"]] = found
            prompt.append(found)
        if session_id is not None and session_id in self._known:
            size_bytes = sum(PROMPT_MESSAGE_BYTES + 2 * len(each.json) for each in of_texts.values())
            self._remember(session_id, known._replace(prompt=of_texts, prompt_bytes=size_bytes))
        return prompt

    def _remember(self, session_id: str, known: Known) -> None:
        """Forget others if there is no room; a prompt, which can be written again, for the messages of its session."""
        if known.size_bytes > MOST_BYTES:
            known = known._replace(prompt={}, prompt_bytes=0)
        self.forget(session_id)
        self._known[session_id] = known
        self._size_bytes += known.size_bytes
        while self._size_bytes > MOST_BYTES:
            self.forget(next(iter(self._known)))

    def forget(self, session_id: str) -> None:
        """Forget a session that was deleted, or to make room for others."""
        self._size_bytes -= self._known.pop(session_id, Known()).size_bytes


def turns_in_order(found: Sequence[Message]) -> list[Message]:
    """The messages in order: a turn killed while it waited follows the turn that it waited for."""
    ordered: list[Message] = []
    late: list[Message] = []
    for message in found:
        if late and message["thread_id"] != ordered[-1]["thread_id"]:
            ordered += late
            late = []
        is_late = ordered and message["role"] == "user" and message.get("stop_reason") == "killed"
        (late if is_late else ordered).append(message)
    return ordered + late


async def messages(log: EventLog, rows: Sequence[MessagePlace], session: SessionRow | None = None) -> list[Message]:
    """The messages of rows of ``session_messages``, which follow each other in one session.

    Each is ``id``, ``role``, ``content``, ``created_at``, ``compacted_at``, ``thread_id``; of a tool ``tool_call_id``
    and ``tool_name`` and ``input`` (a call) or ``is_error`` (its result). ``session`` is the session's private row,
    without which no message counts as compacted.
    """
    turns = {row.thread_id: TurnMessages() for row in rows if not _is_kept(row)}
    for record in await _read(log, 0, None, EventFilter(tuple(turns), READ, content=True)) if turns else ():
        turns[record.thread or ""].take(record)
    kept = await _kept(log, [row for row in rows if _is_kept(row)])
    for turn in turns.values():
        turn.close()
    found: list[Message] = []
    for row in rows:
        of_turn = turns.get(row.thread_id)
        said = kept.get(row.position, ()) if of_turn is None else of_turn.said(row)
        compacted = session is not None and row.position < session.private.compacted_before
        at = session.public.archived_at if session is not None and compacted else None
        named = {"created_at": row.created_at, "compacted_at": at, "thread_id": row.thread_id}
        for number, message in enumerate(said):
            message_id = row.id if number == 0 else f"{row.id}:{number}"
            found.append({"id": message_id, **named, **message})
    return found


def _is_kept(row: MessagePlace) -> bool:
    """Whether the session began with the message."""
    return session_of(row.thread_id) is None


async def _read(log: EventLog, after: int, until: int | None, wanted: EventFilter) -> list[Record[Any]]:
    found: list[Record[Any]] = []
    while page := await log.read(after, until, wanted, PAGE_EVENTS):
        found += page
        after = page[-1].position
        if len(page) < PAGE_EVENTS:
            break
    return found


async def _kept(log: EventLog, rows: Sequence[MessagePlace]) -> Mapping[int, Sequence[Message]]:
    """The messages that a successor began with, by position."""
    if not rows:
        return {}
    wanted = EventFilter((rows[0].thread_id,), (events.MessageKept,), content=True)
    records = await _read(log, rows[0].position - 1, rows[-1].position, wanted)
    return {record.position: (_copy_of(record),) for record in records}


def _copy_of(record: Record[events.MessageKept]) -> Message:
    content = record.content
    if content is None or content.erased:
        return {"role": record.event.role, "content": "", "erased": True}
    copied: Message = orjson.loads(content.json)
    return copied


class TurnMessages(Entity):
    """The messages of a turn."""

    user: Message | None = None
    _message: str = ""
    _run: Fold = field(default_factory=Fold)
    _places: list[int] = field(default_factory=list)  # where each of the run's messages began
    _by_place: dict[int, list[Message]] = field(default_factory=dict)
    _end: str = ""

    def take(self, record: Record[events.Event]) -> None:
        """Take the next event of its thread."""
        event = record.event
        if isinstance(event, events.MessageSent):
            if event.message == record.correlation:
                self._message, self.user = event.message, _asked(record, event)
        elif isinstance(event, events.RunEvent):
            if event.message == self._message:
                self._run.add(entry_of(record))  # type: ignore[arg-type]  # of the event's own class
                self._places += [record.position] * (len(self._run.messages) - len(self._places))
        elif (
            isinstance(event, events.MessageHandled | events.MessageDead | events.MessageDropped)
            and event.message == self._message
        ):
            is_done = isinstance(event, events.MessageHandled) and event.outcome != "killed"
            self._end = "done" if is_done else "error" if isinstance(event, events.MessageDead) else "killed"

    def close(self) -> None:
        """There are no more: complete what a dead turn left open."""
        run = self._run.result()
        said = run["messages"]
        calls: dict[str, Message] = {}
        for place, message in zip(self._places, said, strict=True):
            if message["role"] != "tool":
                self._answer(calls)
            elif "is_error" in message:
                calls.pop(message["tool_call_id"], None)
            else:
                calls[message["tool_call_id"]] = message
            self._by_place[place] = [message]
        if self._end:
            self._answer(calls)
        if self._end in {"killed", "error"} and (last := self._last()) is not None:
            last["stop_reason"] = self._end
        elif run["stop_reason"] in WITHHELD and (last := self._last()) is not None:
            last["stop_reason"] = run["stop_reason"]

    def said(self, row: MessagePlace) -> Sequence[Message]:
        """The messages that begin where the row is."""
        if row.role == "user":
            return (self.user,) if self.user is not None else ()
        return self._by_place.get(row.position, ())

    def _answer(self, calls: dict[str, Message]) -> None:
        """Close the calls that have no result and will have none, behind the last message so far."""
        for call_id in calls:
            result = {"role": "tool", "content": NO_RESULT, "tool_call_id": call_id, "is_error": True}
            next(reversed(self._by_place.values())).append(result)
        calls.clear()

    def _last(self) -> Message | None:
        return next(reversed(self._by_place.values()))[-1] if self._by_place else self.user


def _asked(record: Record[Any], sent: events.MessageSent) -> Message:
    """The user's message: a prompt's text, or the payload's JSON."""
    content = record.content
    if content is None or content.erased:
        return {"role": "user", "content": "", "erased": True}
    text = orjson.loads(content.json)["message"] if sent.type == "Prompt" else content.json.decode()
    return {"role": "user", "content": text}
