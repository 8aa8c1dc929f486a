"""What a server says of an error, as far as it may be told on: never a key, never what was asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from organism.agents.providers.wire.json_text import loads
from organism.model.completion import ModelRequest
from organism.model.redact import SHORTEST, Redactor

SHOWN_CHARS: Final = 300
READ_CHARS: Final = 4000
TELLING_WORDS: Final = 3
"""So many words in a row that both texts have are no chance, nor are two long ones, or one with digits."""
TELLING_CHARS: Final = 4
LONG_WORD_CHARS: Final = 5

_WORD: Final = re.compile(r"\w+")
_QUOTED: Final = re.compile(r"[\"'`\u201c\u2018\xab](.+?)[\"'`\u201d\u2019\xbb]")
_NAME: Final = re.compile(r"[\w.\[\]-]{1,80}")


@dataclass(frozen=True, slots=True)
class Said:
    """An error in the words of the server: its text, and the names by which programs tell it."""

    text: str = ""
    kind: str = ""
    code: str = ""
    param: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """What programs tell the error by, as far as there is something."""
        return tuple(dict.fromkeys(name for name in (self.kind, self.code) if name))


def read(body: bytes) -> Said:
    """The error in a body; servers agree on no form for it."""
    try:
        return understood(loads(body))
    except ValueError:
        return Said()


def understood(told: Any) -> Said:
    """The error in what a body or an event says."""
    if isinstance(told, list):
        return understood(told[0]) if told else Said()
    if isinstance(told, str):
        return Said(text=told)
    if not isinstance(told, Mapping):
        return Said()
    inner = told.get("error")
    if isinstance(inner, Mapping | str):
        return understood(inner)
    text = next((told[key] for key in ("message", "detail", "msg") if isinstance(told.get(key), str)), "")
    return Said(text, *(_named(told.get(key)) for key in ("type", "code", "param")))


def _named(value: Any) -> str:
    """A name such as ``rate_limit_error``; anything else is no name, and may be what was asked."""
    name = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    return name if _NAME.fullmatch(name) else ""


def quotable(text: str, request: ModelRequest, key: str | None) -> str:
    """The server's text in one short line, or nothing if it repeats the key or what was asked."""
    line = "".join(sign if sign.isprintable() else " " for sign in text[:READ_CHARS])
    line = " ".join(line.split())
    if (key and _shows(line, key)) or _repeats(line, list(_texts(request.messages))):
        return ""
    line = Redactor([key] if key else []).text(line)
    return line if len(line) <= SHOWN_CHARS else f"{line[:SHOWN_CHARS]}…"


def _shows(line: str, key: str) -> bool:
    """Whether a part of the key stands there; servers like to show its ends. A short one is made up, and no secret."""
    if len(key) < SHORTEST:
        return False
    shown = max(TELLING_CHARS, len(key) // 8)
    return any(key[at : at + shown] in line for at in (0, max(0, len(key) - shown)))


def _repeats(line: str, asked: Sequence[str]) -> bool:
    """Whether the line repeats, quotes or holds a part of what was asked that is no chance."""
    words = _words(line)
    all_asked = f" {' '.join(word for text in asked for word in _words(text))} "
    runs = [words[at : at + TELLING_WORDS] for at in range(len(words) - TELLING_WORDS + 1)]
    runs += [list(pair) for pair in pairwise(words) if min(map(len, pair)) >= LONG_WORD_CHARS]
    runs += [[word] for word in words if len(word) >= TELLING_CHARS and any(map(str.isdigit, word))]
    runs += [_words(part) for part in _QUOTED.findall(line) if len(part) >= TELLING_CHARS]
    if any(f" {' '.join(run)} " in all_asked for run in runs if run):
        return True
    spaced = f" {' '.join(words)} "
    return any(len(text) >= TELLING_CHARS and f" {' '.join(_words(text))} " in spaced for text in asked)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _texts(value: Any) -> Iterator[str]:
    """Every text in a request's messages, but for the roles and names that their form demands."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(inner) if key not in {"role", "type", "id", "name", "tool_call_id"} else ()
    elif isinstance(value, Iterable):
        for inner in value:
            yield from _texts(inner)
