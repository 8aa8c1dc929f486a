"""Text that comes in pieces which may end within a character."""

from __future__ import annotations

from typing import Final

FIRST_HALF: Final = ("\ud800", "\udbff")


class Characters:
    """Joins the halves of characters that a server has torn apart; what stays a half is replaced by U+FFFD."""

    def __init__(self) -> None:
        self._half = ""

    def take(self, piece: str) -> str:
        """The whole characters so far."""
        if not piece:
            return ""
        text = self._half + piece
        self._half = ""
        if FIRST_HALF[0] <= text[-1] <= FIRST_HALF[1]:
            text, self._half = text[:-1], text[-1]
        return mended(text)

    def rest(self) -> str:
        """What is left at the end."""
        rest, self._half = self._half, ""
        return mended(rest)


def mended(text: str) -> str:
    """The text with halves joined, or replaced where there is nothing to join."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
