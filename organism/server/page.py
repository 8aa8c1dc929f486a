"""The page at ``/``: a handful of files, read once at the start and served from memory."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from organism.server.call import Answer
from organism.server.headers import PAGE

_KINDS: Final[Mapping[str, bytes]] = MappingProxyType(
    {
        ".html": b"text/html; charset=utf-8",
        ".js": b"text/javascript; charset=utf-8",
        ".css": b"text/css; charset=utf-8",
        ".svg": b"image/svg+xml",
        ".woff2": b"font/woff2",
    }
)
_PACKAGE: Final = Path(__file__).resolve().parent.parent
DOCS_STYLE: Final = _PACKAGE / "server" / "documents" / "docs.css"
PLACES: Final = (_PACKAGE / "web", _PACKAGE.parent / "web" / "dist")
"""Where the built page lies: in an installed package, in a checkout."""


def load_page(places: tuple[Path, ...] = PLACES) -> Mapping[str, Answer]:
    """The files of the first place that has a page, and the style of ``/docs``, by their paths.

    A server without a page serves the API alone.
    """
    own = {"/docs.css": _file(DOCS_STYLE)}
    for place in places:
        if (place / "index.html").is_file():
            return own | _files(place)
    return own


def _files(place: Path) -> dict[str, Answer]:
    found = {
        f"/{path.relative_to(place).as_posix()}": path for path in sorted(place.rglob("*")) if path.suffix in _KINDS
    }
    files = {name: _file(path) for name, path in found.items()}
    return files | {"/": files["/index.html"]}


def _file(path: Path) -> Answer:
    body = path.read_bytes()
    tag = b'"%b"' % hashlib.sha256(body).hexdigest()[:32].encode()
    return Answer(body, kind=_KINDS[path.suffix], headers=((b"etag", tag), *PAGE))
