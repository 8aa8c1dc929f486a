"""A table as plain as can be, in a file with the durability that the product promises: WAL and `synchronous=FULL`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pysqlite3

ROW_BYTES = 600
"""About what one hop puts into the log: its events and its envelope."""

INSERT = "INSERT INTO event (position, thread, body) VALUES (?, ?, ?)"
INSERT_ARRAY = (
    "INSERT INTO event (position, thread, body) SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)"
)

_EVENTS = (
    '[1,1718000000000000,"t","m",{"event":"message_handled","message":"m","agent":"greeter","outcome":"done"},'
    '{"event":"message_sent","message":"n","from":"greeter","to":"shouter","type":"GreetingResponse","depth":2}]'
)
_ENVELOPE = (
    '<message xmlns="https://example.org/envelope"><meta><from>greeter</from><to>shouter</to><thread>t</thread></meta>'
    '<GreetingResponse xmlns=""><message>Hello!</message><original_sender>console</original_sender></GreetingResponse>'
    "</message>"
)
BODY = (_EVENTS + _ENVELOPE).ljust(ROW_BYTES)[:ROW_BYTES]
"""JSON and XML, since what has to be escaped costs more than what has not."""


@contextmanager
def plain_table(*, check_same_thread: bool = True) -> Iterator[pysqlite3.Connection]:
    """A connection, in autocommit, to a new file with one empty table; the file is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        file = str(Path(folder) / "raw.sqlite")
        connection = pysqlite3.connect(file, isolation_level=None, check_same_thread=check_same_thread)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("CREATE TABLE event (position INTEGER PRIMARY KEY, thread TEXT, body TEXT) STRICT")
        try:
            yield connection
        finally:
            connection.close()
