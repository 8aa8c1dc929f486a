"""The process that commits while there is much to commit.

``python -m organism.log.committing DIRECTORY`` reads wishes from its standard input: how long its two parts are (four
bytes each), JSON, and the bytes that the JSON names by their lengths. A wish is ``[SQL, parameters]``, where ``[n]`` is
a parameter of the next n bytes, or null, which moves the WAL into the database. It says ``DONE`` once it is ready, and
once each wish is. The first that fails it answers by ``FAILED`` and JSON, ``[SQLite's name of the error, what it
said]``, and ends: nobody knows what is on the disk then, and its parent looks at it anew. It ends with its input too,
when it has done what it was asked for; the log's next life fences off what it has left to do.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Final

import orjson

from organism.log.commits import Commits
from organism.log.connect import Connector
from organism.log.driver import Parameters, Pysqlite
from organism.log.place import Place
from organism.log.time_slice import SHORT_NS, ask_for_slices

DONE: Final = b"+"
FAILED: Final = b"-"
LENGTHS: Final = Struct("<II")
"""Of the JSON and of the bytes after it."""
MOST_BYTES: Final = 1 << 20
"""What a pipe may hold, as Linux gives it to anyone who asks; a wish fits into half of it."""
PARENTS_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What a terminal or a supervisor sends to all processes at once: the parent says when it is over."""
Statement = tuple[str, Parameters]
"""SQL and its parameters."""


def wish_of(statement: Statement | None) -> list[bytes]:
    """A wish, as the pieces that are written one after the other."""
    if statement is None:
        return [LENGTHS.pack(4, 0), b"null"]
    sql, parameters = statement
    pieces = [value for value in parameters if type(value) is bytes]
    head = orjson.dumps([sql, [[len(value)] if type(value) is bytes else value for value in parameters]])
    return [LENGTHS.pack(len(head), sum(map(len, pieces))), head, *pieces]


def wishes(handle: int) -> Iterator[Statement | None]:
    """What is asked for, in order, until the input ends. A wish is shorter than ``MOST_BYTES``."""
    buffer = memoryview(bytearray(MOST_BYTES))  # a new one for each read would cost more than the read
    end = 0
    while read := os.readv(handle, [buffer[end:]]):
        end += read
        begin = 0
        while end - begin >= LENGTHS.size:
            head, body = LENGTHS.unpack_from(buffer, begin)
            body_at = begin + LENGTHS.size + head
            if end < body_at + body:
                break
            yield _statement(buffer[begin + LENGTHS.size : body_at], buffer[body_at : body_at + body])
            begin = body_at + body
        rest = bytes(buffer[begin:end])
        end = len(rest)
        buffer[:end] = rest


def _statement(head: memoryview, body: memoryview) -> Statement | None:
    said = orjson.loads(head)
    if said is None:
        return None
    sql, parameters = said
    at = 0
    for place, value in enumerate(parameters):
        if isinstance(value, list):
            (length,) = value
            parameters[place] = bytes(body[at : at + length])
            at += length
    return sql, parameters


def main(directory: str) -> None:
    """Serve one log until the input ends."""
    for number in PARENTS_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    ask_for_slices(SHORT_NS)
    connector = Connector(Pysqlite(), Place(Path(directory)))
    expected: tuple[type[Exception], ...] = (*connector.driver.errors, OSError)
    out = sys.stdout.fileno()
    try:
        commits = Commits()
        commits.use(connector.to_log())
        gc.freeze()
        gc.disable()  # nothing here makes cycles
        os.write(out, DONE)
        serve(commits, out)
    except expected as error:
        os.write(out, FAILED + orjson.dumps([getattr(error, "sqlite_errorname", ""), str(error)]))
    os._exit(0)  # the last connection that is closed in order moves the WAL, and the next life may want to look at it


def serve(commits: Commits, out: int) -> None:
    """Do what is asked for and answer, until nothing more will be."""
    for wish in wishes(sys.stdin.fileno()):
        if wish is None:
            commits.checkpoint()
        else:
            commits.connection.execute(*wish)
        os.write(out, DONE)


if __name__ == "__main__":
    main(*sys.argv[1:])
