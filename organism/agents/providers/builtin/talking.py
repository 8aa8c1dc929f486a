"""A talk as the model reads it: what was asked, what the tools answered, and what may be quoted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import orjson

from organism.agents.providers.builtin.asking import Asked, asked
from organism.agents.providers.builtin.words import Language, language_of
from organism.agents.providers.talk import SYSTEM_ROLES, text_of
from organism.model.completion import ChatMessage, ModelRequest

_MARK: Final = re.compile(r"^<<(?:end|[^\n<>]{0,200}) ?\[[0-9a-f]{6,64}\]>>$", re.MULTILINE)
_SPOKEN: Final[Mapping[Language, re.Pattern[str]]] = {
    "de": re.compile(r"\b(?:auf|in) Deutsch\b|\bantworte\b|\bin German\b|\bdeutsche[rn]? Sprache\b", re.IGNORECASE),
    "en": re.compile(r"\bin English\b|\bauf Englisch\b", re.IGNORECASE),
}
_BRIEF: Final = re.compile(
    r"\b(?:one sentence|single sentence|in a sentence|be (?:very )?(?:brief|terse|concise|short)|terse|ein(?:em|"
    r"en)? Satz|"
    r"knapp|kurz(?:e|en)?|tersely|briefly)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool answered, and the call that it answered."""

    name: str
    arguments: Mapping[str, Any]
    text: str

    @property
    def value(self) -> Any:
        """The result as JSON; its text where it is none."""
        try:
            return orjson.loads(self.text)
        except orjson.JSONDecodeError:
            return self.text


@dataclass(frozen=True, slots=True)
class Said:
    """A message of the talk without the marks of fences."""

    role: str
    text: str


class Talk:
    """One request, read once."""

    def __init__(self, request: ModelRequest) -> None:
        self._messages = request.messages

    @cached_property
    def said(self) -> tuple[Said, ...]:
        """All that was said, in order; tool results too."""
        return tuple(Said(str(message.get("role")), unmarked(text_of(message))) for message in self._messages)

    @cached_property
    def system(self) -> str:
        return "\n\n".join(said.text for said in self.said if said.role in SYSTEM_ROLES)

    @cached_property
    def _user_at(self) -> int:
        return max((at for at, said in enumerate(self.said) if said.role == "user"), default=-1)

    @cached_property
    def message(self) -> Asked:
        """The newest message of the user."""
        return asked(self.said[self._user_at].text if self._user_at >= 0 else "")

    @cached_property
    def before(self) -> tuple[Said, ...]:
        """What was said before that, without instructions."""
        return tuple(said for said in self.said[: max(0, self._user_at)] if said.role not in SYSTEM_ROLES)

    @cached_property
    def earlier(self) -> Asked | None:
        """The message of the user before the newest."""
        texts = [said.text for said in self.before if said.role == "user"]
        return asked(texts[-1]) if texts else None

    @cached_property
    def language(self) -> Language | None:
        """The language to answer in: of the newest message that shows one; else what the instructions say."""
        users = [said.text for said in reversed(self.said) if said.role == "user"][:8]
        found = language_of(users)
        if found is None:
            found = next((name for name, said in _SPOKEN.items() if said.search(self.system)), None)
        return found or language_of([self.system])

    @cached_property
    def is_brief(self) -> bool:
        """Whether one sentence is wanted."""
        return bool(_BRIEF.search(self.system) or _BRIEF.search(self.message.text[-200:]))

    @cached_property
    def results(self) -> tuple[Result, ...]:
        """What the tools have answered since the user spoke, each with its call."""
        return self._results(self._user_at + 1)

    def _results(self, begin: int) -> tuple[Result, ...]:
        calls: dict[str, tuple[str, Mapping[str, Any]]] = {}
        found = []
        for message in self._messages[begin:]:
            for call in message.get("tool_calls") or ():
                calls.update(_call(call))
            if message.get("role") == "tool":
                name, arguments = calls.get(str(message.get("tool_call_id")), (str(message.get("name") or "tool"), {}))
                found.append(Result(name, arguments, unmarked(text_of(message)).strip()))
        return tuple(found)


def unmarked(text: str) -> str:
    """The text without the marks that fence what others wrote."""
    return _MARK.sub("", text) if "<<" in text else text


def _call(call: ChatMessage) -> dict[str, tuple[str, Mapping[str, Any]]]:
    """A call of an earlier answer, by its id."""
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return {}
    written = function.get("arguments")
    try:
        arguments = orjson.loads(written) if isinstance(written, str) and written else {}
    except orjson.JSONDecodeError:
        arguments = {}
    return {str(call.get("id")): (str(function.get("name")), arguments if isinstance(arguments, dict) else {})}
