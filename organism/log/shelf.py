"""What the log's twin keeps in memory: units and contents in a ledger, rows on a shelf."""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import orjson

from organism.errors import LogDamaged
from organism.log.batch import Batch
from organism.log.cache import Written, read_row
from organism.log.chain import fits
from organism.log.encode import REMEDY, decode, hand_over, parse
from organism.log.folds import Folds, with_payload
from organism.log.log import Page, Query, ReadModel, Row, Verification, Where
from organism.log.pages import known_column
from organism.log.upcast import Upcaster
from organism.log.verify import Walk
from organism.model.events import Content, Event

COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = MappingProxyType(
    {
        "=": operator.eq,
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
        "in": lambda value, given: value in given,
        "has": lambda value, given: f"|{given}|" in value,
    }
)
PayloadAt = Callable[[int], bytes | None]


@dataclass(slots=True)
class Stored:
    """A unit as the other engine's row holds it."""

    first: int
    digest: bytes
    body: bytes
    hash: bytes | None


class Ledger:
    """Units in order and contents by position, in the shape of the other engine's rows, checked when they are read."""

    def __init__(self, upcaster: Upcaster) -> None:
        self.units: list[Stored] = []
        self.contents: dict[int, tuple[str, bytes, bytes, bytes]] = {}
        self._streams: dict[str, int] = {}
        self._upcaster = upcaster

    def add(self, batch: Batch, chained: bytes) -> None:
        """Keep a commit."""
        last = batch.firsts[-1]
        for first, sealed, body in zip(batch.firsts, batch.digests, batch.bodies, strict=True):
            self.units.append(Stored(first, sealed, body, chained if first == last else None))
        for position, owner, salt, json, xml in batch.contents:
            self.contents[position] = (owner, salt, json, xml)
        self._streams.update((stream, last) for stream, _, last in batch.streams)

    def head_of(self, stream: str) -> int:
        """The position of the stream's last event; 0 if there is no such stream."""
        return self._streams.get(stream, 0)

    def events(self, after: int, until: int) -> Iterator[Event]:
        """Events with after < position ≤ until."""
        begin = bisect_right(self.units, after + 1, key=lambda unit: unit.first) - 1
        for number in range(max(begin, 0), len(self.units)):
            events = self._decode(number)
            if events[0].position > until:
                return
            yield from (event for event in events if after < event.position <= until)

    def events_down(self, after: int, until: int) -> Iterator[Event]:
        """The same, newest first."""
        begin = bisect_right(self.units, until, key=lambda unit: unit.first) - 1
        for number in range(begin, -1, -1):
            events = self._decode(number)
            if events[-1].position <= after:
                return
            yield from (event for event in reversed(events) if after < event.position <= until)

    def fold(self, after: int, apply: Callable[[Event], object]) -> None:
        """Hand every event after ``after`` to ``apply``."""
        begin = bisect_right(self.units, after + 1, key=lambda unit: unit.first) - 1
        rows = [(unit.first, unit.body) for unit in self.units[max(begin, 0) :]]
        hand_over(rows, after, self._upcaster, apply)

    def fill(self, event: Event) -> Event:
        """Give the event its content, checked against the digest that it carries."""
        if "content" in event.data:
            event.content = self._checked(event.position, event.data["content"])
        return event

    def readable(self, digests: Mapping[int, str]) -> dict[int, tuple[bytes, bytes]]:
        """(json, xml) by position, checked against the digests; what was erased is missing."""
        contents = {position: self._checked(position, digest) for position, digest in digests.items()}
        return {position: (c.json, c.xml) for position, c in contents.items() if not c.erased}

    def _checked(self, position: int, digest: str) -> Content:
        found = self.contents.get(position)
        if found is None:
            raise LogDamaged(f"The content at position {position} is missing and was not erased. {REMEDY}")
        owner, salt, json, xml = found
        if not fits(digest, salt, json, xml):
            raise LogDamaged(f"The content at position {position} does not fit its digest: it was changed. {REMEDY}")
        return Content(owner, json, xml, erased=not salt)

    def payload(self, position: int) -> bytes | None:
        """The content JSON of the event at ``position``; None if it was erased."""
        found = self.contents.get(position)
        return found[2] if found is not None and found[1] else None

    def verify(self, key: bytes, after: int) -> Verification:
        """Check every commit's hash, every unit's digest and every content after ``after``."""
        state = Walk(key)
        for unit in self.units:
            state.step(unit.first, unit.digest, unit.body, unit.hash)
            if unit.hash is not None and state.head <= after:
                state = Walk(key, unit.hash, state.head)
        state.finish()
        if not state.damage:
            state.damage += self._unfit(after, state.head)
        return Verification(state.head, state.head - after, state.commits, tuple(state.damage))

    def _unfit(self, after: int, until: int) -> Iterator[str]:
        for event in self.events(after, until):
            try:
                self.fill(event)
            except LogDamaged as damage:
                yield damage.message

    def _decode(self, number: int) -> list[Event]:
        unit = self.units[number]
        return decode(parse(unit.first, unit.digest, unit.body), self._upcaster)


