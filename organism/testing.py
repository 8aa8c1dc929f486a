"""A whole organism in a test, in memory or on disk, with a clock and chance that the test may set.

async with running("organism.yaml") as o:
    outcome = await o.inject("greeter", {"name": "Dan"}, wait=True)
    assert outcome.replies[-1]["message"] == "HELLO, DAN!"

A model of organism.yaml with ``provider: scripted`` answers from a YAML file (docs/agents.md); ``Scripted`` is that
model for code that asks one directly, made of ``Answer``s or by ``Scripted.read``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, overload

import orjson

from organism import bootstrap
from organism.agents.providers.scripted import (
    Answer,
    Scripted,
    ScriptedCall,
    ScriptedFault,
    ScriptedUsage,
    Text,
    When,
)
from organism.bootstrap import Organism, Parts
from organism.events import vocabulary as events
from organism.events.record import Record
from organism.log.log import EventFilter, EventLog
from organism.model.commands import Command, CommandAnswer, Inject, Injected
from organism.model.ids import CONSOLE, DEFAULT_TENANT
from organism.pump.pump import Pump
from organism.tenants import Tenant
from organism.views.views import Query, ViewStore, Where, all_rows

__all__ = (
    "Answer",
    "Outcome",
    "Running",
    "Scripted",
    "ScriptedCall",
    "ScriptedFault",
    "ScriptedUsage",
    "Text",
    "When",
    "running",
)

E = TypeVar("E", bound=events.Event)


@dataclass(frozen=True, slots=True)
class Outcome:
    """An accepted injection; with ``wait``, also its thread as the API shows it, and the replies to the console."""

    thread_id: str
    message_id: str
    position: int
    thread: dict[str, Any] | None = None
    replies: tuple[Any, ...] = ()


class Running:
    """A running organism. ``tenant`` is the default one."""

    def __init__(self, organism: Organism) -> None:
        self.organism = organism
        self.crashed = False

    @property
    def tenant(self) -> Tenant:
        """The default tenant."""
        return self.organism.tenants[DEFAULT_TENANT]

    @property
    def log(self) -> EventLog:
        """Its log."""
        return self.tenant.log

    @property
    def views(self) -> ViewStore:
        """Its read models."""
        return self.tenant.views

    @property
    def pump(self) -> Pump:
        """Its pump."""
        return self.tenant.pump

    async def do(self, command: Command) -> CommandAnswer:
        """Carry out a command."""
        return await self.tenant.do(command)

    async def inject(
        self, to: str, json: Any, *, thread_id: str | None = None, wait: bool = False, seconds: float = 30
    ) -> Outcome:
        """Inject a payload; with ``wait`` until its thread has ended. Raises ``TimeoutError`` if it has not by then."""
        done = await self.tenant.do(Inject(to=to, json=json, thread_id=thread_id))
        assert isinstance(done, Injected)  # noqa: S101 - an Inject is answered by nothing else; narrows the type
        if not wait:
            return Outcome(done.thread_id, done.message_id, done.position)
        if not await self.tenant.ended(done.thread_id, seconds):
            raise TimeoutError(f"Thread {done.thread_id} is still active after {seconds:g} s.")
        return Outcome(
            done.thread_id,
            done.message_id,
            done.position,
            await self.thread(done.thread_id),
            await self.replies(done.thread_id),
        )

    async def crash(self) -> None:
        """End this life as ``kill -9`` would, as far as one process can: nothing more is written."""
        self.crashed = True
        await self.tenant.crash()

    async def thread(self, thread_id: str) -> dict[str, Any]:
        """A thread as the API shows it."""
        row = await self.views.row("threads", thread_id)
        found: dict[str, Any] = orjson.loads(row) if row is not None else {}
        return found

    async def replies(self, thread_id: str) -> tuple[Any, ...]:
        """The payloads that the thread has sent to the console, oldest first."""
        where = (Where("thread_id", "=", thread_id), Where("to", "=", CONSOLE))
        found = await all_rows(self.views, "messages", Query(where, "position"), dict[str, Any])
        return tuple(message["payload"] for message in found)

    @overload
    async def records(self, *, thread: str | None = None) -> list[Record[Any]]: ...
    @overload
    async def records(self, *types: type[E], thread: str | None = None) -> list[Record[E]]: ...
    async def records(self, *types: type[events.Event], thread: str | None = None) -> Sequence[Record[events.Event]]:
        """The records so far, of events of these classes (none: all), of this thread (None: all), with content."""
        wanted = EventFilter(threads=(thread,) if thread else (), types=types, content=True)
        found: list[Record[events.Event]] = []
        while records := await self.log.read(found[-1].position if found else 0, wanted=wanted):
            found += records
        return found

    async def until(self, kind: type[E], /, thread: str | None = None, after: int = 0, **fields: Any) -> Record[E]:
        """Wait until an event of this class with these fields is in the log, and give its record."""
        wanted = EventFilter(threads=(thread,) if thread else (), types=(kind,))
        async for records in self.log.follow(after, wanted):
            for record in records:
                if all(getattr(record.event, name) == value for name, value in fields.items()):
                    return record  # type: ignore[return-value]  # the filter passes this class alone
        raise LookupError(f"The log closed before {kind.event_type} came.")


@asynccontextmanager
async def running(
    config: str | Path, data: str | Path | None = None, parts: Parts | None = None
) -> AsyncIterator[Running]:
    """Start the organism of ``config``, on ``data`` or in memory; stop it at the end."""
    organism = await bootstrap.start(Path(config), Path(data) if data is not None else None, parts)
    run = Running(organism)
    try:
        yield run
    finally:
        await organism.stop(grace_s=1, is_crash=run.crashed)
