"""The audit file: a line for each model call, tool call and act of a token, for the operator.

``data/audit/audit.jsonl.YYYY-MM-DD`` (of UTC) is a view of the logs of all tenants. A follower of each log writes it,
and goes on after the last line that the files hold of its tenant: no line is missing or written twice after a
crash.
It has what a model was asked only where the tenant sets ``audit_prompts``, and never a secret.
"""

from __future__ import annotations

import asyncio
import json
import mmap
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import orjson
import structlog

from organism.config.tenant import effective, readable
from organism.events import vocabulary as events
from organism.events.record import Actor, Record
from organism.log.log import EventFilter, EventLog
from organism.model.ids import session_of
from organism.model.redact import Redactor
from organism.model.times import iso
from organism.views.threads import MESSAGES
from organism.views.views import ViewStore

AUDIT: Final = "audit"
"""The directory, below the data."""
ACTS: Final = (
    *(events.MessageSent, events.MessageReplayed, events.MessageDiscarded, events.SpoofAttempt),
    *(events.ThreadKilled, events.ThreadPaused, events.ThreadResumed, events.AgentPaused, events.AgentResumed),
    *(events.OrganismPaused, events.OrganismResumed, events.OrganismReloaded),
    *(events.SessionCreated, events.SessionCompacted, events.SessionUncompacted, events.SessionDeleted),
    *(events.ApprovalResolved, events.StepResolved, events.TenantConfigChanged, events.ForeignToolsAccepted),
)
"""What tokens do. The first of them in a unit stands for the whole call."""
WANTED: Final = EventFilter(types=(*ACTS, events.StepStarted, events.ModelCalled, events.TextsEmbedded))
READ_EVENTS: Final = 1000
MOST_WAITING: Final = 1000
"""How many lines may wait for the disk; then the followers wait."""
AGAIN_SECONDS: Final = 1.0
CLOSE_SECONDS: Final = 2.0
MOST_REQUESTS: Final = 10_000
"""How many requests are remembered with their messages; others are read from the log."""
_PRIVATE_FILE: Final = 0o600
_PRIVATE_DIRECTORY: Final = 0o700
_log: Final = structlog.get_logger("organism")
_DAY_CHARS: Final = len("2026-01-15")
_APPENDING: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class AuditLines:
    """Folds one tenant's events into lines. It reads of the log what they refer to."""

    def __init__(
        self,
        tenant: str,
        log: EventLog,
        views: ViewStore,
        redactor: Redactor,
        defaults: Callable[[], Mapping[str, Any]],
    ) -> None:
        self.tenant = tenant
        self.log = log
        self._views = views
        self._redactor = redactor
        self._defaults = defaults
        self._written: dict[str, Any] = {}  # the tenant's own configuration
        self._call: tuple[int, str | None] = (0, None)  # when the last unit of a token was written, for what request
        self._asked: events.StepStarted | None = None  # the last tool call, which the message that makes it follows
        self._requests: dict[str, Actor] = {}  # who began it, by the message at the root

    async def resume(self, position: int) -> None:
        """Go on after a line of this position."""
        changes = await self.log.read(
            0, position, EventFilter(types=(events.TenantConfigChanged,)), READ_EVENTS, reverse=True
        )
        for change in reversed(changes):
            await self.take(change)
        for record in await self.log.read(position - 1, position, limit=1):
            self._begins_call(record)

    async def take(self, record: Record[Any]) -> tuple[str, bytes] | None:
        """The day and the line of an event, if it has one."""
        event = record.event
        if isinstance(event, events.TenantConfigChanged):
            written = {**self._written, **event.changes}
            self._written, _ = readable({key: value for key, value in written.items() if value is not None})
        if isinstance(event, events.StepStarted):
            self._asked = event if event.kind == "ask" and event.key else None
            return None
        if isinstance(event, events.ModelCalled):
            who = await self._root(record)
            return await self._line(record, "model_call", who, who.request_id, _model_call(event))
        if isinstance(event, events.TextsEmbedded):
            who = record.actor or Actor()
            return await self._line(record, "model_call", who, who.request_id, _embedding(event))
        if isinstance(event, events.MessageSent):
            if record.actor is not None and record.cause is None:
                self._remember(event.message, record.actor)
            asked = self._asked
            if asked is not None and event.step == (asked.message, asked.step):
                self._asked = None  # of a group's messages the first stands for all
                who = await self._root(record)
                called = {"message_id": event.message, "tool": event.to, "agent": asked.agent, "call_id": asked.key}
                return await self._line(record, "tool_call", who, who.request_id, {**called, "input": asked.input})
        if not self._begins_call(record):
            return None
        who, parent = record.actor or Actor(), getattr(event, "caller_request", None)
        named = {"request_id": who.request_id, "action": record.type, **_act(event)}
        return await self._line(record, "call", who, parent, named)

    def _begins_call(self, record: Record[Any]) -> bool:
        """Whether it is the first act of a unit that was written for a token."""
        actor = record.actor
        if actor is None or actor.principal is None or record.cause is not None or not isinstance(record.event, ACTS):
            return False
        before, self._call = self._call, (record.at, actor.request_id)
        return before != self._call

    def _remember(self, message: str, actor: Actor) -> None:
        if len(self._requests) >= MOST_REQUESTS:
            self._requests.clear()
        self._requests[message] = actor

    async def _root(self, record: Record[Any]) -> Actor:
        """Who began what led to it."""
        root = record.correlation
        if root is None:
            return Actor()
        if root not in self._requests:
            sent = await self._sent(root)
            self._remember(root, sent.actor if sent is not None and sent.actor is not None else Actor())
        return self._requests[root]

    async def _sent(self, message: str) -> Record[Any] | None:
        row = await self._views.private_row(MESSAGES, message)
        found = [] if row is None else await self.log.read(row.position - 1, row.position, limit=1)
        return found[0] if found else None

    async def _line(
        self, record: Record[Any], kind: str, who: Actor, parent: str | None, fields: Mapping[str, Any]
    ) -> tuple[str, bytes]:
        known = {
            "parent_request_id": parent,
            "principal": who.principal,
            "user": who.user,
            **_place(record.thread or ""),
            **fields,
        }
        if "message_id" in fields and effective(self._defaults(), self._written).audit_prompts:
            known["prompt"] = await self._prompt(fields["message_id"])
        at = iso(record.at)
        entry = {
            "tenant": self.tenant,
            "log": self.log.timeline,
            "position": record.position,
            "timestamp": at,
            "event": kind,
            "fields": {name: value for name, value in known.items() if value is not None},
        }
        shown = orjson.loads(self._redactor.shown(orjson.dumps(entry)))
        return at[:_DAY_CHARS], json.dumps(shown, separators=(",", ":")).encode() + b"\n"

    async def _prompt(self, message: str) -> Any:
        """What the message says; None once it was erased."""
        row = await self._views.private_row(MESSAGES, message)
        content = None if row is None else await self.log.content(row.position)
        return None if content is None else self._redactor.decoded(content[0])