class Shelf:
    """The rows that the folds wrote, and pages of them as SQLite would sort and compare."""

    def __init__(self, models: Sequence[ReadModel]) -> None:
        self._models = {model.name: model for model in models}
        self._rows: dict[str, dict[str, Written]] = {model.name: {} for model in models}

    def take(self, folds: Folds) -> None:
        """Take every row that the folds changed."""
        folds.settle()
        for name, cache in folds.caches.items():
            for key, row in cache.leave().items():
                if row is None:
                    self._rows[name].pop(key, None)
                else:
                    self._rows[name][key] = cache.write(row)
            cache.left()

    def at(self, position: int | None, folds: Folds, ledger: Ledger) -> Shelf:
        """This shelf, up to date; or one of the rows that the log folds to up to ``position``."""
        if position is None:
            self.take(folds)
            return self
        shelf = Shelf(list(self._models.values()))
        anew = Folds(list(self._models.values()), shelf.load, 0)
        anew.owe(list(ledger.events(0, position)))
        shelf.take(anew)
        return shelf

    def find(self, model: str, key: str) -> Written | None:
        """One row as it was written."""
        return self._rows[model].get(key)

    def load(self, model: str, key: str) -> Row | None:
        """One row with its private fields."""
        written = self.find(model, key)
        return None if written is None else read_row(*written[:2])

    def page(self, name: str, query: Query, payload: PayloadAt) -> Page:
        """A page of rows."""
        model = self._models[name]
        has_text = self._finder(model, query.text, payload)
        chosen = [
            (key, written)
            for key, written in self._rows[name].items()
            if all(_holds(model, written, where) for where in query.where) and has_text(key, written)
        ]
        chosen.sort(key=lambda pair: _order(model, query.order_by, pair), reverse=query.descending)
        shown = [written for _, written in chosen[query.offset : query.offset + query.limit]]
        texts = [finish(written, payload) for written in shown]
        return Page(b"[%b]" % b",".join(texts), len(texts), len(chosen))

    def _finder(self, model: ReadModel, text: str, payload: PayloadAt) -> Callable[[str, Written], bool]:
        """What says whether the text is found in a row."""
        if not text:
            return lambda _key, _written: True
        if model.text_in is None:
            return lambda _key, written: _has_text(payload(written[2]), text)
        other, column = model.text_in
        named = {
            _value(self._models[other], written, column)
            for written in self._rows[other].values()
            if _has_text(payload(written[2]), text)
        }
        return lambda key, _written: key in named


def finish(written: Written, payload: PayloadAt) -> bytes:
    """The row as it is shown."""
    public, _, content_at, _, _ = written
    return with_payload(public, payload(content_at)) if content_at else public


def _value(model: ReadModel, written: Written, name: str) -> Any:
    return written[4][list(model.columns).index(known_column(model, name))]


def _order(model: ReadModel, order_by: str, pair: tuple[str, Written]) -> tuple[Any, ...]:
    key, written = pair
    value = _value(model, written, order_by) if order_by else None
    rank = 0 if value is None else 2 if isinstance(value, str) else 1
    return (rank, 0 if value is None else value, key.encode())


def _holds(model: ReadModel, written: Written, where: Where) -> bool:
    names = where.any_of or (where.column,)
    return any(_compares(_value(model, written, name), where) for name in names)


def _compares(value: Any, where: Where) -> bool:
    if value is None or where.value is None:
        return False
    compare = COMPARISONS.get(where.op)
    if compare is None:
        raise ValueError(f"Expected an operator of `Where`, got {where.op!r}.")
    return bool(compare(value, where.value))


def _has_text(payload: bytes | None, text: str) -> bool:
    """Whether the content holds the text, A–Z and a–z alike."""
    return payload is not None and orjson.dumps(text)[1:-1].lower() in payload.lower()
