"""Plain classes: the XSD as one pattern over the text, which checks and reads a document in a tenth of the time.

The canonical documents of a class whose fields are free texts, whole numbers and truth values are a regular language,
so a pattern made of the same shapes as the XSD can say whether a text is one of them, and what its values are. It takes
less than the XSD does, never more: no reference (``&amp;``), no number in any but its shortest form. Whatever it does
not take is for libxml2 to parse, and to refuse (docs/adr/0048).

A class of nothing but texts is written and drafted here too, by loops that compile well; whatever is odd about a value
is for the closures of ``payload.py`` and ``json_form.py``, which say what.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from organism.codec.envelope import Around
from organism.codec.lexical import VALUE_OF
from organism.codec.limits import Terms
from organism.codec.markup import closing, escaped, opening
from organism.codec.payload import maker
from organism.codec.shape import FREE, Field, Kind, Record, Scalar, inner
from organism.codec.xsd import MAX_NAME_CHARS, MAX_TOKEN_CHARS, NAME_BEGIN, NAME_REST

_CHARACTER = r"[^<>&\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]"
"""One that XML carries and canonical text does not escape."""
_NAME = f"{NAME_BEGIN}{NAME_REST}{{0,{MAX_NAME_CHARS - 1}}}"
_TOKEN = rf"{_CHARACTER}{{1,{MAX_TOKEN_CHARS}}}"
_VALUES = {
    Kind.STR: f"{_CHARACTER}*",
    Kind.INT: "0|-?[1-9][0-9]{0,17}",  # all of these are within ±2⁶³
    Kind.BOOL: "true|false",
}
_NOTHING = "(?!)"
_ENVELOPE_ELEMENTS = 5


class Plain:
    """The documents of one class, with their envelopes; of a class that is not plain it takes none."""

    __slots__ = ("_class", "_elements", "_fullmatch", "_make", "_texts", "_value_of")

    def __init__(self, record: Record, around: Around) -> None:
        fields = record.fields
        is_plain = all(map(_is_plain, fields))
        content = "".join(map(_element, fields)) if is_plain else _NOTHING
        self._fullmatch = re.compile(around.pattern(_NAME, _TOKEN, content)).fullmatch
        self._class: Callable[..., Any] = record.cls
        self._texts: list[tuple[str, str, str]] | None = None
        if is_plain and all(map(_is_required_text, fields)):
            self._texts = [(field.name, opening(field.name), closing(field.name)) for field in fields]
        self._make = maker(record)
        self._value_of = list(map(_reader, fields)) if is_plain else []
        self._elements = _ENVELOPE_ELEMENTS + 1 + len(fields)

    def write(self, payload: Any) -> str | None:
        """What stands between the tags of an object of the class; None if its writer has to see to it."""
        if self._texts is None:
            return None
        parts: list[str] = []
        for name, begin, end in self._texts:
            value = getattr(payload, name)
            if type(value) is not str:
                return None
            parts.append(begin)
            parts.append(escaped(value))
            parts.append(end)
        return "".join(parts)

    def draft(self, value: Any) -> Any:
        """A payload from its JSON value; None if ``from_json`` has to see to it. Raises what the class raises."""
        if self._texts is None or type(value) is not dict or len(value) != len(self._texts):
            return None
        texts: list[str] = []
        for name, _, _ in self._texts:
            text = value.get(name)
            if type(text) is not str or not text.isprintable():
                return None
            texts.append(text)
        return self._class(*texts)

    def find(self, document: str, size: int, terms: Terms) -> re.Match[str] | None:
        """The values in a document of ``size`` bytes, for ``read``; None if the pattern does not take it."""
        if size > terms.payload_bytes or self._elements > terms.elements:
            return None
        return self._fullmatch(document)

    def read(self, found: re.Match[str]) -> Any:
        """A fresh payload. Raises what the class raises."""
        texts = found.groups()
        if self._texts is not None:
            return self._class(*texts)
        return self._make([value_of(text) for value_of, text in zip(self._value_of, texts, strict=True)])


def _is_plain(field: Field) -> bool:
    shape = inner(field.shape)
    return isinstance(shape, Scalar) and shape.kind in _VALUES and shape.facets == FREE and not field.nil


def _is_required_text(field: Field) -> bool:
    is_text = isinstance(field.shape, Scalar) and field.shape.kind is Kind.STR
    return is_text and field.absent is None and not field.keyword


def _element(field: Field) -> str:
    begin, end = re.escape(opening(field.name)), re.escape(closing(field.name))
    element = f"{begin}({_VALUES[_kind(field)]}){end}"
    return element if field.absent is None else f"(?:{element})?"


def _reader(field: Field) -> Callable[[Any], Any]:
    value_of: Callable[[Any], Any] = str if _kind(field) is Kind.STR else VALUE_OF[_kind(field)]
    absent = field.absent
    if absent is None:
        return value_of  # the element has to be there
    return lambda text: absent() if text is None else value_of(text)


def _kind(field: Field) -> Kind:
    shape = inner(field.shape)
    assert isinstance(shape, Scalar)  # noqa: S101 - a plain field is one
    return shape.kind