def _place(stream: str) -> dict[str, str | None]:
    """The thread and the session of a record."""
    if session_of(f"{stream}.") == stream:
        return {"session_id": stream}
    return {"thread_id": stream or None, "session_id": session_of(stream)}


def _model_call(event: events.ModelCalled) -> dict[str, Any]:
    return {
        "message_id": event.message,
        "agent": event.agent,
        "model": event.model,
        "provider": event.provider,
        "input_tokens": event.input_tokens,
        "output_tokens": event.output_tokens,
        "cost_usd": event.cost_usd,
        "cost_source": event.cost_source,
        "attempts": event.attempts,
        "duration_us": event.duration,
        "prompt_digest": event.prompt or None,
        "error": event.error and event.error.code,
    }


def _embedding(event: events.TextsEmbedded) -> dict[str, Any]:
    return {
        "model": event.model,
        "provider": event.provider,
        "texts": event.texts,
        "input_tokens": event.input_tokens,
        "cost_usd": event.cost_usd,
        "cost_source": event.cost_source,
        "duration_us": event.duration,
        "error": event.error and event.error.code,
    }


def _act(event: events.Event) -> dict[str, Any]:
    """What the act concerns; never its text."""
    named = {name: getattr(event, name, None) for name in ("agent", "approval", "message", "to", "dead", "decision")}
    keys = None
    if isinstance(event, events.TenantConfigChanged | events.ForeignToolsAccepted):
        keys = sorted(event.changes if isinstance(event, events.TenantConfigChanged) else event.tools)
    return {**{_NAMES.get(name, name): value for name, value in named.items()}, "keys": keys}


_NAMES: Final = {"message": "message_id", "dead": "dead_letter"}


