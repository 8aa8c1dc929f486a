"""What this machine allows a durable hop that does nothing else: hops a second, and what a chain takes.

A message is XML; it is parsed, validated by its schema, read into an object and given to a handler; what that returns
is written as XML and appended; it is delivered once it is on the disk. There is no routing, no pause, no audit, no
row, no page, no second answer: what the product does beside this is the rest of its time.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Final
from xml.sax.saxutils import escape

import orjson
import pysqlite3
import uvloop
from lxml import etree

from bench.limits.raw_sqlite import INSERT_ARRAY, plain_table
from bench.load import Measurement, arguments, measure_hops

ENVELOPE: Final = b"""<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="urn:bare" xmlns="urn:bare"
    elementFormDefault="qualified">
  <xs:import schemaLocation="payload.xsd"/>
  <xs:element name="message"><xs:complexType><xs:sequence>
    <xs:element name="meta"><xs:complexType><xs:sequence>
      <xs:element name="from" type="xs:string"/>
      <xs:element name="to" type="xs:string"/>
      <xs:element name="thread" type="xs:string"/>
    </xs:sequence></xs:complexType></xs:element>
    <xs:any namespace="##local" processContents="strict"/>
  </xs:sequence></xs:complexType></xs:element>
</xs:schema>"""
PAYLOAD: Final = b"""<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
  <xs:element name="Greeting"><xs:complexType><xs:sequence>
    <xs:element name="message" type="xs:string"/>
    <xs:element name="sender" type="xs:string"/>
  </xs:sequence></xs:complexType></xs:element>
</xs:schema>"""
OUTSIDE: Final = "console"


@dataclass(slots=True)
class Greeting:
    message: str
    sender: str


async def greet(payload: Greeting) -> tuple[Greeting, str]:
    return Greeting(f"Hello, {payload.message}!", "greeter"), "shouter"


async def shout(payload: Greeting) -> tuple[Greeting, str]:
    return Greeting(payload.message.upper(), payload.sender), "response-handler"


async def answer(payload: Greeting) -> tuple[Greeting, str]:
    return Greeting(payload.message, payload.sender), OUTSIDE


Handler = Callable[[Greeting], Awaitable[tuple[Greeting, str]]]
HANDLERS: Final[Mapping[str, Handler]] = {"greeter": greet, "shouter": shout, "response-handler": answer}


@dataclass(slots=True)
class Message:
    position: int
    thread: str
    to: str
    xml: str


class Writer:
    """A thread that commits whatever was given to it, by one statement, and says so in the loop's thread."""

    def __init__(self, connection: pysqlite3.Connection, done: Callable[[], None]) -> None:
        self._connection = connection
        self._done = done
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[list[Message] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def write(self, messages: list[Message]) -> None:
        self._jobs.put(messages)

    def stop(self) -> None:
        self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (messages := self._jobs.get()) is not None:
            rows = [(message.position, message.thread, message.xml) for message in messages]
            self._connection.execute(INSERT_ARRAY, (orjson.dumps(rows).decode(),))
            self._loop.call_soon_threadsafe(self._done)


class Bare:
    """The hop."""

    def __init__(self, folder: Path, connection: pysqlite3.Connection) -> None:
        (folder / "payload.xsd").write_bytes(PAYLOAD)
        (folder / "envelope.xsd").write_bytes(ENVELOPE)
        self._schema = etree.XMLSchema(etree.parse(str(folder / "envelope.xsd")))
        self._parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
        self._loop = asyncio.get_running_loop()
        self.writer = Writer(connection, self._committed)
        self._waiting: list[Message] = []
        self._flying: list[Message] = []
        self._is_due = False
        self._position = 0
        self._ends: dict[str, asyncio.Future[None]] = {}

    async def chain(self, key: str) -> None:
        end = self._ends[key] = self._loop.create_future()
        self._append(OUTSIDE, "greeter", key, Greeting(key, OUTSIDE))
        await end

    def _append(self, sender: str, to: str, thread: str, payload: Greeting) -> None:
        xml = (
            f'<message xmlns="urn:bare"><meta><from>{sender}</from><to>{to}</to><thread>{thread}</thread></meta>'
            f'<Greeting xmlns=""><message>{escape(payload.message)}</message><sender>{escape(payload.sender)}</sender>'
            "</Greeting></message>"
        )
        self._position += 1
        self._waiting.append(Message(self._position, thread, to, xml))
        if not self._flying and not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._begin)

    def _begin(self) -> None:
        self._is_due = False
        if self._waiting and not self._flying:
            self._flying, self._waiting = self._waiting, []
            self.writer.write(self._flying)

    def _committed(self) -> None:
        messages, self._flying = self._flying, []
        self._begin()
        for message in messages:
            if message.to == OUTSIDE:
                self._ends.pop(message.thread).set_result(None)
            else:
                self._deliver(message)
        self._begin()

    def _deliver(self, message: Message) -> None:
        root = etree.fromstring(message.xml.encode(), self._parser)
        self._schema.assertValid(root)
        text, sender = root[1]
        handling = HANDLERS[message.to](Greeting(text.text or "", sender.text or "")).__await__()
        try:
            next(handling)
        except StopIteration as ended:
            payload, to = ended.value
            self._append(message.to, to, message.thread, payload)


async def measure(in_flight: int, seconds: float) -> Measurement:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, plain_table(check_same_thread=False) as connection:
        bare = Bare(Path(folder), connection)
        try:
            return await measure_hops("bare hop", bare.chain, in_flight, seconds)
        finally:
            bare.writer.stop()


if __name__ == "__main__":
    options = arguments(__doc__, in_flight=64)
    print(uvloop.run(measure(options.in_flight, options.seconds)).line())
