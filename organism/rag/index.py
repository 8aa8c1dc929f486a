"""The graph over many vectors (hnswlib): a cache that follows its index in the background, while ``Exact`` answers.

hnswlib holds the interpreter's lock while it reads or writes a file. So graphs are loaded before anything is served,
and saved when the library closes. The store has the digest of each file, which is checked before hnswlib sees it: a
damaged one would cause wrong answers or a crash. Without the extra ``hnsw`` there is no graph.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

import structlog

from organism.rag.store import SavedGraph

if TYPE_CHECKING:
    from organism.rag.graph import Graph
    from organism.rag.vectors import Matrix, Rows

LEAST_ROWS: Final = 10_000
"""Up to this many, comparing with each is as fast."""
_log = structlog.get_logger("organism")


def installed() -> ModuleType | None:
    """hnswlib, None without the extra."""
    try:
        import hnswlib
    except ImportError:
        return None
    module: ModuleType = hnswlib
    return module


class Graphs:
    """The graphs of one tenant, made in threads of their own; they are saved in ``folder`` if there is one.

    ``hnswlib`` None: there are none. An index of up to ``least_rows`` has none.
    """

    def __init__(self, folder: Path | None, hnswlib: ModuleType | None, least_rows: int = LEAST_ROWS) -> None:
        self._folder = folder
        self._hnswlib = hnswlib
        self._least_rows = least_rows
        self._graphs: dict[str, Graph] = {}
        self._makers: dict[str, threading.Thread] = {}
        self._is_closed = threading.Event()

    def load(self, saved: Mapping[str, SavedGraph]) -> None:
        """Load the saved graphs of these indices whose files are whole; delete other files."""
        if self._hnswlib is None or self._folder is None:
            return
        for index_id, (model, dim, digest) in saved.items():
            file = self._folder / name_of(index_id)
            with suppress(RuntimeError, OSError, MemoryError):
                if digest_of(file) == digest:
                    from organism.rag.graph import Graph

                    self._graphs[index_id] = Graph.load(self._hnswlib, model, dim, file)
        names = set(map(name_of, self._graphs))
        for file in self._folder.glob("*"):
            if file.name not in names:
                with suppress(OSError):
                    file.unlink()

    def over(self, index_id: str, model: str, rows: Rows, matrix: Matrix) -> Graph | None:
        """The graph over exactly these rows; None if there is none yet: then a thread makes it.

        Neither array may change later.
        """
        if self._hnswlib is None or len(rows) <= self._least_rows:
            self._graphs.pop(index_id, None)
            return None
        graph = self._graphs.get(index_id)
        if graph is not None and graph.rows is rows and graph.model == model:
            return graph
        maker = self._makers.get(index_id)
        if (maker is None or not maker.is_alive()) and not self._is_closed.is_set():
            given = (index_id, model, self._graphs.pop(index_id, None), rows, matrix)
            maker = threading.Thread(target=self._make, args=given, name="library-graph", daemon=True)
            self._makers[index_id] = maker
            maker.start()
        return None

    def forget(self, index_id: str) -> None:
        """The index was deleted: delete its file."""
        self._graphs.pop(index_id, None)
        if self._folder is not None:
            (self._folder / name_of(index_id)).unlink(missing_ok=True)

    async def close(self) -> dict[str, SavedGraph]:
        """Wait until no thread works any more, and save what has changed, a graph that is half made too."""
        self._is_closed.set()
        for maker in list(self._makers.values()):
            await asyncio.to_thread(maker.join)
        return {} if self._folder is None else await asyncio.to_thread(self._save, self._folder)

    def _make(self, index_id: str, model: str, graph: Graph | None, rows: Rows, matrix: Matrix) -> None:
        assert self._hnswlib is not None  # noqa: S101 - nothing is made without it; narrows the type
        from organism.rag.graph import Graph

        dim = matrix.shape[1]
        try:
            if graph is None or (graph.model, graph.dim) != (model, dim) or not graph.can_follow(rows):
                graph = Graph.empty(self._hnswlib, model, dim)
            graph.follow(rows, matrix, self._is_closed)
            self._graphs[index_id] = graph
        except (RuntimeError, MemoryError) as error:
            _log.warning("library_graph_not_made", index=index_id, error=str(error))

    def _save(self, folder: Path) -> dict[str, SavedGraph]:
        saved, new = {}, folder / "new"
        try:
            for index_id, graph in list(self._graphs.items()):
                if not graph.is_saved:
                    folder.mkdir(mode=0o700, exist_ok=True)
                    graph.save(new)
                    new.chmod(0o600)
                    saved[index_id] = SavedGraph(graph.model, graph.dim, digest_of(new))
                    new.rename(folder / name_of(index_id))
        except OSError as error:
            _log.warning("library_graph_not_saved", error=str(error))
        return saved


def name_of(index_id: str) -> str:
    """What the file of an index is called: a digest, so that no id can be a path."""
    return f"{hashlib.sha256(index_id.encode()).hexdigest()[:32]}.hnsw"


def digest_of(file: Path) -> str:
    """The SHA-256 of a file."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
