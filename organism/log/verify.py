"""Walks the chain of a log and says what does not fit, and where. Reads only, also beside a running server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from organism.errors import LogDamaged
from organism.log.chain import GENESIS, digest, fits, link
from organism.log.driver import Connection
from organism.log.encode import hold_order
from organism.log.log import Verification
from organism.log.place import Anchor
from organism.log.queries import statements

PORTION_UNITS: Final = 2048
BEFORE_ALL: Final = -(1 << 63)


@dataclass(slots=True)
class Walk:
    """The state of a walk: ``hash`` is the last commit's, ``head`` the last position that is known to be whole."""

    key: bytes
    hash: bytes = GENESIS
    head: int = 0
    commits: int = 0
    damage: list[str] = field(default_factory=list)
    _first: int = 0
    _digests: list[bytes] = field(default_factory=list)

    def step(self, first: int, sealed: Any, body: Any, chained: Any) -> None:
        """The next unit, as the database gives it. Damage is noted with the position, and the walk goes on."""
        if not (isinstance(sealed, bytes) and isinstance(body, bytes) and isinstance(chained, bytes | None)):
            self.damage.append(f"position {first}: the unit is not of the form in which it was written")
            return
        if not self._digests:
            self._first = first
        self._digests.append(sealed)
        if digest(body) != sealed:
            self.damage.append(f"position {first}: the unit does not fit its digest, it was changed")
        elif not body.startswith(b"[%d," % first):
            self.damage.append(f"position {first}: the unit was written for another position, it was moved")
        if chained is not None:
            self._end_commit(first, body, chained)

    def finish(self) -> None:
        """After the last unit: a commit without its end was cut."""
        if self._digests:
            self.damage.append(f"position {self._first}: the commit that begins here has no end, the log was cut")

    def _end_commit(self, first: int, body: bytes, chained: bytes) -> None:
        last = last_position(first, body)
        if link(self.key, self.hash, self._first, self._digests) != chained:
            self.damage.append(
                f"positions {self._first} to {last}: the commit does not continue the one before it: "
                "something was changed, moved or is missing here"
            )
        self.hash = chained
        self.head = last
        self.commits += 1
        self._digests = []


def last_position(first: int, body: bytes) -> int:
    """The position of the last event of a unit's row; ``first`` if the row cannot be read."""
    try:
        return first + len(orjson.loads(body)[7]) - 1
    except (ValueError, IndexError, TypeError, KeyError):
        return first


def rows_after(connection: Connection, after: int) -> Iterator[list[tuple[Any, ...]]]:
    """Every unit that begins after ``after``, in portions. Raises ``LogDamaged`` where the pages lead in a circle."""
    sql = statements("log.sql")["units_after"]
    while rows := connection.execute(sql, (after, PORTION_UNITS)).fetchall():
        hold_order(after, rows)
        yield rows
        after = rows[-1][0]


def start(connection: Connection, key: bytes, after: int) -> tuple[Walk, int]:
    """A walk that trusts the commits that end before position ``after`` + 1, and where its first unit is sought."""
    row = connection.execute(statements("log.sql")["commit_before"], (after + 1,)).fetchone() if after else None
    if row is None:
        return Walk(key), BEFORE_ALL
    first, body, chained = row
    state = Walk(key, chained, last_position(first, body))
    if not isinstance(chained, bytes):
        state.hash = GENESIS
        state.damage.append(f"position {first}: the unit is not of the form in which it was written")
    return state, first


def walk(connection: Connection, key: bytes, after: int, anchor: Anchor | None) -> Walk:
    """Walk from the commit that holds ``after`` + 1 to the end, and compare with the anchored head."""
    state, begin = start(connection, key, after)
    is_met = anchor is None or anchor.position <= state.head
    for rows in rows_after(connection, begin):
        for row in rows:
            state.step(*row)
            if anchor is not None and not is_met and state.head >= anchor.position and row[3] is not None:
                is_met = True
                _compare(state, anchor)
    state.finish()
    if not is_met and anchor is not None:
        state.damage.append(
            f"position {state.head + 1}: the log ends here, and its anchor knows it up to {anchor.position}: "
            "the end was cut, or a -wal file is missing"
        )
    return state


def _compare(state: Walk, anchor: Anchor) -> None:
    if state.head != anchor.position or state.hash != anchor.hash:
        state.damage.append(f"position {anchor.position}: the anchor names another commit here, the log was exchanged")


def contents_fit(connection: Connection, after: int) -> Iterable[str]:
    """What does not fit among the contents of the events after ``after``."""
    sql = statements("log.sql")["contents"]
    for rows in rows_after(connection, after):
        sealed = {position: text for first, _, body, _ in rows for position, text in _seals(first, body)}
        positions = orjson.dumps(list(sealed)).decode()
        for position, _, salt, json, xml in connection.execute(sql, (positions,)):
            if not fits(sealed.pop(position), salt, json, xml):
                yield f"position {position}: the content does not fit its digest, it was changed"
        yield from (f"position {position}: the content is missing and was not erased" for position in sealed)


def _seals(first: int, body: bytes) -> Iterator[tuple[int, str]]:
    try:
        listed = orjson.loads(body)[7]
        found = [
            (position, fields[1]["content"]) for position, fields in enumerate(listed, first) if "content" in fields[1]
        ]
    except (ValueError, IndexError, TypeError, KeyError):
        return
    yield from found


def verify(connection: Connection, key: bytes, after: int, anchor: Anchor | None) -> Verification:
    """Check every commit's hash, every event's digest and every content after ``after``."""
    state = Walk(key)
    try:
        state = walk(connection, key, after, anchor)
        state.damage += contents_fit(connection, after)
    except LogDamaged as damage:
        state.damage.append(damage.message)
    return Verification(state.head, state.head - after, state.commits, tuple(state.damage))
