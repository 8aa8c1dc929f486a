"""The files of the page: in fewer bytes for who accepts it, and kept for good where a name says what is in the file.

Next to ``app.js`` may lie what ``scripts/pack_page.py`` has made of it: ``app.js.br`` and ``app.js.gz``. They are used
only if the ``.gz``, which is written last, unpacks to the file: one that was changed goes plain until it is packed.
"""

from __future__ import annotations

import gzip
import os
import re
import zlib
from pathlib import Path
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from organism.server.http.compression import accepts

CODINGS: Final = {"br": ".br", "gzip": ".gz"}
"""What a file may come as, the shorter first, and how the packed file's name ends."""
_HASHED: Final = re.compile(r"assets/.+-[\w-]{8}\.\w+")


def files_of(folder: Path) -> list[str]:
    """The paths of a folder's files, but for packed ones."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix not in CODINGS.values())
    return [path.relative_to(folder).as_posix() for path in found]


def is_hashed(path: str) -> bool:
    """Whether the name has the hash of what is in the file, as the page's build gives it: it never changes."""
    return _HASHED.fullmatch(path) is not None


class PageFiles(StaticFiles):
    """The files of a folder, as they are packed now. One that changes from now on goes plain: its ETag is another."""

    def __init__(self, folder: Path) -> None:
        super().__init__(directory=folder, html=True)
        packed = [folder / path for path in files_of(folder) if _is_packed(folder / path)]
        self._packed = {str(path): _version(path.stat()) for path in packed}

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers.add_vary_header("Accept-Encoding")
        asked = Headers(scope=scope)
        is_packed = self._packed.get(str(full_path)) == _version(stat_result)
        if not isinstance(response, FileResponse) or not is_packed or "range" in asked:
            return response
        for coding, ending in CODINGS.items():
            packed = Path(f"{full_path}{ending}")
            if accepts(asked.get("accept-encoding", ""), coding) and packed.is_file():
                said = {name: response.headers[name] for name in ("etag", "last-modified", "vary")}
                headers = {**said, "content-encoding": coding}
                return FileResponse(packed, status_code, headers, response.media_type, stat_result=packed.stat())
        return response


def _version(found: os.stat_result) -> tuple[int, int]:
    """What a file's ETag is made of."""
    return found.st_mtime_ns, found.st_size


def _is_packed(path: Path) -> bool:
    try:
        return gzip.decompress(Path(f"{path}.gz").read_bytes()) == path.read_bytes()
    except (OSError, EOFError, zlib.error):  # there is none, or it is no whole one
        return False
