"""A model's text → a strict document and a list of the repairs.

Only for models' text: the result is parsed strictly like everything else, and what cannot be repaired is refused.
Repaired are fences and prose around the document, bare ``&`` and ``<`` in its text, tags that were not closed (also
where the text was cut off), and characters that XML cannot carry. No text is lost.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from organism.codec.lexical import closing, opening, replaced, uncarried
from organism.codec.limits import MAX_DEPTH, UnknownPayload, shown, too_deep
from organism.errors import InvalidPayload, pointer

MAX_NOTES = 20
_REFERENCE = r"(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});"
_BARE_AMPERSAND = re.compile(f"&(?!{_REFERENCE})")
_NUMBERED = re.compile(r"&#(?:x([0-9A-Fa-f]{1,6})|([0-9]{1,7}));")
_TAG = re.compile(
    r"""<(?P<slash>/?)(?P<name>[^\W\d][\w.\-]*(?::[\w.\-]+)?)(?:\s+[\w.:\-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*\s*(?P<empty>/?)>"""
)
_SECTIONS = {"<![CDATA[": "]]>", "<!--": "-->", "<?": "?>"}
_CUT_OFF = re.compile(r"<(?:/[\w.:\-]*|[^\W\d][\w.:\-]*(?:\s[^<>]*)?)\Z")
_ELEMENTS_FOLLOW = re.compile(r"\s*(?:<|\Z)")
_DOCTYPE = re.compile(r"<!\s*(?:DOCTYPE|ENTITY)", re.IGNORECASE)


class Repaired(NamedTuple):
    """A document to be parsed strictly, and what was done to get it; no notes: it was fine."""

    document: bytes
    notes: tuple[str, ...]


def repair_text(text: str, names: Collection[str]) -> Repaired:
    """The document in ``text`` whose root is one of ``names``; raises ``InvalidPayload`` if there is not just one."""
    return _Repairer(names).repair(text)


def repair_json(value: Any) -> tuple[Any, tuple[str, ...]]:
    """``value`` with U+FFFD for each character that XML cannot carry, and a note for each text that had one."""
    notes: list[str] = []
    repaired = _carried(value, "", notes)
    return repaired, tuple(notes[:MAX_NOTES])


def _carried(value: Any, at: str, notes: list[str]) -> Any:
    if isinstance(value, str):
        return _carried_text(value, at, notes)
    if isinstance(value, list):
        return [_carried(item, f"{at}/{index}", notes) for index, item in enumerate(value)]
    if isinstance(value, dict):
        repaired = {
            _carried_text(key, at, notes): _carried(item, pointer(at, key), notes) for key, item in value.items()
        }
        if len(repaired) < len(value):
            raise InvalidPayload(
                f"Two keys at {at or 'the root'} become one when their control characters are replaced."
            )
        return repaired
    return value


def _carried_text(text: str, at: str, notes: list[str]) -> str:
    found = uncarried(text)
    if not found:
        return text
    first = f"U+{ord(found[0]):04X} at {found.start()}"
    notes.append(f"{at or '/'}: replaced characters that XML cannot carry by U+FFFD, first {first}")
    return replaced(text)


class _Token(NamedTuple):
    """A tag, or a section (CDATA, comment, processing instruction), which has no name."""

    start: int
    end: int
    text: str
    name: str = ""
    closes: bool = False
    empty: bool = False


@dataclass(slots=True)
class _Repairer:
    """Reads the text once from left to right, with the tags that are open."""

    names: Collection[str]
    notes: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    def repair(self, text: str) -> Repaired:
        text = _carried_text(text, "the text", self.notes)
        start = self._root(text)
        pieces: list[str] = []
        end = start
        for token in _tokens(text, start):
            pieces += (self._plain(text[end : token.start]), self._token(token))
            end = token.end
            if not self.open:
                break
        if self.open:
            rest = text[end:]
            if cut := _CUT_OFF.search(rest):
                self.notes.append(f"left out {shown(cut[0], 40)}, a tag that was cut off")
                rest = rest[: cut.start()]
            pieces += (self._plain(rest), self._close_all(len(self.open), "at the end"))
            end = len(text)
        self._note_prose(text[:start], text[end:])
        return Repaired("".join(pieces).encode(), tuple(self.notes[:MAX_NOTES]))

    def _root(self, text: str) -> int:
        """Where the document begins: at the first start tag of a known name that is not part of a sentence."""
        found = next((token for token in _tokens(text, 0) if self._begins(token, text)), None)
        if found is None:
            listed = ", ".join(map(opening, sorted(self.names)[:10])) or "none"
            raise UnknownPayload(f"No document was found in the text: expected one of {listed}, came {shown(text)}.")
        if _DOCTYPE.search(text, 0, found.start):
            raise InvalidPayload("The text has a DOCTYPE, which is never allowed and never repaired.")
        return found.start

    def _begins(self, token: _Token, text: str) -> bool:
        """A payload's root holds elements only: what is followed by words is a name in a sentence."""
        if token.name not in self.names or token.closes:
            return False
        return token.empty or _ELEMENTS_FOLLOW.match(text, token.end) is not None

    def _token(self, token: _Token) -> str:
        if not token.name:
            return token.text
        if not token.closes:
            if not token.empty:
                self.open.append(token.name)
            if len(self.open) > MAX_DEPTH:
                raise too_deep()
            return self._plain(token.text, tag=True)
        if token.name not in self.open:
            raise InvalidPayload(f"The text cannot be repaired: {token.text} closes what was never opened.")
        behind = self.open[::-1].index(token.name)
        closed = self._close_all(behind, f"before {token.text}") if behind else ""
        self.open.pop()
        return closed + token.text

    def _close_all(self, count: int, where: str) -> str:
        tags = [closing(self.open.pop()) for _ in range(count)]
        self.notes.append(f"closed {', '.join(tags)} {where}")
        return "".join(tags)

    def _plain(self, text: str, *, tag: bool = False) -> str:
        """Text between tags (or a tag, for its attributes) with its bare marks escaped."""
        repaired, count = _BARE_AMPERSAND.subn("&amp;", text)
        if count:
            self.notes.append(f"escaped {count} bare & in {shown(text.strip(), 40)}")
        if not tag and "<" in repaired:
            self.notes.append(f"escaped {repaired.count('<')} bare < in {shown(text.strip(), 40)}")
        if not tag:
            repaired = repaired.replace("<", "&lt;").replace("]]>", "]]&gt;")
        return _carried_references(repaired, self.notes)

    def _note_prose(self, before: str, after: str) -> None:
        if any(self._begins(token, after) for token in _tokens(after, 0)):
            raise InvalidPayload("The text holds more than one document: expected one.")
        fenced = "```" in before or "```" in after
        if fenced:
            self.notes.append("removed a fence")
        if before.replace("```xml", "").replace("```", "").strip() or after.replace("```", "").strip():
            self.notes.append(
                f"cut {len(before.strip())} characters before and {len(after.strip())} after the document"
            )


def _tokens(text: str, start: int) -> Iterator[_Token]:
    """The tags and sections of ``text`` from ``start`` on, in linear time; what only looks like one is passed over."""
    endless: set[str] = set()
    at = text.find("<", start)
    while at >= 0:
        end = at + 1
        if tag := _TAG.match(text, at):
            end = tag.end()
            yield _Token(at, end, tag[0], tag["name"], bool(tag["slash"]), bool(tag["empty"]))
        elif kind := next((kind for kind in _SECTIONS if text.startswith(kind, at) and kind not in endless), None):
            close = text.find(_SECTIONS[kind], at + len(kind))
            if close < 0:
                endless.add(kind)
            else:
                end = close + len(_SECTIONS[kind])
                yield _Token(at, end, text[at:end])
        at = text.find("<", end)


def _carried_references(text: str, notes: list[str]) -> str:
    """``text`` with U+FFFD for references to characters that XML cannot carry."""

    def carried(reference: re.Match[str]) -> str:
        code = int(reference[1], 16) if reference[1] else int(reference[2])
        if 0 < code <= sys.maxunicode and not uncarried(chr(code)):
            return reference[0]
        notes.append(f"replaced {reference[0]}, a character that XML cannot carry, by U+FFFD")
        return "\ufffd"

    return _NUMBERED.sub(carried, text)
