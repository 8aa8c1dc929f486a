"""What an index is asked, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field

from organism.rag.documents import Document
from organism.rag.store import InForce

if TYPE_CHECKING:
    from organism.rag.vectors import Vector

Mode = Literal["vector", "keyword", "hybrid"]
Match = Literal["keyword", "vector"]
Place = tuple[int, int]
"""The first character of a stretch of text, and the one behind it."""


class Question(Struct, frozen=True):
    """What is searched for in an index as of a generation: ``text`` by its words, ``vector`` by what is near it.

    ``vector`` is by the index's ``model``.
    """

    index: InForce
    mode: Mode
    text: str
    model: str
    vector: Vector | None
    count: int
    wanted: Mapping[str, Any] = field(default_factory=dict)


class Hit(Struct, frozen=True):
    """A document that was found. Scores compare only within one answer, cosines with others of the same model.

    ``matched`` says what it was found by, ``similarity`` is its cosine from 0 on, None if no vectors were compared;
    ``highlights`` are the places of the question's words, if it was found by words.
    """

    document: Document
    score: float
    matched: Sequence[Match]
    similarity: float | None
    highlights: Sequence[Place]
