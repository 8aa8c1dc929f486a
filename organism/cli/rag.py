"""``organism rag …``: the library's indices, and files as their documents."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import typer
from rich.progress import Progress

from organism.cli.client import Client, drop_none, own_name, path_of
from organism.cli.exits import Exit
from organism.cli.ingest import PLAIN, TYPES, LeftOut, bytes_of, files_in
from organism.cli.options import AddDocuments, Documents, QueryIndex, ReembedIndex, Remote, RemoveDocuments
from organism.cli.output import Columns, SafeConsole, fields, note, out, print_json, refuse, show_list, show_text
from organism.errors import FileUnreadable
from organism.rag.files import digest_of

MOST: Final = 1 << 30
EXCERPT_CHARS: Final = 60
POLL_SECONDS: Final = 0.3
LINE_SECONDS: Final = 3.0
"""Without a terminal, progress is a line at this interval."""
EMBEDDED: Final = "documents are embedded"
_INDICES: Final[Columns] = {
    "INDEX": "id",
    "DOCUMENTS": lambda index: str(index["doc_count"]),
    "MODEL": "embedding_model",
    "USED BY": lambda index: ", ".join(index["used_by"]) or "-",
    "WORK": lambda index: "{kind} {done}/{total}".format(**index["work"]) if index["work"] else "-",
    "CREATED": "created_at",
}
_DOCUMENTS: Final[Columns] = {"DOCUMENT": "id", "TEXT": lambda each: each["text"][:EXCERPT_CHARS]}


class _Library:
    """The library of the server that the options name."""

    def __init__(self, options: Remote) -> None:
        self._client = Client(options)
        self._more: dict[str, Any] = {"base": "/a1/rag", "headers": {"SPASS-User-Id": own_name()}}

    def rows(self, name: str, limit: int, *parts: str) -> Any:
        return self._client.rows(name, {}, limit, path_of("indices", *parts), **self._more)

    def get(self, *parts: str) -> Any:
        return self._client.get(path_of("indices", *parts), **self._more)

    def post(self, body: Any, *parts: str, **more: Any) -> Any:
        return self._client.post(path_of("indices", *parts), body, **self._more, **more)

    def documents(self, index: str) -> list[Any]:
        """All documents of the index; none if it is not there yet."""
        there = {each["id"] for each in self.rows("indices", MOST).rows}
        found: list[Any] = self.rows("documents", MOST, index, "documents").rows if index in there else []
        return found

    def put_file(self, index: str, file: Path, data: bytes) -> int:
        """How many documents the file has become. Raises ``FileUnreadable``."""
        kind = TYPES.get(file.suffix.lower(), PLAIN)
        path = path_of("indices", index, "files")
        return int(self._client.post_file(path, data, kind, file.as_posix(), **self._more)["documents"])

    def delete(self, *parts: str) -> Any:
        return self._client.delete(path_of("indices", *parts), **self._more)


def indices(options: Remote) -> None:
    """List the indices."""
    remedy = "organism rag query INDEX TEXT"
    show_list(options, _Library(options).rows("indices", MOST), _INDICES, "There are no indices.", remedy)


def documents(options: Documents) -> None:
    """List an index's documents, or show one."""
    library = _Library(options)
    if options.document is None:
        found = library.rows("documents", options.limit, options.index, "documents")
        show_list(options, found, _DOCUMENTS, "The index has no documents.")
        return
    document = library.get(options.index, "documents", options.document)
    if options.json:
        print_json(document)
        return
    fields({"document": document["id"], **{name: str(value) for name, value in document["metadata"].items()}})
    out().print(f"\n{document['text']}")


def query(options: QueryIndex) -> None:
    """The documents that answer a question best."""
    body = drop_none({"query": options.text, "top_k": options.top_k, "mode": options.mode})
    answer = _Library(options).post(body, options.index, "query")
    if options.json:
        print_json(answer)
        return
    for each in answer["results"]:
        fields({f"{each['score']:.3f}": each["id"]})
        out().print(f"{each['text'].strip()}\n")
    if not answer["results"]:
        out().print("Nothing was found.")


