"""Documents, their limits and their digests. Pure."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson
from msgspec import Struct, field

from organism.errors import Fault, InvalidField
from organism.model.ids import LIBRARY_ID

MOST_DOCUMENTS: Final = 256
"""So many come at once."""
MOST_TEXT_BYTES: Final = 8192
MOST_METADATA_BYTES: Final = 4096
MOST_TOP_K: Final = 50
MOST_CONDITIONS: Final = 16
SALT_BYTES: Final = 16
ID_PATTERN: Final = f"^(?:{LIBRARY_ID})$"
ID_RULE: Final = "an id is 1 to 128 letters, digits, `.`, `_`, `:` and `-`, but not `.` or `..`, which no URL can name"
_ID: Final = re.compile(ID_PATTERN.strip("^$"))


class Document(Struct, frozen=True):
    """What is found: a text under an id, and its metadata, JSON by name."""

    id: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


def digest_of(salt: bytes, document: Document) -> str:
    """What the log says of a document; once its salt is deleted, it reveals nothing of the text."""
    parts = [document.id, document.text, document.metadata]
    return hashlib.sha256(salt + orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()


def text_digest_of(text: str) -> str:
    """The digest by which the store finds that a text was embedded before."""
    return hashlib.sha256(text.encode()).hexdigest()


def check_id(index_id: str, place: str) -> None:
    """Raise ``InvalidField`` unless it can be the id of an index or a document."""
    if not _ID.fullmatch(index_id):
        raise InvalidField(f"{ID_RULE[0].upper()}{ID_RULE[1:]}; came {index_id[:140]!r}.", param=place)


def check(documents: Sequence[Document], place: str = "/documents") -> None:
    """Raise ``InvalidField`` that names each document and field that breaks a limit."""
    if len(documents) > MOST_DOCUMENTS:
        raise InvalidField(
            f"At most {MOST_DOCUMENTS} documents come at once; came {len(documents)}. Append the rest afterwards.",
            param=place,
        )
    faults = [fault for at, each in enumerate(documents) for fault in _faults(each, f"{place}/{at}")]
    counted = Counter(each.id for each in documents)
    faults += [
        Fault(f"{place}/{at}/id", f"{each.id[:140]!r} stands {counted[each.id]} times in this request")
        for at, each in enumerate(documents)
        if counted[each.id] > 1
    ]
    refuse(faults)


def check_one(document: Document) -> None:
    """The same for one document, whose fields stand in the body itself."""
    refuse([fault for fault in _faults(document, "") if fault.pointer != "/id"])


def refuse(faults: Sequence[Fault]) -> None:
    """Raise ``InvalidField`` if there are faults."""
    if faults:
        shown = "; ".join(f"{fault.pointer}: {fault.message}" for fault in faults[:3])
        more = f"; and {len(faults) - 3} more" if len(faults) > 3 else ""  # noqa: PLR2004 - as shown
        raise InvalidField(f"{shown}{more}. Nothing was stored.", details=tuple(faults))


def _faults(document: Document, place: str) -> Iterator[Fault]:
    named = f"document {document.id[:140]!r}: "
    if not _ID.fullmatch(document.id):
        yield Fault(f"{place}/id", f"{named}{ID_RULE}")
    size = len(document.text.encode())
    if not 0 < size <= MOST_TEXT_BYTES:
        yield Fault(f"{place}/text", f"{named}a text has 1 to {MOST_TEXT_BYTES} bytes of UTF-8; came {size}")
    try:
        size = len(orjson.dumps(document.metadata))
    except TypeError as error:  # a whole number beyond 64 bits
        yield Fault(f"{place}/metadata", f"{named}{error}")
        return
    if size > MOST_METADATA_BYTES:
        yield Fault(
            f"{place}/metadata", f"{named}metadata has at most {MOST_METADATA_BYTES} bytes of JSON; came {size}"
        )


def names_in(documents: Sequence[Document], place: str = "/documents") -> Iterator[tuple[str, str]]:
    """The places and texts of all names in them: ids, and names of metadata at any depth."""
    for at, each in enumerate(documents):
        here = f"{place}/{at}" if place else ""
        yield f"{here}/id", each.id
        yield from ((f"{here}/metadata", name) for name in _keys(each.metadata))


def _keys(value: Any) -> Iterator[str]:
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    if isinstance(value, Mapping):
        yield from value
    for each in inner:
        yield from _keys(each)


Filter = Mapping[str, Any]
"""What a document's metadata must say: each of these names with this very value."""


def check_query(text: str, wanted: Filter) -> None:
    """Raise ``InvalidField`` for a query that is too long, and for a filter that no metadata could match."""
    if not 0 < (size := len(text.encode())) <= MOST_TEXT_BYTES:
        raise InvalidField(f"A query has 1 to {MOST_TEXT_BYTES} bytes of UTF-8; came {size}.", param="/query")
    if len(wanted) > MOST_CONDITIONS:
        raise InvalidField(f"A filter has at most {MOST_CONDITIONS} names; came {len(wanted)}.", param="/filter")
    for name, value in wanted.items():
        if isinstance(value, dict | list):
            raise InvalidField(
                f"A filter compares with a text, a number, true, false or null; {name[:40]!r} has {value!r:.40}.",
                param="/filter",
            )
