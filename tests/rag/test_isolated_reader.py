"""Hostile files: each is read in a process of its own, and whatever goes wrong is that it cannot be read."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from zlib import compress

import pytest

from organism.cli.ingest import LeftOut, bytes_of, files_in
from organism.rag.files import Piece, Unreadable
from organism.rag.isolated_reader import read_pieces
from tests.rag.reading import kind_of, pieces

SECONDS = 4
"""Enough for what is harmless, on a busy machine too."""
MEMORY_BYTES = 200 << 20


async def read(file: Path) -> list[Piece]:
    """The pieces of a file, read in a process of its own."""
    return await read_pieces(file.as_posix(), kind_of(file), bytes_of(file), SECONDS, MEMORY_BYTES)


def bomb() -> bytes:
    """A small PDF whose page unpacks to millions of operations."""
    packed = compress(b"[] TJ " * 8_000_000)
    return b"".join(
        (
            b"%PDF-1.4\n1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj\n",
            b"2 0 obj << /Type /Pages /Kids [3 0 R] /Count 1 >> endobj\n",
            b"3 0 obj << /Type /Page /Parent 2 0 R /Contents 4 0 R >> endobj\n",
            b"4 0 obj << /Filter /FlateDecode /Length %d >> stream\n" % len(packed),
            packed,
            b"\nendstream endobj\ntrailer << /Root 1 0 R /Size 5 >>\n%%EOF",
        )
    )


CIRCLE = b"""%PDF-1.4
1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj
2 0 obj << /Type /Pages /Kids [2 0 R] /Count 1 >> endobj
trailer << /Root 1 0 R /Size 3 >>
%%EOF"""
NESTED = CIRCLE.replace(b"[2 0 R]", b"[" * 100_000)


HOSTILE: dict[str, tuple[str, Callable[[], bytes]]] = {
    "comments without an end": ("page.html", lambda: b"<!--" * 300_000),
    "a PDF that unpacks to what no memory has": ("bomb.pdf", bomb),
    "a page tree in a circle": ("circle.pdf", lambda: CIRCLE),
    "a PDF nested deeper than a parser goes": ("deep.pdf", lambda: NESTED),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_file_cannot_be_read_and_a_harmless_one_is(tmp_path: Path, name: str) -> None:
    named, content = HOSTILE[name]
    file, harmless = tmp_path / named, tmp_path / "harmless.md"
    file.write_bytes(content())
    harmless.write_text("A text.")
    with pytest.raises(Unreadable, match="cannot be read"):
        await read(file)
    assert await read(harmless) == pieces(harmless)


def test_what_is_no_regular_file_is_refused_and_blocks_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.txt")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket.txt"))
    for file in (tmp_path / "fifo.txt", tmp_path / "socket.txt", Path("/dev/zero"), tmp_path):
        with pytest.raises(LeftOut, match="no regular file"):
            bytes_of(file)


def test_a_link_in_a_folder_leads_to_no_file_outside(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "inner").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("Hidden.")
    (folder / "inside.txt").write_text("Shown.")
    for name, target in (("out", "../secret.txt"), ("circle", "circle.txt"), ("in", "inside.txt")):
        (folder / f"{name}.txt").symlink_to(target)
    (folder / "inner" / "up.txt").symlink_to(tmp_path / "secret.txt")
    found: dict[str, bytes] = {}
    refused: list[str] = []
    for file in files_in(folder):
        try:
            found[file.name] = bytes_of(file, folder)
        except LeftOut:
            refused.append(file.name)
    assert refused == ["circle.txt", "up.txt", "out.txt"]
    assert found == {"inside.txt": b"Shown.", "in.txt": b"Shown."}
    assert bytes_of(folder / "out.txt") == b"Hidden."  # it was named itself


def test_folders_in_folders_are_listed_however_deep_they_are(tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(60):
        deep = deep / "/".join("d" * 20)
        deep.mkdir(parents=True)
    (deep / "deep.txt").write_text("Deep.")
    (tmp_path / "text.txt").write_text("A text.")
    found = list(files_in(tmp_path))
    assert [file.name for file in found] == ["deep.txt", "text.txt"]
    assert bytes_of(found[1], tmp_path) == b"A text."
    found[0].unlink()
    while deep != tmp_path:  # pytest would not come down so far
        deep.rmdir()
        deep = deep.parent


async def test_text_that_is_no_unicode_is_read_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<p>one &#xD800; two &#0; three")
    (piece,) = await read(tmp_path / "page.html")
    assert piece.text.encode().startswith(b"one")
