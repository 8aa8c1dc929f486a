"""What a schema is filled from: the input of a prompt if it has one, else what was said."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from organism.agents.providers.builtin.talking import Talk

ENOUGH_WORDS: Final = 4

_ENTRY: Final = re.compile(r"^(\"(?:[^\"\\\n]|\\.)*\"|[\w.\-]+) = (\S[^\n]*)$", re.MULTILINE)
_REQUEST: Final = re.compile(
    r"^(?:please |bitte )?(?:extract|return|reply|respond|answer|give|output|fill|choose|classify|extrahiere|gib|"
    r"antworte|fülle|wähle|klassifiziere)\b[^.:\n]{0,160}(?::\s*|[.]\s+|\n+)",
    re.IGNORECASE,
)


def given(talk: Talk) -> tuple[str, str]:
    """The text to fill a schema from: results of tools, then the message; if it says little, the talk before it.

    Given twice: with the names of the input's entries, by which values are found, and without, as it is quoted.
    """
    results = [result.text for result in talk.results]
    entries = entries_of(talk.message.text)
    own = _REQUEST.sub("", talk.message.material or talk.message.text)
    if not entries and len(own.split()) < ENOUGH_WORDS and not results:
        own = "\n".join((*(said.text for said in talk.before), own))
    named = "\n".join(f"{key}: {value}" for key, value in entries.items()) if entries else own
    plain = "\n".join(entries.values()) if entries else own
    return "\n".join((*results, named)), "\n".join((*results, plain))


def entries_of(text: str) -> Mapping[str, str]:
    """The entries of lines such as ``key = "value"``, the values without quotes and escapes."""
    found = {}
    for match in _ENTRY.finditer(text):
        value = _json(match.group(2))
        if value is not None:
            key = match.group(1)
            found[str(_json(key) or key)] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return found


def _json(text: str) -> Any | None:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
