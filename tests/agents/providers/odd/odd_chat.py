"""Odd answers of servers that say they speak the chat completions API, and what must come of each."""

from __future__ import annotations

from tests.agents.providers.odd.chunks import CALLED, Odd, call, calls, says, sse
from tests.agents.providers.odd.odd_calls import CALLS, USAGES
from tests.agents.providers.odd.odd_failures import ERRORS, GARBAGE, WHOLE
from tests.agents.providers.odd.odd_texts import CHARACTERS, EVENTS, FINISHES, TEXTS

ODD: dict[str, Odd] = {
    f"{kind}: {name}": odd
    for kind, table in {
        "text": TEXTS,
        "finish": FINISHES,
        "events": EVENTS,
        "characters": CHARACTERS,
        "calls": CALLS,
        "usage": USAGES,
        "error": ERRORS,
        "garbage": GARBAGE,
        "whole": WHOLE,
    }.items()
    for name, odd in table.items()
}
SOUND = sse(*map(says, ("grüße ", "🎉")), calls(call(0, "a", "f", '{"x":"ü"}')), CALLED, end=b"")
"""A sound stream of text and a call, without the mark of its end."""