def reembed(options: ReembedIndex) -> None:
    """Give an index another embedding model; it is searched by the old one meanwhile."""
    body = {"embedding_model": options.model}
    index = _Library(options).post(body, options.index, "reembed", timeout=None)  # as long as it takes
    show_text(options, index, f"{index['doc_count']} documents, now by the model {index['embedding_model']}.")


def remove(options: RemoveDocuments) -> None:
    """Delete a document, or an index with all of its documents."""
    where = (options.index,) if options.document is None else (options.index, "documents", options.document)
    answer = _Library(options).delete(*where)
    show_text(options, answer, "Deleted." if answer["deleted"] else "There was no such document.")


def add(options: AddDocuments) -> None:
    """Put files into an index. What is there unchanged is not sent; pieces that a file no longer has are deleted.

    Of a folder, files without text are left out; one that is named itself is a failure then, and the others go on.
    """
    path_of(options.index)  # what cannot be one is refused before files are read
    library = _Library(options)
    files = _files(options.path)
    there = (each["metadata"] for each in library.documents(options.index))
    known = Counter((each.get("path"), each.get("digest")) for each in there)
    counted = {"files": 0, "sent": 0, "unchanged": 0, "deleted": 0, "left_out": 0}
    failed = False
    with _Progress(is_silent=options.json) as progress:
        for number, file in enumerate(files, 1):
            progress.show(number, len(files), "files are read")
            name = file.as_posix()
            try:
                data = bytes_of(file, files[file])
                unchanged = known[name, digest_of(data)]
                sent = 0 if unchanged else library.put_file(options.index, file, data)
            except (LeftOut, FileUnreadable) as why:
                counted["left_out"] += 1
                failed = failed or file in options.path
                note(f"{file} is left out: {why}.")
                continue
            counted["files"] += 1
            if unchanged:
                counted["unchanged"] += unchanged
                continue
            if not sent:
                note(f"{file} has no text; scanned pages need text recognition first.")
            before = sum(count for (path, _), count in known.items() if path == name)
            counted["sent"] += sent
            counted["deleted"] += max(0, before - sent)
        if known or counted["sent"]:
            _embedded(library, options.index, progress)
    summary = "Files: {files}; pieces sent: {sent}, unchanged: {unchanged}, deleted: {deleted}.".format(**counted)
    show_text(options, {"index": options.index, **counted}, summary)
    if failed:
        raise typer.Exit(Exit.FAILED)


class _Progress:
    """On a terminal a bar that goes at the end, else plain lines; on standard error, and with ``--json`` none."""

    def __init__(self, *, is_silent: bool) -> None:
        console = SafeConsole(stderr=True)
        self._says_lines = not is_silent and not console.is_terminal
        self._bar = Progress(console=console, transient=True, disable=is_silent or self._says_lines)
        self._task = self._bar.add_task("")
        self._said = time.monotonic()

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._bar.stop()

    def show(self, done: int, total: int, what: str, *, always: bool = False) -> None:
        """Show how many are done; ``always``: even if the last line was written just now."""
        self._bar.update(self._task, completed=done, total=total, description=what)
        now = time.monotonic()
        if self._says_lines and (always or now - self._said >= LINE_SECONDS):
            self._said = now
            note(f"{done} of {total} {what}.")


def _embedded(library: _Library, index: str, progress: _Progress) -> None:
    """Wait until the server has embedded the index, which it goes on with if this command ends before."""
    while (now := library.get(index, "embedding"))["embedded"] < now["doc_count"]:
        progress.show(now["embedded"], now["doc_count"], EMBEDDED)
        if now["error"]:
            refuse(
                Exit.FAILED,
                f"All is stored, but {now['embedded']} of {now['doc_count']} documents are embedded: {now['error']}",
                "The server tries again by itself; the same command again waits for it.",
            )
        time.sleep(POLL_SECONDS)
    progress.show(now["embedded"], now["doc_count"], EMBEDDED, always=True)


def _files(paths: Sequence[Path]) -> dict[Path, Path | None]:
    """The files, each with the folder in which it was found; None: it was named itself."""
    files: dict[Path, Path | None] = {}
    for path in paths:
        for file in files_in(path):
            files[file] = None if file == path else files.get(file, path)
    return files
