"""Tool calls that come in pieces, and become whole ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from organism.agents.providers.wire.characters import mended
from organism.model.completion import ToolCall

NewId = Callable[[], str]


@dataclass(slots=True)
class Unfinished:
    """What has come of a call so far."""

    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The arguments so far."""
        return "".join(self.pieces)

    @property
    def is_complete(self) -> bool:
        """Whether the arguments so far are a whole JSON object."""
        return _object(self.text) is not None if self.pieces else False

    def add(self, characters: str) -> None:
        """The next characters of the arguments."""
        if characters:
            self.pieces.append(characters)


def written(arguments: Any) -> str:
    """Arguments as characters; some servers give them as the JSON that they are, or none at all."""
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None or arguments == {} else json.dumps(arguments)


def finished(calls: Iterable[Unfinished], new_id: NewId) -> Iterator[ToolCall]:
    """The calls, each under an id of its own."""
    seen: set[str] = set()
    for call in calls:
        text = mended(call.text)
        id_ = mended(call.id)
        id_ = id_ if id_ and id_ not in seen else new_id()
        seen.add(id_)
        given = _object(text) if text.strip() not in {"", "null"} else {}
        yield ToolCall(id_, mended(call.name), given, text if given is None else None)


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = orjson.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


class Calls:
    """The calls of one answer of the chat completions API.

    A piece says by ``index`` which call it is for; servers leave that out, or say 0 of each. So a piece begins a call
    where it names a function and its id, or the whole arguments before it, show that it is another one.
    """

    def __init__(self) -> None:
        self.all: list[Unfinished] = []
        self._by_index: dict[int, Unfinished] = {}

    def take(self, piece: dict[str, Any]) -> None:
        """The next piece."""
        function = piece.get("function")
        function = function if isinstance(function, dict) else piece
        id_, name = _text(piece.get("id")), _text(function.get("name"))
        arguments = written(function.get("arguments"))
        index = piece.get("index")
        index = index if isinstance(index, int) and not isinstance(index, bool) else None
        call = self._meant(index, id_, name)
        if call is None or _is_other(call, id_, name, arguments):
            call = Unfinished()
            self.all.append(call)
        elif name and arguments and _is_repeated(call, id_, arguments):
            return
        if index is not None:
            self._by_index[index] = call
        call.id = call.id or id_
        call.name = call.name or name
        call.add(arguments)

    def _meant(self, index: int | None, id_: str, name: str) -> Unfinished | None:
        if index is not None:
            return self._by_index.get(index)
        known = next((call for call in reversed(self.all) if id_ and call.id == id_), None)
        if known is not None or (id_ and name):
            return known
        return self.all[-1] if self.all else None


def _is_other(call: Unfinished, id_: str, name: str, arguments: str) -> bool:
    """Whether what comes in the place of ``call`` is another call: it must name a function to be one."""
    if not name or not call.name:
        return False
    if (id_ and call.id and id_ != call.id) or name != call.name:
        return True
    return bool(arguments) and call.is_complete and not _is_repeated(call, id_, arguments)


def _is_repeated(call: Unfinished, id_: str, arguments: str) -> bool:
    """Whether it is the whole call once more."""
    return id_ != "" and id_ == call.id and arguments == call.text


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
