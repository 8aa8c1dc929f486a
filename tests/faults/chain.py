"""The audit chain, checked by other code than the product's: by the file's rows, the key and the standard library."""

from __future__ import annotations

import hmac
import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Final

GENESIS: Final = bytes(32)
UNITS: Final = "SELECT first, digest, body, hash FROM units ORDER BY first"


def chain_faults(log: Path, scratch: Path) -> Iterator[str]:
    """What does not fit in the log of a directory, whose server has ended; the check reads a copy in ``scratch``."""
    scratch.mkdir(parents=True)
    for file in log.glob("log.sqlite*"):
        shutil.copy(file, scratch / file.name)
    secret = bytes.fromhex((log / "key").read_text().strip())
    key = hmac.digest(secret, b"organism\0default", "sha256")
    with closing(sqlite3.connect(scratch / "log.sqlite")) as connection:
        yield from _units(connection, key)
        yield from _contents(connection)
    shutil.rmtree(scratch)


def _units(connection: sqlite3.Connection, key: bytes) -> Iterator[str]:
    previous, position, begun = GENESIS, 0, 1
    digests: list[bytes] = []
    for first, digest, body, chained in connection.execute(
        "SELECT first, digest, body, hash FROM units ORDER BY first"
    ):
        if first != position + 1:
            yield f"the unit at {first} follows {position}"
        if not digests:
            begun = first
        digests.append(digest)
        position = first + len(json.loads(body)[7]) - 1
        if sha256(body).digest() != digest:
            yield f"the unit at {first} does not fit its digest"
        if chained is not None:
            link = hmac.digest(key, b"".join((previous, begun.to_bytes(8, "big"), *digests)), "sha256")
            if link != chained:
                yield f"the commit from {begun} to {position} does not continue the one before it"
            previous, digests = chained, []
    if digests:
        yield f"the commit that begins at {begun} has no end"


def _contents(connection: sqlite3.Connection) -> Iterator[str]:
    sealed = {
        first + index: digest
        for first, body in connection.execute("SELECT first, body FROM units")
        for index, digest, *_ in json.loads(body)[8]
    }
    for position, owner, salt, text, xml in connection.execute("SELECT position, owner, salt, json, xml FROM content"):
        if sha256(b"".join((salt, owner.encode(), b"\0", text, b"\0", xml))).hexdigest() != sealed.pop(position, ""):
            yield f"the content at {position} does not fit its digest"
    yield from (f"the content at {position} is missing" for position in sealed)
