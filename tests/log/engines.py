"""What the tests of the log share: a clock, three read models, units made in one line, engines to run them on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import orjson

from organism.log.disk import Disk
from organism.log.driver import Pysqlite
from organism.log.log import KEY, ColumnRow, ReadModel, Row, Shown, fold_each
from organism.log.sqlite import Options, SqliteLog
from organism.model.events import Content, Event, Unit

START_US = 1_763_768_000_000_000


class FixedClock:
    """A clock that stands still."""

    def now_us(self) -> int:
        return START_US


def _named(field: str) -> Callable[[Event], Sequence[str]]:
    return lambda event: (event.data[field],)


def _messages(rows: dict[str, ColumnRow], events: Sequence[Event]) -> None:
    for event in events:
        if event.type == "message_sent":
            key, to = event.data["message"], event.data["to"]
            rows[key] = (key, event.position, to, f"|{event.data['from']}|{to}|", event.thread, event.at)


def _thread(key: str, row: Row | None, event: Event) -> Row | None:
    if event.type == "thread_killed":
        return None
    row = row or {"id": key, "first": event.position, "sent": 0, "_seen": []}
    row["sent"] += event.type == "message_sent"
    row["last"] = event.position
    row["_seen"].append(event.type)
    return row


def _agent(key: str, row: Row | None, event: Event) -> Row:
    row = row or {"name": key, "got": 0, "done": 0}
    row["got" if event.type == "message_sent" else "done"] += 1
    return row


MESSAGES = ReadModel(
    "messages",
    1,
    ("message_sent",),
    _messages,
    {"position": "INTEGER", "to": "TEXT", "names": "TEXT", "thread": "TEXT", "at": "INTEGER"},
    (("position",), ("thread", "position")),
    with_content=True,
    shown=(
        Shown("id", KEY),
        Shown("thread", "thread"),
        Shown("to", "to"),
        Shown("position", "position"),
        Shown("sent_at", "at", is_time=True),
    ),
)
THREAD_KEYS = dict.fromkeys(("thread_created", "message_sent", "thread_killed"), lambda event: (event.thread or "",))
THREADS = ReadModel(
    "threads",
    1,
    THREAD_KEYS,
    fold_each(THREAD_KEYS, _thread),
    {"first": "INTEGER", "sent": "INTEGER", "last": "INTEGER"},
    (("last",),),
    text_in=("messages", "thread"),
)
AGENT_KEYS = {"message_sent": _named("to"), "message_handled": _named("agent")}
AGENTS = ReadModel("agents", 1, AGENT_KEYS, fold_each(AGENT_KEYS, _agent), is_live=True)
MODELS = (MESSAGES, THREADS, AGENTS)


def unit(thread: str | None, *events: Event, expect: dict[str, int | Unit] | None = None, at: int = START_US) -> Unit:
    """A unit of these events."""
    return Unit(thread, list(events), at, expect or {})


def sent(message: str, text: str = "hello", to: str = "greeter", **more: Any) -> Event:
    """A message with content."""
    content = Content("thr-1", orjson.dumps({"text": text}), b"<text>%b</text>" % text.encode())
    return Event("message_sent", {"message": message, "from": "console", "to": to, **more}, content)


def handled(message: str, agent: str = "greeter") -> Event:
    """A message's end."""
    return Event("message_handled", {"message": message, "agent": agent, "outcome": "done"})


def created() -> Event:
    """A thread's begin."""
    return Event("thread_created", {})


def as_tuples(events: Sequence[Event]) -> list[tuple[Any, ...]]:
    """Events as values that compare."""
    return [
        (e.position, e.type, e.thread, e.cause, e.correlation, e.at, _plain(e.data), e.content and e.content.json)
        for e in events
    ]


def _plain(data: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name != "content"}


async def open_durable(place: Path, driver: Pysqlite | None = None, models: Sequence[ReadModel] = MODELS) -> SqliteLog:
    """A log on the disk."""
    return await SqliteLog.open(place, models, FixedClock(), Options(driver=driver or Pysqlite()))


def anchor(log: SqliteLog) -> None:
    """Write the anchor now; the log does it by itself five times a second."""
    disk = log._store  # noqa: SLF001 - no test waits by the clock
    assert isinstance(disk, Disk)
    disk.anchor()


async def found_out(log: SqliteLog) -> None:
    """Wait until the log knows what became of its disk."""
    if log._recovering is not None:  # noqa: SLF001 - the end is told to nobody if it is a bad one
        await log._recovering  # noqa: SLF001 - as above


async def turn() -> None:
    """The loop's next iteration."""
    loop = asyncio.get_running_loop()
    turned = loop.create_future()
    loop.call_soon(turned.set_result, None)
    await turned
