"""What the model says by itself: who it is, what it can, that it found nothing. All else is quoted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from organism.agents.providers.builtin.words import Language

DESCRIPTION: Final = (
    "Organism's built-in extractive model: no network, no key, no weights. It answers and summarises with sentences "
    "taken from what it is given, fills JSON schemas by the same means, and calls tools for plain requests in English "
    "and German. It cannot write freely and knows nothing by itself."
)

_SELF: Final[Mapping[Language, str]] = {
    "en": "I am Organism's built-in model: I answer and summarise with sentences from what I am given, fill forms, and "
    "call the tools I am offered for plain requests. I know nothing by myself; configure another model for more.",
    "de": "Ich bin das eingebaute Modell von Organism: Ich antworte und fasse zusammen mit Sätzen aus dem, was mir "
    "gegeben wird, fülle Formulare aus und rufe für einfache Anliegen die Werkzeuge auf, die mir angeboten werden. Von "
    "mir aus weiß ich nichts; für mehr ist ein anderes Modell einzurichten.",
}
_UNKNOWN: Final[Mapping[Language, str]] = {
    "en": "I found nothing about that in what I was given. ",
    "de": "Dazu habe ich in dem, was mir gegeben wurde, nichts gefunden. ",
}
_HELLO: Final[Mapping[Language, str]] = {"en": "Hello! ", "de": "Hallo! "}
_THANKS: Final[Mapping[Language, str]] = {"en": "Gladly.", "de": "Gern geschehen."}
_NOTED: Final[Mapping[Language, str]] = {"en": "Noted.", "de": "Notiert."}
_TOOLS: Final[Mapping[Language, str]] = {"en": " I am offered: {}.", "de": " Angeboten sind mir: {}."}
_NO_TOOL: Final[Mapping[Language, str]] = {
    "en": "I cannot calculate by myself, and no tool that can was offered or allowed. ",
    "de": "Ich kann nicht selbst rechnen, und kein Werkzeug dafür wurde angeboten oder erlaubt. ",
}


def myself(language: Language, tools: Sequence[str] = ()) -> str:
    """Who it is and what it can; with the tools that it is offered."""
    offered = _TOOLS[language].format(", ".join(tools)) if tools else ""
    return _SELF[language] + offered


def unknown(language: Language, tools: Sequence[str] = ()) -> str:
    """That nothing was found."""
    return _UNKNOWN[language] + myself(language, tools)


def cannot_count(language: Language) -> str:
    """That no tool calculates."""
    return _NO_TOOL[language] + _SELF[language]


def hello(language: Language) -> str:
    """A greeting."""
    return _HELLO[language] + _SELF[language]


def welcome(language: Language) -> str:
    """An answer to thanks."""
    return _THANKS[language]


def noted(what: str, language: Language) -> str:
    """That something was told."""
    return f"{_NOTED[language]} {what}"
