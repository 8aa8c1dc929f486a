"""The stored form of a unit: one row of JSON with its version, so that an old log always opens.

``[first, version, at, thread, cause, correlation, actor, [event, …], [seal, …], [placed, …]]``: the first position
is part of the row, so that the digest covers it. Each list after the events names some of them by their index:
``[index, digest, owner]`` seals a content (the owner is null where it is the event's stream), and ``[index, thread,
cause, correlation]`` places an event that does not share these with its unit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Union

import msgspec
from msgspec import Struct

from organism.errors import LogDamaged
from organism.events.record import Actor, Record
from organism.events.vocabulary import EVENTS, Event

VERSION: Final = 3
"""The version of the rows that this code writes."""

_EVENT: Any = Union[tuple(EVENTS.values())]  # noqa: UP007 - made of the vocabulary


class Seal(Struct, array_like=True, gc=False):
    """The digest of an event's content, and its owner where that is not the event's stream."""

    index: int
    digest: str
    owner: str | None = None


class Placed(Struct, array_like=True, gc=False):
    """The thread, cause and correlation of an event where they differ from its unit's."""

    index: int
    thread: str | None
    cause: str | None
    correlation: str | None


class StoredUnit(Struct, array_like=True, gc=False):
    """The row. ``at`` is UTC in µs."""

    first: int
    version: int
    at: int
    thread: str | None
    cause: str | None
    correlation: str | None
    actor: Actor | None
    events: list[_EVENT]
    seals: list[Seal]
    placed: list[Placed]

    @property
    def last(self) -> int:
        """The position of its last event."""
        return self.first + len(self.events) - 1

    def digests(self) -> dict[int, str]:
        """The digest of each content, by position."""
        return {self.first + seal.index: seal.digest for seal in self.seals}

    def records(self) -> list[Record[Event]]:
        """Its events as records, without content."""
        thread, at, cause, correlation, actor = self.thread, self.at, self.cause, self.correlation, self.actor
        found: list[Record[Event]] = [
            Record(event, None, thread, at, cause, correlation, actor, position)
            for position, event in enumerate(self.events, self.first)
        ]
        for seal in self.seals:
            found[seal.index].digest, found[seal.index].content_owner = seal.digest, seal.owner
        for placed in self.placed:
            record = found[placed.index]
            record.thread, record.cause, record.correlation = placed.thread, placed.cause, placed.correlation
        return found


encode_unit: Final = msgspec.json.Encoder().encode
_HEAD: Final = re.compile(rb"\[\d+,([1-9]\d*),")
_DECODER: Final = msgspec.json.Decoder(StoredUnit)
_EVENTS_DECODER: Final = msgspec.json.Decoder(list[_EVENT])

Upcast = Callable[[list[Any]], list[Any]]
"""Converts a row to the next version."""


def _of_version_1(row: list[Any]) -> list[Any]:
    """Version 1 wrote each event as ``[type, data]``, or with ``thread, cause, correlation`` of its own behind it."""
    *shared, listed = row
    events, seals, placed = [], [], []
    for index, (name, data, *own) in enumerate(listed):
        digest, owner = data.pop("content", None), data.pop("content_owner", None)
        events.append({"event": name, **data})
        if digest is not None:
            seals.append([index, digest, owner])
        if own:
            placed.append([index, *own])
    return [*shared, events, seals, placed]


def _of_version_2(row: list[Any]) -> list[Any]:
    """Version 2 reads as it is: its steps have no places."""
    return row


UPCASTS: Final[Mapping[int, Upcast]] = MappingProxyType({1: _of_version_1, 2: _of_version_2})
"""From each older version to the next one."""


def decode_unit(body: bytes) -> StoredUnit:
    """The row as the present version would have written it.

    Raises ``LogDamaged`` for a row of a newer program, ``ValueError`` for anything that is no row.
    """
    head = _HEAD.match(body)
    if head is None:
        raise ValueError("A unit begins with its first position and its version.")
    version = int(head[1])
    if version == VERSION:
        return _DECODER.decode(body)
    if version > VERSION:
        raise LogDamaged(
            f"The log holds events of version {version}, this program knows them up to {VERSION}: "
            "run the newer program that wrote them."
        )
    try:
        row = upcast(msgspec.json.decode(body), version)
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise ValueError(f"The unit is not of version {version}.") from error
    return msgspec.convert(row, StoredUnit)


def check_events(events: list[Event]) -> None:
    """Raise ``TypeError`` or ``ValueError`` unless the events can be written and read again."""
    _EVENTS_DECODER.decode(encode_unit(events))


def upcast(row: list[Any], version: int, steps: Mapping[int, Upcast] = UPCASTS, present: int = VERSION) -> list[Any]:
    """The row, converted version by version."""
    for number in range(version, present):
        row = steps[number](row)
    return row