class AuditFiles:
    """The files, for their owner alone. Only whole lines count: what a crash has left of one is cut off."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._latest: Path | None = None

    def open(self) -> None:
        """Make the folder, and cut off what is not a whole line."""
        self._folder.mkdir(mode=_PRIVATE_DIRECTORY, parents=True, exist_ok=True)
        for path in self._paths():
            with path.open("rb+") as file:
                if (size := path.stat().st_size) and (whole := _last_line_end(file.fileno(), size)) < size:
                    file.truncate(whole)

    def last_position(self, tenant: str, timeline: str) -> int:
        """The position of the last line of the tenant's log; 0 if there is none."""
        begin = json.dumps({"tenant": tenant, "log": timeline}, separators=(",", ":"))[:-1].encode() + b',"position":'
        for path in self._paths():
            with path.open("rb") as file:
                if not path.stat().st_size:
                    continue
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as lines:
                    at = lines.rfind(b"\n" + begin) + 1  # no line has a newline in it: none can be forged
                    if at or lines[: len(begin)] == begin:
                        digits = lines[at + len(begin) : at + len(begin) + 20]
                        return int(digits.partition(b",")[0])
        return 0

    def append(self, day: str, text: bytes) -> None:
        """Write lines to the day's file, all or none. Raises ``OSError``."""
        path = self._folder / f"audit.jsonl.{day}"
        if self._latest is not None and self._latest != path:
            _sync(self._latest)  # a line in a later file says that the earlier files are complete
        self._latest = path
        with os.fdopen(os.open(path, _APPENDING, _PRIVATE_FILE), "wb", buffering=0) as file:
            before = os.fstat(file.fileno()).st_size
            written = 0
            try:
                while written < len(text):
                    written += file.write(text[written:])
            except OSError:
                file.truncate(before)
                raise

    def _paths(self) -> list[Path]:
        """The newest first."""
        return sorted(self._folder.glob("audit.jsonl.*"), reverse=True)


def _last_line_end(descriptor: int, size: int) -> int:
    with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as lines:
        return lines.rfind(b"\n", 0, size) + 1


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


class Audit:
    """Writes the lines of all tenants to the files in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._files = AuditFiles(folder)
        self._lines: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue(MOST_WAITING)
        self._writing: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Get ready to write. Raises ``OSError`` if the files cannot be written."""
        await asyncio.to_thread(self._files.open)
        self._writing = asyncio.create_task(self._write())

    async def follow(self, lines: AuditLines) -> None:
        """Write what the files lack of a tenant's lines, and what comes, until its log closes."""
        async for records in lines.log.follow(await self._resumed(lines), WANTED):
            await self._take(lines, records)

    async def catch_up(self, lines: AuditLines) -> None:
        """Write what the files lack of a tenant's lines, up to the head of its log."""
        after = await self._resumed(lines)
        while records := await lines.log.read(after, wanted=WANTED, limit=READ_EVENTS):
            after = records[-1].position
            await self._take(lines, records)
        await self._lines.join()

    async def close(self) -> None:
        """Write what waits, if the disk takes it soon; the next start writes the rest."""
        if self._writing is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self._lines.join()
            self._writing.cancel()

    async def _resumed(self, lines: AuditLines) -> int:
        after = await asyncio.to_thread(self._files.last_position, lines.tenant, lines.log.timeline)
        if after:
            await lines.resume(after)
        return after

    async def _take(self, lines: AuditLines, records: Sequence[Record[events.Event]]) -> None:
        for record in records:
            if (line := await lines.take(record)) is not None:
                await self._lines.put(line)

    async def _write(self) -> None:
        """Write what waits, at once."""
        while True:
            lines = [await self._lines.get()]
            while not self._lines.empty():
                lines.append(self._lines.get_nowait())
            for day, of_day in groupby(lines, key=lambda line: line[0]):
                await self._append(day, b"".join(line for _, line in of_day))
            for _ in lines:
                self._lines.task_done()

    async def _append(self, day: str, text: bytes) -> None:
        """Write the lines, again and again until the disk takes them."""
        is_reported = False
        while True:
            try:
                return await asyncio.to_thread(self._files.append, day, text)
            except OSError as error:
                if not is_reported:
                    _log.error("audit_not_written", error=repr(error), remedy="free the disk; the lines wait")
                is_reported = True
                await asyncio.sleep(AGAIN_SECONDS)
