"""Walks the chain of a log and lists what is damaged, and where. Only reads, also while a server is running."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from organism.errors import LogDamaged
from organism.events import vocabulary as events
from organism.events.record import Record
from organism.events.stored import decode_unit
from organism.log.directory import Anchor
from organism.log.encode import GENESIS, MISSING, check_order, digest, fault, link, mac, parse
from organism.log.log import Verification
from organism.log.units import END, records_at
from organism.sqlite.driver import Connection, statements

LAYOUT: Final = 2  # The layout of the tables in schema.sql
PORTION_UNITS: Final = 2048
BEFORE_ALL: Final = -(1 << 63)
_SQL: Final = statements("log", "log.sql")
_TABLES: Final = {("table", name): text for name, text in statements("log", "schema.sql").items() if name != "layout"}


@dataclass(slots=True)
class Walk:
    """The state of a walk: ``hash`` is the last commit's, ``head`` the last position that is known to be whole."""

    key: bytes
    hash: bytes = GENESIS
    head: int = 0
    commits: int = 0
    damage: list[str] = field(default_factory=list)
    first: int = 0  # where the open commit begins, and the digests of its units
    digests: list[bytes] = field(default_factory=list)

    def step(self, first: int, sealed: Any, body: Any, chained: Any) -> None:
        """The next unit, as the database gives it. Damage is noted with the position, and the walk goes on."""
        if not (isinstance(sealed, bytes) and isinstance(body, bytes) and isinstance(chained, bytes | None)):
            self.damage.append(f"position {first}: the unit is not of the form in which it was written")
            return
        if not self.digests:
            self.first = first
        self.digests.append(sealed)
        if digest(body) != sealed:
            self.damage.append(f"position {first}: the unit does not fit its digest, it was changed")
        elif not body.startswith(b"[%d," % first):
            self.damage.append(f"position {first}: the unit was written for another position, it was moved")
        if chained is None:
            return
        last = last_position(first, body)
        if link(self.key, self.hash, self.first, self.digests) != chained:
            self.damage.append(
                f"positions {self.first} to {last}: the commit does not continue the one before it: "
                "something was changed, moved or is missing here"
            )
        self.hash = chained
        self.head = last
        self.commits += 1
        self.digests = []


def last_position(first: int, body: bytes) -> int:
    """The position of the last event of a unit's row; ``first`` if the row cannot be read."""
    try:
        return decode_unit(body).last
    except (ValueError, TypeError, LogDamaged):
        return first


def rows_after(connection: Connection, after: int) -> Iterator[list[tuple[Any, ...]]]:
    """Every unit that begins after ``after``, in portions. Raises ``LogDamaged`` where the pages lead in a circle."""
    sql = _SQL["units_after"]
    while rows := connection.execute(sql, (after, END, PORTION_UNITS)).fetchall():
        check_order(after, rows)
        yield rows
        after = rows[-1][0]


def walk(connection: Connection, key: bytes, after: int, anchor: Anchor) -> Walk:
    """Walk from the commit that holds ``after`` + 1 to the end, and compare with the anchored head.

    The commits that end before that position are trusted.
    """
    state, begin = Walk(key), BEFORE_ALL
    row = connection.execute(_SQL["commit_before"], (after + 1,)).fetchone() if after else None
    if row is not None:
        begin, body, chained = row
        state.head = last_position(begin, body)
        if isinstance(chained, bytes):
            state.hash = chained
        else:
            state.damage.append(f"position {begin}: the unit is not of the form in which it was written")
    is_met = anchor.position <= state.head
    for rows in rows_after(connection, begin):
        for row in rows:
            state.step(*row)
            if not is_met and state.head >= anchor.position and row[3] is not None:
                is_met = True
                if state.head != anchor.position or state.hash != anchor.hash:
                    state.damage.append(
                        f"position {anchor.position}: the anchor names another commit here, the log was exchanged"
                    )
    if state.digests:
        state.damage.append(f"position {state.first}: the commit that begins here has no end, the log was cut")
    if not is_met:
        state.damage.append(
            f"position {state.head + 1}: the log ends here, and its anchor knows it up to {anchor.position}: "
            "the end was cut, or a -wal file is missing"
        )
    return state


def before_last_commit(connection: Connection, position: int) -> int:
    """A position before the commit that ends at ``position``: a check that begins there covers at least one commit."""
    row = connection.execute(_SQL["commit_before"], (position + 1,)).fetchone()
    return 0 if row is None else int(row[0]) - 1


