"""Files as documents of the library: their text, in pieces that end where sections, paragraphs or sentences do.

Read them by ``isolated_reader``: parsers were not written for hostile ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from html.parser import HTMLParser
from io import BytesIO
from typing import Any, Final, Literal, NamedTuple

PIECE_CHARS: Final = 1_500
"""Even of four bytes a character that is less than a document may have."""
MOST_NAME_BYTES: Final = 1_000
"""With the rest of a piece's metadata that is less than the metadata of a document may have."""
MOST_PAGES: Final = 2_000
MOST_PIECES: Final = 1 << 15
Kind = Literal["text", "markdown", "html", "pdf"]
KINDS: Final[Mapping[str, Kind]] = {
    "text/plain": "text",
    "text/markdown": "markdown",
    "text/html": "html",
    "application/pdf": "pdf",
}
"""What can be read, by its Content-Type."""
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


def is_file_name(name: str) -> bool:
    """Whether a file may be called so."""
    return name.isprintable() and 0 < len(name.encode()) <= MOST_NAME_BYTES


def prefix_of(name: str) -> str:
    """How the ids of a file's documents begin; no other file's begin so."""
    slug = _FOREIGN.sub("-", name)[-_SLUG_CHARS:].lstrip("-")  # so that it cannot be read as an option
    return f"{slug}-{sha256(name.encode()).hexdigest()[:8]}:"


def digest_of(data: bytes) -> str:
    """By which the documents of a file say what version of it they are of."""
    return sha256(data).hexdigest()[:DIGEST_CHARS]


def pieces_of(name: str, kind: Kind, data: bytes) -> list[Piece]:
    """The text of a file in pieces. Raises ``Unreadable``."""
    texts = [(page.number, piece) for page in pages_of(kind, data) for piece in _split(kind, page.text)]
    if len(texts) > MOST_PIECES:
        raise Unreadable(f"its text makes more than {MOST_PIECES} documents; divide it first")
    prefix, digest = prefix_of(name), digest_of(data)
    return [
        Piece(f"{prefix}{at}", text, {"path": name, "digest": digest, **({"page": number} if number else {})})
        for at, (number, text) in enumerate(texts)
    ]


def pages_of(kind: Kind, data: bytes) -> list[Page]:
    """The text of the file. Raises ``Unreadable``."""
    if kind == "pdf":
        return _of_pdf(data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"it is not UTF-8 (byte {error.start})") from error
    if "\0" in text:
        raise Unreadable("it is no text: it has NUL characters")
    return [Page(0, text_of_html(text) if kind == "html" else text)]


def _of_pdf(data: bytes) -> list[Page]:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, PyPdfError

    try:
        reader = PdfReader(BytesIO(data))
        if reader.is_encrypted:
            raise Unreadable("it is encrypted; decrypt it first")
        if (count := len(reader.pages)) > MOST_PAGES:
            raise Unreadable(f"it has {count} pages, more than {MOST_PAGES}; divide it first")
        return [Page(number, page.extract_text()) for number, page in enumerate(reader.pages, 1)]
    except DependencyError as error:  # trying the empty password takes a package that may be missing
        raise Unreadable("it is encrypted; decrypt it first") from error
    except (PyPdfError, OSError, ValueError, KeyError, RuntimeError) as error:
        raise Unreadable(f"it cannot be read as a PDF ({error})") from error


def _split(kind: Kind, text: str) -> list[str]:
    from semantic_text_splitter import MarkdownSplitter, TextSplitter

    splitter = MarkdownSplitter if kind == "markdown" else TextSplitter
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
