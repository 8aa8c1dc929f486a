"""What a handling shows while it runs: entries, each once across attempts; text, published at once, logged gathered."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, Protocol

import orjson
from msgspec import field

from organism.config.foreign_code import run_json
from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Content, Record
from organism.model.completion import whole_characters
from organism.model.redact import Redactor
from organism.model.run import BLOCKS, faults
from organism.model.thread import Message
from organism.pump.decide.decision import Decision
from organism.pump.run.feed import Delta, Feed
from organism.pump.writer import Writer

WRITE_AFTER_SECONDS: Final = 1.0
MOST_CHARACTERS: Final = 16_384
"""More text than this is written before its second is over, so that memory is bounded."""
MOST_AHEAD: Final = 32
"""How many entries of a handling may be on their way to the disk."""
_STARTS: Final[Mapping[str, type[events.RunBlockStart]]] = {
    "message": events.RunMessageStart,
    "thought": events.RunThoughtStart,
}
_DELTAS: Final[Mapping[str, type[events.RunDelta]]] = {
    "message": events.RunMessageDelta,
    "thought": events.RunThoughtDelta,
}


class SecretFilter(Entity):
    """Passes text on without live secrets and halves of characters (S30): text that may become one is held back."""

    _redactor: Redactor
    _waiting: str = ""

    def take(self, text: str) -> str:
        """Add a piece; gives what may be shown now."""
        shown, self._waiting = self._redactor.split(joined(self._waiting + text))
        return shown

    def rest(self) -> str:
        """The text ends: gives what was held back, as it may be shown."""
        rest, self._waiting = self._waiting, ""
        return self._redactor.masked(rest.encode("utf-8", "replace").decode())


def joined(text: str) -> str:
    """The text with the halves of its characters joined; a half at its end may find the other one yet."""
    half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
    return whole_characters(text.removesuffix(half)) + half


class Block(Entity):
    """A message or thought that is shown while its text arrives."""

    _writer: Writer
    _feed: Feed
    _message: Message
    _filter: SecretFilter
    kind: str
    id: str
    start: int = 0
    length: int = 0  # its characters so far
    appended: int = 0  # how many of them went to the log
    is_over: bool = False  # it has ended, or was cut
    _known: int = 0
    _text: str = ""
    _begun: Record[events.RunEvent] | None = None
    _is_due: bool = False

    def begin(self, decision: Decision, content: Content | None = None) -> None:
        """Begin it with this decision; call ``on_disk`` once that is on disk."""
        shown = self._message.shown
        again = shown is not None and f"{self.kind} {self.id}" in shown.open
        self._begun = self._add(decision, _STARTS[self.kind](*self._named(), again=again), content)

    def on_disk(self, unit: Decision) -> None:
        """Its start is in the log: from here on its text is published."""
        if self.is_over or self._begun is None or unit.failed is not None:
            return
        self.start = self._begun.position
        self._feed.begin(self, self.unlogged)
        if (unlogged := self.unlogged()).text:
            self._feed.publish(unlogged)

    def add(self, text: str) -> None:
        """The next piece of its text."""
        self._take(self._filter.take(text))

    def _take(self, text: str) -> None:
        if not text:
            return
        offset = self.length
        self._text += text
        self.length += len(text)
        if self.start:
            self._feed.publish(self._delta(offset, text))
        if self.length - self.appended >= MOST_CHARACTERS:
            self._append()
        elif not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_later(WRITE_AFTER_SECONDS, self._append)

    def _append(self) -> None:
        """Write what was gathered: a second is over, or there is much of it."""
        self._is_due = False
        if self.is_over or self.appended == self.length:
            return
        decision = Decision.on(self._writer.state, self._message.thread, self._message)
        self._write(decision)
        self._writer.write(decision, partial(self._on_appended, self.appended))

    def _on_appended(self, upto: int, unit: Decision) -> None:
        if unit.failed is None:
            self._text = self._text[upto - self._known :]
            self._known = upto

    def _write(self, decision: Decision) -> None:
        if self.appended == self.length:
            return
        text = self._text[self.appended - self.length :]
        entry = {"id": self.id, "delta": text, "offset": self.appended}
        content = Content(self._message.thread.owner, orjson.dumps(entry))
        self._add(decision, _DELTAS[self.kind](*self._named(), offset=self.appended, length=len(text)), content)
        self.appended = self.length

    def end(self, decision: Decision, content: Content | None = None) -> None:
        """End it."""
        self.cut(decision)
        self._add(decision, events.RUN_ENTRIES[f"{self.kind}_end"](*self._named()), content)

    def cut(self, decision: Decision) -> None:
        """Write what there is and stop publishing. The block may begin again; else it ends with the run."""
        self._take(self._filter.rest())
        self._write(decision)
        self.drop()

    def drop(self) -> None:
        """Publish nothing more of it."""
        self.is_over = True
        self._feed.end(self)

    def unlogged(self) -> Delta:
        """The text of it that is not known to be in the log."""
        return self._delta(self._known, self._text)

    def _delta(self, offset: int, text: str) -> Delta:
        message = self._message
        return Delta(message.thread.id, message.id, message.to, self.kind, self.id, self.start, offset, text)

    def _named(self) -> tuple[str, str, str]:
        return self._message.id, self._message.to, self.id

    def _add(self, decision: Decision, event: events.RunEvent, content: Content | None) -> Record[events.RunEvent]:
        return decision.add(event, content, self._message.thread.id)


class OpenCall(Protocol):
    """A model's call whose answer may still come."""

    def stop(self) -> None:
        """It has no effect any more."""

    def cancel(self, decision: Decision) -> None:
        """The handler wants no answer any more: show no more of it, and count its reservation as spent."""