def schema_damage(connection: Connection) -> list[str]:
    """Where the file's schema differs from schema.sql: an added trigger or view may change what is written.

    The tables of read models are not checked: a start makes them again if they are not as it makes them.
    """
    (layout,) = connection.execute(_SQL["layout"]).fetchone() or (0,)
    if layout != LAYOUT:
        return [f"the file has layout {layout}, this program knows layout {LAYOUT}: run the program that wrote it"]
    rows = connection.execute(_SQL["defined"]).fetchall()
    defined = {(kind, name): text for kind, name, _, text in rows}
    unknown = [
        f"{kind} {name}: it is none of the log's, it was added"
        for kind, name, table, text in rows
        if (kind, name) not in _TABLES and text is not None and not is_of_rows(kind, table)
    ]
    changed = [
        f"table {key[1]}: it is missing or was changed" for key, text in _TABLES.items() if defined.get(key) != text
    ]
    return sorted(unknown) + changed


def is_of_rows(kind: str, table: str) -> bool:
    """Whether it is a table or view of a read model, or an index of one: their names begin so."""
    return kind != "trigger" and table.startswith(("rows_", "kept_"))


def meta_mac(key: bytes, epoch: int, timeline: str) -> bytes:
    return mac(key, "meta", epoch, timeline)


def meta_damage(connection: Connection, key: bytes, anchor: Anchor) -> list[str]:
    """What is wrong with the epoch and the timeline."""
    rows = connection.execute(_SQL["meta"]).fetchall()
    if len(rows) != 1 or rows[0][2] != meta_mac(key, *rows[0][:2]):
        return ["table meta: the epoch or the timeline was changed"]
    epoch, timeline, _ = rows[0]
    if timeline != anchor.timeline or epoch < anchor.epoch:
        return ["table meta: the epoch or the timeline is not the one that the anchor knows, the log was exchanged"]
    return []


def content_damage(connection: Connection, after: int) -> Iterator[str]:
    """Contents of the events after ``after`` that do not fit, and contents that no event names."""
    unit = connection.execute(_SQL["unit_at"], (after + 1,)).fetchone() if after else None
    begin = BEFORE_ALL if unit is None else unit[0]
    last = begin - 1 if unit is not None else BEFORE_ALL

    def record_at(position: int) -> Record[events.Event] | None:
        return records_at(connection, [position]).get(position)

    for rows in rows_after(connection, last):
        sealed = _sealed(rows)
        last, _, body, _ = rows[-1]
        end = last_position(last, body)
        for position, *row in connection.execute(_SQL["contents_between"], (begin, end)):
            if position not in sealed:
                yield _added(position)
            elif reason := fault(position, sealed.pop(position), row, record_at):
                yield f"position {position}: the content {reason}"
        yield from (f"position {position}: the content {MISSING}" for position in sealed)
        begin = end + 1
    late = [position for (position,) in connection.execute(_SQL["positions_from"], (begin,)).fetchall()]
    if late:  # a server that writes meanwhile may have added them, with their units
        named = {position for rows in rows_after(connection, last) for position in _sealed(rows)}
        yield from (_added(position) for position in late if position not in named)


def _added(position: int) -> str:
    return f"position {position}: no event has the content that lies here, it was added"


def _sealed(rows: Sequence[tuple[Any, ...]]) -> dict[int, str]:
    """Position → digest of each content that the events of these units name."""
    sealed: dict[int, str] = {}
    for first, digested, body, _ in rows:
        with suppress(LogDamaged):  # the walk has reported it
            sealed.update(parse(first, digested, body).digests())
    return sealed


def verify(connection: Connection, key: bytes, after: int, anchor: Anchor) -> Verification:
    """Check the tables, every commit's hash, every event's digest and every content after ``after``."""
    damage = schema_damage(connection)
    if damage:  # such tables prove nothing
        return Verification(0, 0, 0, tuple(damage))
    state = Walk(key)
    try:
        state = walk(connection, key, after, anchor)
        state.damage += meta_damage(connection, key, anchor)
        state.damage += content_damage(connection, after)
    except LogDamaged as damaged:
        state.damage.append(damaged.message)
    return Verification(state.head, state.head - after, state.commits, tuple(state.damage))
