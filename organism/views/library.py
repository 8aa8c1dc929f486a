"""The library's indices: how many documents each has, and which generation of the store's rows is in force."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from organism.events.record import Record
from organism.events.vocabulary import DocumentsChanged, Event, IndexCreated, IndexDeleted
from organism.model.times import iso
from organism.views.views import Keys, ReadModel, Row, fold_each


def _index(record: Record[Any]) -> Sequence[str]:
    return (record.event.index,)


def _after(key: str, row: Row | None, record: Record[Any]) -> Row | None:
    match record.event:
        case IndexCreated() as event:
            return {
                "id": key,
                "doc_count": len(event.documents),
                "embedding_model": event.embedding_model,
                "created_at": iso(record.at),
                "_position": record.position,
                "_generation": event.generation,
            }
        case DocumentsChanged() as event if row is not None:
            row["doc_count"] = event.doc_count
            row["embedding_model"] = event.embedding_model or row["embedding_model"]
            row["_generation"] = event.generation
            return row
        case _:
            return None


_KEYS: Final[Mapping[type[Event], Keys]] = dict.fromkeys((IndexCreated, DocumentsChanged, IndexDeleted), _index)

INDICES: ReadModel[Row] = ReadModel(
    name="indices",
    version=1,
    types=_KEYS,
    fold=fold_each(_KEYS, _after),
    columns={"position": "INTEGER"},
    indexes=(("position",),),
)