class RunStream(Entity):
    """What one attempt at a handling shows."""

    _writer: Writer
    _feed: Feed
    _message: Message
    _most_bytes: int
    blocks: dict[tuple[str, str], Block | None] = field(
        default_factory=dict
    )  # the open ones; None if the log holds it whole
    calls: dict[int, OpenCall] = field(default_factory=dict)  # whose answers may still come, by their step
    stop_reason: str = ""  # why the handler says that the run is over
    _used: Counter[str] = field(default_factory=Counter)
    _ahead: int = 0
    is_closed: bool = False

    async def emit(self, kind: str, data: Mapping[str, Any]) -> None:
        """See ``HandlerMetadata.emit``."""
        wrong = faults(kind, data)
        if wrong:
            raise ValueError(wrong)
        body = self._json(kind, data)
        if self.stop_reason:
            raise ValueError(f"The run is over: `done` was shown already, and {kind} comes after it.")
        block, _, part = kind.partition("_")
        if kind == "done":
            self.stop_reason = str.__str__(data["stopReason"])
        elif block in BLOCKS and part == "start":
            await self._start(block, data)
        elif block in BLOCKS and part == "delta":
            await self._delta(block, data)
        elif block in BLOCKS and part == "end":
            await self._end(block, data)
        elif not self._is_logged(f"{kind} {(entry_id := _id_of(data)) or ''}"):
            message = self._message
            decision = self.decide()
            event = events.RUN_ENTRIES[kind](message.id, message.to, entry_id)
            decision.add(event, Content(message.thread.owner, body), message.thread.id)
            await self._write(decision)

    def _json(self, kind: str, data: Mapping[str, Any]) -> bytes:
        """The data as JSON. Raises ``ValueError`` for what cannot be, or is too long."""
        try:
            body = run_json(dict(data))
        except (TypeError, ValueError) as error:
            raise ValueError(f"The data of {kind} cannot be written as JSON: {error}.") from error
        if len(body) > self._most_bytes:
            raise ValueError(f"The data of {kind} has {len(body)} bytes as JSON; at most {self._most_bytes} are taken.")
        return body

    async def _start(self, kind: str, data: Mapping[str, Any]) -> None:
        block_id = str.__str__(data["id"])
        if self._is_open(kind, block_id):
            raise ValueError(f"The {kind} {block_id!r} has begun already: show {kind}_end before it begins again.")
        if self._is_whole(kind, block_id):
            self.blocks[kind, block_id] = None
            return
        decision = self.decide()
        block = self.begin(kind, block_id, decision, self._more(data))
        block.on_disk(await self._writer.commit(decision))

    async def _delta(self, kind: str, data: Mapping[str, Any]) -> None:
        block = self._open_block(kind, str.__str__(data["id"]))
        if block is None:
            return
        appended = block.appended
        block.add(data["delta"])
        if block.appended > appended:  # it arrives faster than the disk takes it
            await self._writer.settled()

    async def _end(self, kind: str, data: Mapping[str, Any]) -> None:
        block_id = str.__str__(data["id"])
        block = self._open_block(kind, block_id)
        if block is None:
            self.passed(kind, block_id)
            return
        decision = self.decide()
        self.end(block, decision, self._more(data))
        await self._write(decision)

    async def _write(self, decision: Decision) -> None:
        """Write without waiting, since nothing that the handler does next depends on it; but not too far ahead."""
        self._writer.write(decision)
        self._ahead += 1
        if self._ahead >= MOST_AHEAD:
            await self._writer.settled()
            self._ahead = 0

    def decide(self) -> Decision:
        """Begin a decision of the handling. Raises ``CancelledError`` once it is over."""
        if self.is_closed:
            raise asyncio.CancelledError
        return Decision.on(self._writer.state, self._message.thread, self._message)

    def _open_block(self, kind: str, block_id: str) -> Block | None:
        """The block; None if it is complete in the log. Raises ``ValueError``."""
        if not self._is_open(kind, block_id):
            raise ValueError(f"No {kind} {block_id!r} has begun: show {kind}_start first.")
        return self.blocks[kind, block_id]

    def _is_open(self, kind: str, block_id: str) -> bool:
        """Whether such a block has begun and not ended; one that was cut may begin again."""
        if (kind, block_id) not in self.blocks:
            return False
        block = self.blocks[kind, block_id]
        return block is None or not block.is_over

    def _more(self, data: Mapping[str, Any]) -> Content | None:
        """The content of a start or an end that has more than its id."""
        return Content(self._message.thread.owner, run_json(dict(data))) if len(data) > 1 else None

    def _is_logged(self, name: str) -> bool:
        """Whether this entry is in the log already; counts it as shown."""
        shown = self._message.shown
        self._used[name] += 1
        return shown is not None and self._used[name] <= shown.counts.get(name, 0)

    def _is_whole(self, kind: str, block_id: str) -> bool:
        """Whether the next block of this name is complete in the log."""
        shown = self._message.shown
        name = f"{kind}_end {block_id}"
        return shown is not None and self._used[name] < shown.counts.get(name, 0)

    def passed(self, kind: str, block_id: str) -> None:
        """A block that is in the log, or will be with this decision, is over."""
        self.blocks.pop((kind, block_id), None)
        self._used[f"{kind}_end {block_id}"] += 1

    def require_free(self, block_id: str) -> None:
        """Raise ``ValueError`` if a model's answer cannot be shown under this id."""
        if self.stop_reason:
            raise ValueError(f"The run is over: `done` was shown already, and {block_id!r} comes after it.")
        if self._is_open("message", block_id):
            raise ValueError(f"The message {block_id!r} has begun already: give each its own `block`.")

    def begin(self, kind: str, block_id: str, decision: Decision, content: Content | None = None) -> Block:
        """Begin a block with the decision."""
        secrets = SecretFilter(self._feed.redactor)
        block = self.blocks[kind, block_id] = Block(self._writer, self._feed, self._message, secrets, kind, block_id)
        block.begin(decision, content)
        return block

    def end(self, block: Block, decision: Decision, content: Content | None = None) -> None:
        """End a block with the decision."""
        block.end(decision, content)
        self.passed(block.kind, block.id)

    def cut(self, decision: Decision) -> str:
        """The attempt is over: write what was gathered. Gives the handler's own reason why the run is over, if any."""
        for block in self.blocks.values():
            if block is not None:
                block.cut(decision)
        return self.stop_reason

    def close(self) -> None:
        """The attempt is over: publish nothing more and stop its model calls."""
        self.is_closed = True
        for call in self.calls.values():
            call.stop()
        for block in self.blocks.values():
            if block is not None:
                block.drop()


def _id_of(data: Mapping[str, Any]) -> str | None:
    """The id of an entry that needs none; anything but a text is no id."""
    found = data.get("id")
    return str.__str__(found) if isinstance(found, str) else None
