"""How far the background is with the library's indices: pushed at most once a second an index, while anyone watches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from organism.errors import NotFound
from organism.model.ids import stream_of_index
from organism.model.times import iso
from organism.rag.library import Library
from organism.server.push.filter import Frame
from organism.server.push.frames import IndexProgress, frame_of

PROGRESS_SECONDS: Final = 1.0


class LibraryProgress:
    """Looks at the indices whose work has moved since ``offer`` was last given something."""

    def __init__(self, library: Library, now: Callable[[], int], offer: Callable[[Sequence[Frame]], None]) -> None:
        self._library, self._now, self._offer = library, now, offer
        self._moved: dict[str, None] = {}
        self._has_moved = asyncio.Event()

    async def follow(self) -> None:
        """Offer what moves from now on: at once, then a second later what has moved meanwhile."""
        self._library.subscribe(self._note)
        try:
            while True:
                await self._has_moved.wait()
                self._has_moved.clear()
                moved, self._moved = self._moved, {}
                self._offer([frame for index_id in moved for frame in await self._frames(index_id)])
                await asyncio.sleep(PROGRESS_SECONDS)
        finally:
            self._library.unsubscribe(self._note)

    def _note(self, index_id: str) -> None:
        self._moved[index_id] = None
        self._has_moved.set()

    async def _frames(self, index_id: str) -> list[Frame]:
        """The frame of an index; none if it was deleted."""
        with suppress(NotFound):
            row = (await self._library.index(index_id)).public
            said = IndexProgress(
                index=row.id,
                change="progress",
                doc_count=row.doc_count,
                embedding_model=row.embedding_model,
                work=await self._library.work(row),
                timestamp=iso(self._now()),
            )
            return [frame_of(said, stream_of_index(index_id), ())]
        return []
