"""The envelope around a payload: written as canonical text, read as elements."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from lxml.etree import _Element

from organism.codec.lexical import attribute, closing, escaped, opening
from organism.codec.limits import ENVELOPE, invalid, shown
from organism.codec.shape import Items, Payload, Shape, Table, Variant, inner
from organism.errors import Fault, InvalidPayload

_IN_ENVELOPE = f"{{{ENVELOPE}}}"
MESSAGE = _IN_ENVELOPE + "message"
_META = _IN_ENVELOPE + "meta"
_CLAIMS = ("from", "to", "thread", "tenant")
_HEAD = "".join((opening("message", attribute("xmlns", ENVELOPE)), opening("meta"), opening("from")))
_TO = closing("from") + opening("to")
_THREAD = closing("to") + opening("thread")
_BODY = closing("thread") + closing("meta")
_TAIL = closing("message")


class Around:
    """The text around payloads of one class in an envelope, made once."""

    __slots__ = ("_after", "_before")

    def __init__(self, name: str) -> None:
        self._before = _BODY + opening(name, attribute("xmlns", ""))
        self._after = closing(name) + _TAIL

    def text(self, from_: str, to: str, token: str, content: str) -> str:
        """The canonical envelope of the payload whose element holds ``content``."""
        return "".join((_between(from_, to), escaped(token), self._before, content, self._after))


@lru_cache(maxsize=1024)
def _between(from_: str, to: str) -> str:
    """The envelope's begin: the same for all that one listener sends to another."""
    return "".join((_HEAD, escaped(from_), _TO, escaped(to), _THREAD))


def claims(root: _Element) -> dict[str, str]:
    """What an envelope from outside says of ``from``, ``to``, ``thread`` and ``tenant``, as far as it does."""
    said: dict[str, str] = {}
    for element in _meta(root):
        space, _, name = str(element.tag).rpartition("}")
        if space + "}" != _IN_ENVELOPE or name not in _CLAIMS or name in said or len(element):
            message = f"expected at most one each of <from>, <to> and <thread>, came <{name}>"
            raise invalid("The envelope does not fit", [Fault("/meta", message)])
        said[name] = element.text or ""
    return said


def enclosed(root: _Element) -> _Element:
    """The payload's element in an envelope from outside, whose ``<meta>`` may be missing."""
    payloads = [child for child in root if child.tag != _META]
    if root.tag != MESSAGE or len(payloads) != 1:
        came = f"one with {len(payloads)}" if root.tag == MESSAGE else shown(str(root.tag))
        raise InvalidPayload(f"Expected an envelope, <message> of {ENVELOPE} with one payload, came {came}.")
    return payloads[0]


def element_names(payloads: Iterable[Payload]) -> frozenset[str]:
    """Each name that an element may have in a document of one of ``payloads``, envelope included."""
    names = {"message", "meta", *_CLAIMS}
    for payload in payloads:
        for record in payload.records.values():
            names.add(record.name)
            names.update(field.name for field in record.fields)
            names.update(name for field in record.fields for name in _inside(field.shape))
    return frozenset(names)


def _inside(shape: Shape) -> Iterable[str]:
    match inner(shape):
        case Items(item) | Table(_, item):
            return ("item", *_inside(item))
        case Variant(classes):
            return [cls.__name__ for cls in classes]
        case _:
            return ()


def _meta(root: _Element) -> list[_Element]:
    metas = [child for child in root if child.tag == _META]
    if len(metas) > 1:
        raise InvalidPayload("The envelope does not fit: expected one <meta>, came more.")
    return [child for meta in metas for child in meta]
