"""Fences: how text of others stands in a prompt (S20).

Each such text is labelled with what it is and stands between two marks that it cannot contain: whoever wrote it can
neither end the fence nor begin another. The mark is a digest over a secret of the turn, so that it is the same after a
restart and nobody who only knows the text can foresee it.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final, NamedTuple

_MARK_CHARS: Final = 12
_FENCED: Final = re.compile(
    r"<<(?P<label>[^\n]*) \[(?P<mark>[0-9a-f]{12})\]>>\n(?P<text>.*)\n<<end \[(?P=mark)\]>>", re.DOTALL
)


class Fenced(NamedTuple):
    """What stands in a fence: ``label`` says what it is."""

    label: str
    text: str


def fenced(label: str, text: str, secret: str) -> str:
    """``text`` between marks. ``label`` is one line of the organism's own words."""
    mark = _mark(secret, label, text)
    return f"<<{label} [{mark}]>>\n{text}\n<<end [{mark}]>>"


def unfenced(content: str) -> Fenced | None:
    """What a message holds that is one fence from beginning to end; None if it is not."""
    found = _FENCED.fullmatch(content)
    return Fenced(found["label"], found["text"]) if found else None


def _mark(secret: str, label: str, text: str) -> str:
    mark = sha256(f"{secret}\x00{label}\x00{text}".encode("utf-8", "surrogatepass")).hexdigest()[:_MARK_CHARS]
    while mark in text:
        mark = sha256(mark.encode()).hexdigest()[:_MARK_CHARS]
    return mark
