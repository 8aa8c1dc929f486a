"""Rows that sum up spans of positions: each is made when the log reaches the end of its span, in that unit's commit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat, zip_longest
from operator import attrgetter
from typing import Any, Final

from msgspec import field

from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Record
from organism.views.views import ReadModel

_EVENT, _THREAD, _AT, _POSITION = map(attrgetter, ("event", "thread", "at", "position"))
_NOTHING: Final = repeat(None)


class OpenSpans(Entity):
    """What lies in spans that have not ended: ``records`` in the shortest, ``parts`` (by model) in each longer one."""

    records: list[Record[events.Event]] = field(default_factory=list)
    parts: dict[str, list[Any]] = field(default_factory=dict)


def spanned(models: Sequence[ReadModel]) -> list[ReadModel]:
    """The models whose rows are of spans, the shortest first; a longer one is the sum of the last shorter one."""
    return sorted((model for model in models if model.span), key=lambda model: model.span)


class SpanFolding:
    """Collects events after ``position``, and folds each span once it is whole."""

    def __init__(self, models: Sequence[ReadModel], opened: OpenSpans, position: int) -> None:
        self._models = spanned(models)
        self._open = opened
        self._span = self._models[0].span if self._models else 1
        self._end = position - position % self._span + self._span

    def take(self, records: Sequence[Record[events.Event]]) -> Iterable[tuple[ReadModel, str, Any]]:
        """(model, key, row) of the spans that end with these events.

        Only copies without content are collected. They are made without a line of Python an event, since each hop pays.
        """
        if not self._models:
            return ()
        self._open.records += map(
            Record,
            map(_EVENT, records),
            _NOTHING,
            map(_THREAD, records),
            map(_AT, records),
            _NOTHING,
            _NOTHING,
            _NOTHING,
            map(_POSITION, records),
        )
        return self._ended(records[-1].position) if records[-1].position >= self._end else ()

    def _ended(self, position: int) -> Iterator[tuple[ReadModel, str, Any]]:
        """The rows of the spans that end up to a position."""
        while self._end <= position:
            collected = self._open.records
            size = self._end - collected[0].position + 1
            yield from self._rows(collected[:size])
            del collected[:size]
            self._end += self._span

    def _rows(self, parts: list[Any]) -> Iterator[tuple[ReadModel, str, Any]]:
        """The rows of the shortest span, and of the longer ones that end with it."""
        for model, longer in zip_longest(self._models, self._models[1:]):
            rows: dict[str, Any] = {}
            model.fold(rows, parts)
            ((key, row),) = rows.items()
            yield model, key, row
            if longer is None:
                return
            if longer.span == model.span:
                continue
            parts = self._open.parts.setdefault(longer.name, [])
            parts.append(row)
            if row.position % longer.span:
                return
            del self._open.parts[longer.name]
