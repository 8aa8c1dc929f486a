"""Packs the built page: makes of each file its ``.br`` and ``.gz``, which the server sends to who accepts them.

The wheel's build does it (scripts/build_hook.py), and scripts/setup in a clone. Without brotli there are only ``.gz``.
"""

from __future__ import annotations

import gzip
import sys
from contextlib import suppress
from pathlib import Path

LEAST_BYTES = 1 << 10
ENDINGS = (".br", ".gz")


def pack(folder: Path) -> None:
    """Pack the folder's files, each from anew; one that would not become smaller has no packed form.

    The ``.gz`` comes last: the server takes one that unpacks to its file as the sign that the ``.br`` is of it too.
    """
    for old in [path for path in folder.rglob("*") if path.suffix in ENDINGS]:
        old.unlink()
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        content = path.read_bytes()
        if len(content) < LEAST_BYTES:
            continue
        with suppress(ImportError):
            import brotli  # noqa: PLC0415 - without it the page works too

            Path(f"{path}.br").write_bytes(brotli.compress(content))
        Path(f"{path}.gz").write_bytes(gzip.compress(content, 9, mtime=0))


if __name__ == "__main__":
    pack(Path(sys.argv[1]))
