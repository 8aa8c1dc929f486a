"""A payload that a model writes into its text as XML, as the usage text of its peers shows it.

Such a document is a call of the one function that takes its class. It is mended where the codec mends, and what was
done is told with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from organism.agents.functions import Function
from organism.codec import Codec, Terms, UnknownPayload, repair_text
from organism.errors import InvalidPayload
from organism.model.completion import ToolCall


@dataclass(frozen=True, slots=True)
class WrittenDocument:
    """The call that a document is, and what was mended. Where it cannot be read, ``call.raw`` is the text."""

    call: ToolCall
    notes: tuple[str, ...] = ()


def written_document(text: str, taking: Mapping[str, Function], codec: Codec) -> WrittenDocument | None:
    """The document in a text whose root is a class that one function takes; None if there is none."""
    named = {name: function for name, function in taking.items() if f"<{name}" in text}
    if not named:
        return None
    try:
        repaired = repair_text(text, named.keys())
        found = codec.from_xml(repaired.document, Terms(len(repaired.document)))
    except UnknownPayload:
        return None
    except InvalidPayload:
        function = min(named.values(), key=lambda function: text.index(f"<{function.payload_class.__name__}"))
        return WrittenDocument(ToolCall("", function.spec.name, None, text))
    function = named[type(found).__name__]
    return WrittenDocument(ToolCall("", function.spec.name, orjson.loads(codec.json(found))), repaired.notes)
