"""Files as documents of the library: their text, in pieces that end where sections, paragraphs or sentences do."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from hashlib import sha256
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

PIECE_CHARS: Final = 1_500
"""Even of four bytes a character that is less than a document may have."""
MOST_FILE_BYTES: Final = 1 << 28
MOST_PATH_BYTES: Final = 1_000
"""As JSON, with the rest of a piece's metadata, that is less than the metadata of a document may have."""
MARKDOWN: Final = frozenset({".md", ".markdown"})
HTML: Final = frozenset({".html", ".htm"})
DIGEST_CHARS: Final = 16
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9._-]+")
_SLUG_CHARS: Final = 80
_PARAGRAPHS: Final = ("p", "div", "section", "article", "li", "ul", "ol", "table", "tr", "pre", "br", "blockquote")
_BLANK_LINES: Final = re.compile(r"\n\s*\n\s*")


class Unreadable(Exception):
    """A file has no text that can be read; the message says why."""


class Piece(NamedTuple):
    """A document of the library: a part of a file."""

    id: str
    text: str
    metadata: dict[str, Any]


class Page(NamedTuple):
    """A part of a file that has a place of its own; ``number`` is that of a PDF's page, 0 in other files."""

    number: int
    text: str


def files_in(path: Path) -> Iterator[Path]:
    """The file, or all below the folder that is not hidden, in order; what cannot be listed is given itself.

    Links to folders are not followed: they may form cycles. What is no file is left to ``pieces_of``.
    """
    waiting = [path]
    while waiting:
        each = waiting.pop()
        try:
            inside = sorted(filter(_is_taken, each.iterdir()), reverse=True) if each.is_dir() else None
        except OSError:
            inside = None
        if inside is None:
            yield each
        else:
            waiting += inside


def _is_taken(inside: Path) -> bool:
    return not inside.name.startswith(".") and not (inside.is_symlink() and inside.is_dir())


def pieces_of(file: Path, folder: Path | None = None) -> list[Piece]:
    """The text in pieces of a file that was named, or found in a ``folder`` that was. Raises ``Unreadable``."""
    try:
        with _opened(file, folder) as opened:
            if (size := os.fstat(opened.fileno()).st_size) > MOST_FILE_BYTES:
                raise Unreadable(f"it has more than {MOST_FILE_BYTES} bytes; divide it first")
            data = opened.read(size)
        file.as_posix().encode()
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from error
    except UnicodeEncodeError as error:
        raise Unreadable("its name is not UTF-8; rename it first") from error
    path, digest = file.as_posix(), sha256(data).hexdigest()[:DIGEST_CHARS]
    texts = [(page.number, piece) for page in pages_of(file, data) for piece in _split(file, page.text)]
    if len(path.encode()) > MOST_PATH_BYTES:
        raise Unreadable("its path is too long; name a folder nearer to it")
    slug = _FOREIGN.sub("-", path)[-_SLUG_CHARS:].lstrip("-")  # so that it cannot be read as an option
    prefix = f"{slug}-{sha256(path.encode()).hexdigest()[:8]}"
    return [
        Piece(
            f"{prefix}:{at}",
            text,
            {"path": path, "digest": digest, **({"page": number} if number else {})},
        )
        for at, (number, text) in enumerate(texts)
    ]


def _opened(file: Path, folder: Path | None) -> BinaryIO:
    """The file, a regular one; a link in a folder leads to none outside. Raises ``Unreadable``, ``OSError``."""
    real, flags = file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    if folder is not None:
        try:
            real = file.resolve(strict=True)
        except RuntimeError as error:  # as Python before 3.13 says of links in a circle
            raise Unreadable("it is a link that leads round in circles") from error
        if not real.is_relative_to(folder.resolve()):
            raise Unreadable("it is a link out of the folder; name what it leads to itself")
        flags |= os.O_NOFOLLOW
    if not stat.S_ISREG(real.stat().st_mode):
        raise Unreadable("it is no regular file")
    opened = os.fdopen(os.open(real, flags), "rb")
    if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):  # it was replaced just now
        opened.close()
        raise Unreadable("it is no regular file")
    return opened


def pages_of(file: Path, data: bytes) -> list[Page]:
    """The text of the file. Raises ``Unreadable``."""
    if file.suffix.lower() == ".pdf":
        return _of_pdf(data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"it is not UTF-8 (byte {error.start})") from error
    if "\0" in text:
        raise Unreadable("it is no text: it has NUL characters")
    return [Page(0, text_of_html(text) if file.suffix.lower() in HTML else text)]


def _of_pdf(data: bytes) -> list[Page]:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, PyPdfError

    try:
        reader = PdfReader(BytesIO(data))
        if reader.is_encrypted:
            raise Unreadable("it is encrypted; decrypt it first")
        return [Page(number, page.extract_text()) for number, page in enumerate(reader.pages, 1)]
    except DependencyError as error:  # trying the empty password takes a package that may be missing
        raise Unreadable("it is encrypted; decrypt it first") from error
    except (PyPdfError, OSError, ValueError, KeyError, RuntimeError) as error:
        raise Unreadable(f"it cannot be read as a PDF ({error})") from error


def _split(file: Path, text: str) -> list[str]:
    from semantic_text_splitter import MarkdownSplitter, TextSplitter

    splitter = MarkdownSplitter if file.suffix.lower() in MARKDOWN else TextSplitter
    text = text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")  # PDFs may contain any character
    return [piece for piece in splitter(PIECE_CHARS).chunks(text) if piece.strip()]


class _Reader(HTMLParser):
    """Collects the text that a reader of the page sees; each block begins a paragraph."""

    SILENT: Final = frozenset({"script", "style", "template", "noscript", "title"})
    BLOCKS: Final = frozenset({*_PARAGRAPHS, *(f"h{level}" for level in range(1, 7))})

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 - its signature
        self._silent += tag in self.SILENT
        self.parts += ["\n\n"] * (tag in self.BLOCKS)

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in self.SILENT and self._silent > 0
        self.parts += ["\n\n"] * (tag in self.BLOCKS)

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.parts.append(data)


def text_of_html(page: str) -> str:
    """The text of a page, without its scripts and styles."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return _BLANK_LINES.sub("\n\n", "".join(reader.parts)).strip()
