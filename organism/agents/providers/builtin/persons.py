"""What somebody said of themselves, said to them: ``my`` becomes ``your``, ``ich wohne`` becomes ``du wohnst``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from organism.agents.providers.builtin.words import Language

_TOKEN: Final = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?|[^\w\s]|\s+|\d+|_")
_ENGLISH: Final[Mapping[str, str]] = {
    "i": "you",
    "i'm": "you're",
    "i've": "you've",
    "i'll": "you'll",
    "i'd": "you'd",
    "me": "you",
    "my": "your",
    "mine": "yours",
    "myself": "yourself",
    "we": "you",
    "us": "you",
    "our": "your",
    "ours": "yours",
    "we're": "you're",
    "we've": "you've",
}
_BEING: Final[Mapping[str, str]] = {"am": "are", "was": "were", "wasn't": "weren't"}
_GERMAN: Final[Mapping[str, str]] = {
    "ich": "du",
    "mich": "dich",
    "mir": "dir",
    "mein": "dein",
    "meine": "deine",
    "meinem": "deinem",
    "meinen": "deinen",
    "meiner": "deiner",
    "meines": "deines",
    "meins": "deins",
    "wir": "ihr",
    "uns": "euch",
    "unser": "euer",
    "unsere": "eure",
    "unserem": "eurem",
    "unseren": "euren",
    "unserer": "eurer",
}
_VERBS: Final[Mapping[str, str]] = {
    "bin": "bist",
    "habe": "hast",
    "hab": "hast",
    "werde": "wirst",
    "esse": "isst",
    "lese": "liest",
    "sehe": "siehst",
    "fahre": "fährst",
    "schlafe": "schläfst",
    "laufe": "läufst",
    "trage": "trägst",
    "spreche": "sprichst",
    "nehme": "nimmst",
    "gebe": "gibst",
    "treffe": "triffst",
    "helfe": "hilfst",
    "vergesse": "vergisst",
    "halte": "hältst",
    "lasse": "lässt",
    "weiß": "weißt",
    "kann": "kannst",
    "muss": "musst",
    "will": "willst",
    "darf": "darfst",
    "soll": "sollst",
    "mag": "magst",
    "möchte": "möchtest",
    "war": "warst",
    "hatte": "hattest",
    "wurde": "wurdest",
    "würde": "würdest",
    "hätte": "hättest",
    "wäre": "wärst",
    "sammle": "sammelst",
    "wandere": "wanderst",
}
_LEADS: Final = re.compile(
    r"^(?:(?:and|und|also|aber|but|so|hi|hello|hallo|hey|well|ok|okay|please|bitte|actually|eigentlich|übrigens|"
    r"by the way|"
    r"btw|fyi|for your information|just so you know|note that|remember that|remember|keep in mind that|noted|"
    r"notice that|"
    r"you should know that|i want you to know that|i should mention that|i told you that|let me tell you that|ja|"
    r"no|nein|"
    r"nur zur info|zur info|zur information|merk(?:e)? dir(?: bitte)?|good (?:morning|evening|day)|guten (?:tag|"
    r"morgen|abend)|"
    r"correction|korrektur|sorry|oh|ach|ah|im übrigen)\b[\s,:!.–-]*)+",
    re.IGNORECASE,
)
_THAT: Final = re.compile(r"^dass\s+", re.IGNORECASE)


def said_to(text: str, language: Language) -> str:
    """The sentence as it is said to whoever said it, without what only led to it."""
    bare = _LEADS.sub("", text.strip()).strip() or text.strip()
    is_german = language == "de"
    told = _THAT.sub("", bare) if is_german else bare
    turned = _german(told) if is_german else _english(told)
    if is_german and told != bare:
        return f"Du hast gesagt, dass {turned}"
    return turned[:1].upper() + turned[1:]


def _english(text: str) -> str:
    tokens = _TOKEN.findall(text)
    made = []
    for at, token in enumerate(tokens):
        form = token.lower().replace("\u2019", "'")
        turned = _ENGLISH.get(form)
        if form in _BEING and _beside(tokens, at, {"i"}):
            turned = _BEING[form]
        made.append(token if turned is None else _like(token, turned) if form != "i" else turned)
    return "".join(made)


def _german(text: str) -> str:
    tokens = _TOKEN.findall(text)
    words = [token.lower() for token in tokens]
    has_me = "ich" in words
    last = max((at for at, token in enumerate(tokens) if token[0].isalpha()), default=-1)
    made = []
    for at, token in enumerate(tokens):
        form = words[at]
        turned = _GERMAN.get(form)
        if turned is None and has_me and (_beside(tokens, at, {"ich"}) or at == last) and token.islower():
            turned = _second_person(form)
        made.append(token if turned is None else _like(token, turned))
    return "".join(made)


def _second_person(verb: str) -> str | None:
    if verb in _VERBS:
        return _VERBS[verb]
    if not verb.endswith("e") or len(verb) < 4:  # noqa: PLR2004 - no verb is shorter
        return None
    root = verb[:-1]
    if root.endswith(("s", "ß", "z", "x")):
        return f"{root}t"
    return f"{root}est" if root.endswith(("t", "d", "chn", "ffn", "gn", "tm")) else f"{root}st"


def _beside(tokens: list[str], at: int, who: set[str]) -> bool:
    """Whether the word next to this one, a blank apart, is one of these."""
    around = [tokens[other].lower() for other in (at - 2, at + 2) if 0 <= other < len(tokens)]
    return any(word in who for word in around)


def _like(token: str, turned: str) -> str:
    return turned[:1].upper() + turned[1:] if token[:1].isupper() else turned
