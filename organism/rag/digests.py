"""What the log says of an index: which documents it has, each with its digest. The store is compared with it.

Anyone who can write the data directory can exchange a document together with its digest there; the facts in the log
have the digest too, and a change of those is detected.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field

from organism.errors import LibraryDamaged, StalePosition
from organism.events import vocabulary as events
from organism.events.record import Record
from organism.model.ids import stream_of_index
from organism.views.library import StoredIndex

FACTS: tuple[type[events.Event], ...] = (events.IndexCreated, events.DocumentsChanged, events.IndexDeleted)
Digests = Mapping[str, str]
"""The digest of each document of an index, by its id."""
ReadFacts = Callable[[str, int], Awaitable[Sequence[Record[events.Event]]]]
"""Facts of a stream after a position, in order; none once there are no more."""


def apply(digests: MutableMapping[str, str], fact: events.Event) -> None:
    """Change the digests of an index as its fact says."""
    match fact:
        case events.IndexCreated():
            digests.clear()
            digests.update(fact.documents)
        case events.DocumentsChanged():
            if fact.replaced:
                digests.clear()
            for document_id in fact.deleted:
                digests.pop(document_id, None)
            digests.update(fact.written)
        case events.IndexDeleted():
            digests.clear()


@dataclass(frozen=True, slots=True)
class _Folded:
    position: int = 0
    generation: int = 0
    digests: dict[str, str] = field(default_factory=dict)


class LoggedDigests:
    """The digests of all indices that were asked for: folded from the log once, then followed as they change."""

    def __init__(self, read: ReadFacts) -> None:
        self._read = read
        self._folded: dict[str, _Folded] = {}

    async def of(self, row: StoredIndex) -> Digests:
        """The digests of the index as of its row. Raises ``StalePosition`` if it was changed since then."""
        index_id, generation = row.public.id, row.private.generation
        folded = self._folded.get(index_id, _Folded(row.private.position - 1))
        if folded.generation != generation:
            folded = self._folded[index_id] = await self._followed(index_id, folded)
        if folded.generation > generation:
            raise StalePosition(f"The generation {generation} of {index_id!r} is over.")
        if folded.generation < generation:
            raise LibraryDamaged(f"The log lacks facts of the index {index_id!r}.")
        return folded.digests

    def forget(self, index_id: str) -> None:
        """The index was deleted."""
        self._folded.pop(index_id, None)

    async def _followed(self, index_id: str, folded: _Folded) -> _Folded:
        position, generation = folded.position, folded.generation
        digests = folded.digests.copy()  # `dict(…)` takes ten times as long once some were deleted
        while records := await self._read(stream_of_index(index_id), position):
            for record in records:
                position = record.position
                if isinstance(record.event, events.IndexCreated | events.DocumentsChanged | events.IndexDeleted):
                    generation = record.event.generation
                    apply(digests, record.event)
        return _Folded(position, generation, digests)
