"""The body of an answer as it comes: a stream of events, or one JSON document where a server does not stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Protocol

from organism.agents.providers.wire.events import Event, Events
from organism.agents.providers.wire.faults import Faults
from organism.agents.providers.wire.json_text import ends_early, loads
from organism.model.completion import Part

MOST_BYTES: Final = 64 * 1024 * 1024
MOST_EVENT_BYTES: Final = 8 * 1024 * 1024
CUT_MARK: Final = b"[DONE"
"""The mark of the end, but for its last sign."""
BLANK: Final = b" \t\r\n\xef\xbb\xbf"
"""What may stand before the first sign: white space, and the mark of UTF-8."""


class Reader(Protocol):
    """Makes parts of what a server says, in the words of one API."""

    is_finished: bool
    """The model has said why it stopped; what may follow is the usage."""
    is_ended: bool
    """Nothing follows."""

    def event(self, event: Event) -> Iterable[Part]:
        """What an event of a stream comes to. Raises ``ProviderError``."""

    def whole(self, document: Mapping[str, Any]) -> Iterable[Part]:
        """What an answer in one piece comes to. Raises ``ProviderError``."""

    def end(self) -> Iterable[Part]:
        """What was kept for the end, and that. Raises ``ProviderError`` if the answer is not whole."""


class Body:
    """Hands a reader what comes, and bounds it."""

    def __init__(self, reader: Reader, faults: Faults) -> None:
        self._reader = reader
        self._faults = faults
        self._events = Events()
        self._document: list[bytes] = []
        self._kind = b""
        self._bytes = 0

    def feed(self, chunk: bytes) -> Iterator[Part]:
        """The parts that the chunk completes. Raises ``ProviderError``."""
        self._bytes += len(chunk)
        if self._bytes > MOST_BYTES:
            raise self._faults.malformed(f"with more than {MOST_BYTES >> 20} MiB")
        if not self._kind:
            chunk = chunk.lstrip(BLANK)
            self._kind = chunk[:1]
        if self._kind == b"<":
            raise self._faults.malformed("with a page for people")
        if self._kind in {b"{", b"["}:
            self._document.append(chunk)
        else:
            yield from self._feed_events(chunk)

    def _feed_events(self, chunk: bytes) -> Iterator[Part]:
        for event in self._events.feed(chunk):
            yield from self._reader.event(event)
            if self._reader.is_ended:
                return
        if self._events.held > MOST_EVENT_BYTES:
            raise self._faults.malformed(f"with an event of more than {MOST_EVENT_BYTES >> 20} MiB")

    def end(self) -> Iterator[Part]:
        """The parts that the end completes. Raises ``ProviderError``."""
        if self._document:
            yield from self._reader.whole(self._read(b"".join(self._document)))
        elif not self._reader.is_ended:
            yield from self._last_event()
        yield from self._reader.end()

    def _read(self, text: bytes) -> Mapping[str, Any]:
        try:
            document = loads(text)
        except ValueError:
            raise (self._faults.cut() if ends_early(text) else self._faults.malformed("what is no JSON")) from None
        if isinstance(document, list) and document and isinstance(document[0], dict):
            document = document[0]
        if not isinstance(document, dict):
            raise self._faults.malformed("with JSON that is no object")
        return document

    def _last_event(self) -> Iterator[Part]:
        """What stands at the end without the blank line behind it: an event if it is whole, else the mark of a cut."""
        for event in self._events.end():
            if not ends_early(event.data) and not CUT_MARK.startswith(event.data):
                yield from self._reader.event(event)
        if self._events.foreign and not self._events.seen:
            raise self._faults.malformed("with what is neither events nor JSON")
