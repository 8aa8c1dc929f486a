"""The veil before text that is shown while it comes: no live secret and no half of a character passes it (S30).

A text comes in pieces, so what may become a secret, or is the first half of a character, is held back until what
follows has come. What passes is what the log will hold, so that both count the same characters.
"""

from __future__ import annotations

from organism.model.redact import Redactor


class Veil:
    """What of one text was held back so far."""

    __slots__ = ("_held", "_redactor")

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""

    def take(self, text: str) -> str:
        """The next piece: what may be shown now."""
        shown, self._held = self._redactor.parted(whole(self._held + text))
        return shown

    def rest(self) -> str:
        """Nothing follows: what was held back, as it may be shown."""
        held, self._held = self._held, ""
        return self._redactor.masked(held.encode("utf-8", "replace").decode())


def whole(text: str) -> str:
    """The text with the halves of its characters joined; a half at its end may find the other one yet."""
    if text.isascii() or not _has_half(text):
        return text
    end = -1 if "\ud800" <= text[-1] <= "\udbff" else len(text)
    joined = text[:end].encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return joined + text[end:] if end == -1 else joined


def _has_half(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
