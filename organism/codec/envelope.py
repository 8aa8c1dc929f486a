"""The envelope around a payload: written as canonical text, read as elements."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from lxml.etree import _Element

from organism.codec.lexical import attribute, closing, escaped, opening
from organism.codec.limits import ENVELOPE, invalid, shown
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


def wrapper(name: str) -> Callable[[str, str, str, str], str]:
    """A function from sender, receiver, token and the content of an element ``name`` to the canonical envelope."""
    before, after = _BODY + opening(name, attribute("xmlns", "")), closing(name) + _TAIL

    def wrap(from_: str, to: str, token: str, content: str) -> str:
        return "".join((_between(from_, to), escaped(token), before, content, after))

    return wrap


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


def _meta(root: _Element) -> list[_Element]:
    metas = [child for child in root if child.tag == _META]
    if len(metas) > 1:
        raise InvalidPayload("The envelope does not fit: expected one <meta>, came more.")
    return [child for meta in metas for child in meta]
