"""What the tests of the log share: a clock, three read models, units made in one line, engines to run them on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
from msgspec import field

from organism.events.entity import Entity
from organism.events.record import Content, Record, Unit
from organism.events.vocabulary import Event, MessageHandled, MessageSent, ThreadCreated, ThreadKilled
from organism.log.disk import Disk
from organism.log.log import EventLog
from organism.log.sqlite import Options, SqliteLog
from organism.sqlite.driver import Pysqlite
from organism.views.views import Keys, PrivateFields, ReadModel, Stored, ViewStore, fold_each

START_US = 1_763_768_000_000_000


class FixedClock:
    """A clock that stands still."""

    def now_us(self) -> int:
        return START_US


class Message(Entity):
    """A message."""

    id: str
    thread: str | None
    to: str
    position: int
    names: list[str]


class Thread(Entity):
    """A thread until it is killed."""

    id: str
    first: int
    sent: int = 0
    last: int = 0


class Seen(PrivateFields):
    """The types of its events."""

    seen: list[str] = field(default_factory=list)


class Agent(Entity):
    """What an agent got and did."""

    name: str
    got: int = 0
    done: int = 0


def _messages(rows: dict[str, Message], records: Sequence[Record[Event]]) -> None:
    for record in records:
        event = record.event
        if isinstance(event, MessageSent):
            names = [event.sender, event.to]
            rows[event.message] = Message(event.message, record.thread, event.to, record.position, names)


def _thread(key: str, row: Stored[Thread, Seen] | None, record: Record[Any]) -> Stored[Thread, Seen] | None:
    if isinstance(record.event, ThreadKilled):
        return None
    row = row or Stored(Thread(key, record.position), Seen())
    row.public.sent += isinstance(record.event, MessageSent)
    row.public.last = record.position
    row.private.seen.append(record.type)
    return row


def _agent(key: str, row: Agent | None, record: Record[Any]) -> Agent:
    row = row or Agent(key)
    if isinstance(record.event, MessageSent):
        row.got += 1
    else:
        row.done += 1
    return row


MESSAGES = ReadModel(
    "messages",
    1,
    (MessageSent,),
    _messages,
    Message,
    columns={"position": "INTEGER", "to": "TEXT", "names": "TEXT", "thread": "TEXT"},
    indexes=(("thread",),),
    with_content=True,
    totals=(("sum", "position"), ("max", "thread")),
    is_final=True,
)
THREAD_KEYS: dict[type[Event], Keys] = dict.fromkeys(
    (ThreadCreated, MessageSent, ThreadKilled), lambda record: (record.thread or "",)
)
THREADS = ReadModel(
    "threads",
    1,
    THREAD_KEYS,
    fold_each(THREAD_KEYS, _thread),
    Thread,
    Seen,
    columns={"first": "INTEGER", "sent": "INTEGER", "last": "INTEGER"},
    indexes=(("last",),),
    text_in=("messages", "thread"),
)
AGENT_KEYS: dict[type[Event], Keys] = {
    MessageSent: lambda record: (record.event.to,),
    MessageHandled: lambda record: (record.event.agent,),
}
AGENTS = ReadModel("agents", 1, AGENT_KEYS, fold_each(AGENT_KEYS, _agent), Agent, is_live=True)
MODELS = (MESSAGES, THREADS, AGENTS)


def unit(
    thread: str | None,
    *records: Record[Event],
    expect: dict[str, int | Unit] | None = None,
    at: int = START_US,
) -> Unit:
    """A unit of these records."""
    return Unit(thread, list(records), at, expect or {})


def sent(message: str, text: str = "hello", to: str = "greeter", owner: str = "thr-1") -> Record[MessageSent]:
    """A message with content."""
    content = Content(owner, orjson.dumps({"text": text}), b"<text>%b</text>" % text.encode())
    return Record(MessageSent(message, "console", to, "Greeting", 1, "token"), content)


def handled(message: str, agent: str = "greeter") -> Record[MessageHandled]:
    """A message's end."""
    return Record(MessageHandled(message, agent, "done", 7))


def created(thread: str | None = None) -> Record[ThreadCreated]:
    """A thread's begin: the unit's thread, if not this one."""
    return Record(ThreadCreated(), thread=thread)


def killed() -> Record[ThreadKilled]:
    """A thread's end."""
    return Record(ThreadKilled())


def as_tuples(records: Sequence[Record[Event]]) -> list[tuple[Any, ...]]:
    """Records as values that compare."""
    return [
        (r.position, r.event, r.thread, r.cause, r.correlation, r.at, r.content and r.content.json) for r in records
    ]


async def open_durable(place: Path, driver: Pysqlite | None = None, models: Sequence[ReadModel] = MODELS) -> SqliteLog:
    """A log on the disk, and the rows of these models."""
    return await SqliteLog.open(place, FixedClock(), models, Options(driver=driver or Pysqlite()))


def views(log: EventLog) -> ViewStore:
    """The rows that are written with its commits."""
    assert isinstance(log, SqliteLog)
    return log.views


def anchor(log: SqliteLog) -> None:
    """Write the anchor now; the log does it by itself five times a second."""
    disk = log._store  # noqa: SLF001 - no test waits by the clock
    assert isinstance(disk, Disk)
    disk.anchor()


async def found_out(log: SqliteLog) -> None:
    """Wait until the log knows what became of its disk."""
    await log._recovery.ended()  # noqa: SLF001 - the end is told to nobody if it is a bad one


async def turn() -> None:
    """The loop's next iteration."""
    loop = asyncio.get_running_loop()
    turned = loop.create_future()
    loop.call_soon(turned.set_result, None)
    await turned
