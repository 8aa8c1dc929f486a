"""Files of the disk as the server would read them."""

from __future__ import annotations

from pathlib import Path

from organism.cli.ingest import PLAIN, TYPES, bytes_of
from organism.rag.files import KINDS, Kind, Piece, pieces_of


def kind_of(file: Path) -> Kind:
    """What the command line says that it is."""
    return KINDS[TYPES.get(file.suffix, PLAIN)]


def pieces(file: Path) -> list[Piece]:
    """Its text, read in this process."""
    return pieces_of(file.as_posix(), kind_of(file), bytes_of(file))
