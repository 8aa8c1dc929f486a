"""Compares the library of a tenant with its log. Only reads, also while a server is running."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from organism.errors import LibraryDamaged, LogDamaged, LogUnavailable, NotFound
from organism.events import vocabulary as events
from organism.log.directory import LogDirectory
from organism.log.encode import mac
from organism.log.offline import facts_in, reading_together
from organism.rag import store
from organism.rag.digests import FACTS, apply
from organism.rag.store import LIBRARY, LIBRARY_FILE, InForce, damage_of
from organism.sqlite.async_connection import AsyncConnection, reading
from organism.sqlite.driver import Pysqlite


@dataclass(slots=True)
class _Index:
    """An index as the log has it."""

    model: str
    generation: int = 0
    digests: dict[str, str] = field(default_factory=dict)


async def library_damage(directory: Path, key_path: Path | None, tenant: str) -> list[str]:
    """What the library next to the log in ``directory`` lacks, or has differently from the log."""
    files = LogDirectory(directory, key_path, tenant)
    try:
        key = mac(files.read_key(), LIBRARY)
        async with reading_together(files, LIBRARY_FILE, FACTS) as (log, library):
            indices = await _indices(log)
            if library is None:
                return [f"index {name!r}: {LIBRARY_FILE} is missing" for name, each in indices.items() if each.digests]
            return [damage for name, each in indices.items() for damage in await _damage(library, name, each, key)]
    except (LogDamaged, LogUnavailable, NotFound) as error:
        return [error.message]
    except Pysqlite.errors as error:
        return [f"{LIBRARY_FILE} cannot be read: {error}"]


async def documents_without_words(directory: Path) -> int:
    """How many documents in ``directory`` are indexed as an earlier version did. Raises ``LibraryDamaged``."""
    file = directory / LIBRARY_FILE
    if not file.exists():
        return 0
    try:
        async with reading(Pysqlite(), file) as library:
            return await store.count_without_words(library)
    except Pysqlite.errors as error:
        raise LibraryDamaged(f"{file} cannot be read: {error}.") from error


async def _indices(log: AsyncConnection) -> Mapping[str, _Index]:
    indices: dict[str, _Index] = {}
    async for record in facts_in(log, FACTS):
        match record.event:
            case events.IndexCreated() as event:
                indices[event.index] = _Index(event.embedding_model)
            case events.DocumentsChanged() as event:
                indices[event.index].model = event.embedding_model or indices[event.index].model
            case events.IndexDeleted() as event:
                indices.pop(event.index, None)
                continue
            case _:
                continue
        indices[event.index].generation = event.generation
        apply(indices[event.index].digests, event)
    return indices


async def _damage(library: AsyncConnection, name: str, index: _Index, key: bytes) -> list[str]:
    found = await damage_of(library, InForce(name, index.generation, index.digests), index.model, key)
    return [f"index {name!r}, document {document_id!r}: {what}" for document_id, what in found]
