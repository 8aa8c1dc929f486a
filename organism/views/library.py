"""The library's indices: how many documents each has, and which generation of the store's rows is in force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from msgspec import Meta

from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Record
from organism.model import words
from organism.model.times import iso
from organism.views.views import Keys, PrivateFields, ReadModel, Stored, fold_each


def _index(record: Record[Any]) -> Sequence[str]:
    return (record.event.index,)


class LibraryIndex(Entity):
    """An index of the library."""

    id: Annotated[str, Meta(examples=["berlin-info"])]
    doc_count: words.Count
    embedding_model: Annotated[str, Meta(description="What made its vectors.", examples=["default"])]
    created_at: words.Time


class _InForce(PrivateFields):
    position: int
    generation: int


StoredIndex = Stored[LibraryIndex, _InForce]


def _after(key: str, row: StoredIndex | None, record: Record[Any]) -> StoredIndex | None:
    match record.event:
        case events.IndexCreated() as event:
            index = LibraryIndex(key, len(event.documents), event.embedding_model, iso(record.at))
            return Stored(index, _InForce(record.position, event.generation))
        case events.DocumentsChanged() as event if row is not None:
            row.public.doc_count = event.doc_count
            row.public.embedding_model = event.embedding_model or row.public.embedding_model
            row.private.generation = event.generation
            return row
        case _:
            return None


_KEYS: Final[Mapping[type[events.Event], Keys]] = dict.fromkeys(
    (events.IndexCreated, events.DocumentsChanged, events.IndexDeleted), _index
)

INDICES: ReadModel[StoredIndex] = ReadModel(
    name="indices",
    version=1,
    types=_KEYS,
    fold=fold_each(_KEYS, _after),
    row=LibraryIndex,
    private=_InForce,
    columns={"position": "INTEGER"},
    indexes=(("position",),),
)
