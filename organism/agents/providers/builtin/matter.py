"""What a request is about: its text without the frame around it, as a search or a tool takes it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from organism.agents.providers.builtin.asking import Clause, quoted
from organism.agents.providers.builtin.days import days_of, moments_of
from organism.agents.providers.builtin.lexicon import ASKING, COMMANDS, POLITE, SILENT, named
from organism.agents.providers.builtin.words import Language, Word, plain

_TRAILING: Final = frozenset(
    {"please", "bitte", "me", "mir", "left", "ubrig", "again", "nochmal", "asap", "pls", "plz"}
)
_FRAME: Final = named("request_frame")
_ENDS: Final = named("request_ends")
_KEYED: Final = re.compile(
    r"\s+(?:under|as|with|at|in|to|into|unter|als|mit|bei|auf)\s+(?:(?:the|my|a|dem|den|der)\s+)?"
    r"(?P<word>key|name|label|title|slot|variable|schlüssel|namen|titel)?\s*(?:called|named|"
    r"namens)?\s*['\"“„`]?(?P<key>[\w.:/\-]+)['\"”“`]?\s*[.!?]?\s*$",
    re.IGNORECASE,
)
_KEY: Final = re.compile(
    r"\b(?:key|schlüssel|variable|slot|under|unter)\s+(?:(?:the|dem|key|schlüssel)\s+)*(?:called|named|"
    r"namens)?\s*['\"“„`]?(?P<key>[\w.:/\-]+)",
    re.IGNORECASE,
)
_SET: Final = re.compile(
    r"(?:(?:the|den|my)\s+)?(?:key\s+|schlüssel\s+)?['\"`]?(?P<key>[\w.:/\-]+)['\"`]?\s*(?:\bto\b|=|"
    r"\bauf\b)\s*(?P<value>.+)$",
    re.IGNORECASE,
)
_BEHIND: Final = re.compile(
    r"\b(?:search|query|durchsuche?|suche?|suchst)\b.*?\b(?:for|nach)\s+(.+)$|"
    r"\b(?:say|says|know|knows|tell|tells|steht|sagt|weiß|find|information|informationen|something|anything|etwas|was)\b[^.?!]*?\b(?:about|über)\s+(.+)$",
    re.IGNORECASE,
)
KNOW_ABOUT: Final = re.compile(r"\bknow about\b|\b(?:über|zu|von)\b.{1,60}\bwissen\b", re.IGNORECASE)
_TOP: Final = re.compile(r",?\s*\b(?:top|limit|max\w*)\s*\d+\s*\w*[.!?]?$", re.IGNORECASE)
_LEADING: Final = re.compile(r"[\s,]*\b(?:on|at|by|in|until|for|am|um|bis|gegen|ab|vom|den|the)?\s*$", re.IGNORECASE)
_NEAR: Final = re.compile(r"[\s,]+(?:tomorrow|today|tonight|morgen|heute|übermorgen)[\s.!?]*$", re.IGNORECASE)
_ARTICLE: Final = re.compile(r"^(?:the|a|an|den|dem|der|die|das|einem?|einer)\s+", re.IGNORECASE)
_WITHIN: Final = frozenset({"of", "the", "de", "la", "du"})
_HELPING: Final = frozenset({"help", "tell", "let", "give", "show", "hilf", "gib", "zeig", "sag"})
_IS: Final = re.compile(
    r"^(?:that\s+|dass\s+)?(?:(?:my|the|our|mein\w*|der|die|das|unser\w*)\s+)?(?P<key>[\w\s.:\-]{1,60}?)\s+(?:is|"
    r"are|=|ist|sind|lautet)\s+(?P<value>.+)$",
    re.IGNORECASE,
)


def matter(clause: Clause, meanings: frozenset[str]) -> str:
    """The clause without what only asks, and without words that name the tool; what stands in quotes, if anything."""
    inner = quoted(clause.text)
    if inner:
        return inner[0]
    behind = _BEHIND.search(clause.text)
    if behind is not None:
        return _ARTICLE.sub("", _TOP.sub("", behind.group(1) or behind.group(2))).strip(" .!?,")
    words = clause.words
    first, last = _first(clause, meanings), _last(words[:-1] if clause.verb else words, meanings)
    if first >= last:
        return ""
    return clause.text[words[first].start : words[last - 1].end].strip()


def _capitals(text: str, words: Sequence[Word]) -> list[str]:
    """The runs of capital words in a text that do not only begin it with a word of the frame."""
    runs: list[list[Word]] = []
    for at, word in enumerate(words):
        is_frame = word.plain in COMMANDS or word.plain in ASKING or word.is_silent or word.plain in POLITE
        if word.plain in _WITHIN and runs and runs[-1] and at + 1 < len(words):
            runs[-1].append(word)
        elif not word.is_capital or (is_frame and at == 0):
            runs.append([])
        elif runs and runs[-1]:
            runs[-1].append(word)
        else:
            runs.append([word])
    trimmed = [_trimmed(run) for run in runs]
    return [text[run[0].start : run[-1].end] for run in trimmed if run]


def _trimmed(run: list[Word]) -> list[Word]:
    """The run without what only leads to a name (``Kontakt Ines Ortega``), and without what joined nothing to it."""
    while run and run[-1].plain in _WITHIN:
        run = run[:-1]
    while len(run) > 1 and run[0].meaning != run[0].stem:
        run = run[1:]
    return run


def names_in(clause: Clause) -> list[str]:
    """The runs of capital words of a clause, outside of quotes if there are any."""
    outside = [word for word in clause.words if not clause.bare[word.start].isspace()]
    return _capitals(clause.text, outside) or _capitals(clause.text, clause.words)


def pair(clause: Clause) -> tuple[str, str] | None:
    """A key and its value: ``store 42 under answer``, ``remember that my code is 1234``."""
    text = clause.text.rstrip(" .!?")
    at = next((word.end for word in clause.words if word.plain in COMMANDS), None)
    if at is None:
        return None
    body = text[at:].strip(" :,")
    if clause.verb:
        body = body.rpartition(" ")[0]
    body = re.sub(r"^(?:(?:the|den|die|das)\s+)?(?:value|wert|text|number|zahl)\s+", "", body, flags=re.IGNORECASE)
    inner, named_key = quoted(body), key_of(clause)
    if inner and named_key and named_key not in inner[0]:
        return named_key, inner[0]
    told = _IS.match(body)
    if told and "key" not in body.lower():
        return told.group("key").strip(), _bare(told.group("value"))
    swapped = _SET.match(body)
    if swapped is not None:
        return swapped.group("key"), _bare(swapped.group("value"))
    keyed = _KEYED.search(body)
    if keyed and body[: keyed.start()].strip():
        return keyed.group("key"), _bare(body[: keyed.start()])
    return None


def key_of(clause: Clause) -> str | None:
    """The key that a clause names."""
    found = list(_KEY.finditer(clause.text))
    return found[-1].group("key").rstrip(".:") if found else None


def is_request_frame(word: str) -> bool:
    """Whether a word only says what kind of text is asked for: ``entry``, ``article``."""
    return plain(word) in _FRAME or plain(word) in SILENT


def _bare(text: str) -> str:
    return text.strip().strip("\"'“”„`").strip()


def without_times(subject: str, language: Language | None) -> str:
    """The text without the days and times of day at its end."""
    spans = [(day.start, day.end) for day in days_of(subject, language)]
    spans += [(moment.start, moment.end) for moment in moments_of(subject)]
    for start, end in sorted(spans, reverse=True):
        if not subject[end:].strip(" .,!?"):
            subject = _LEADING.sub("", subject[:start])
    return _NEAR.sub("", subject)


def _first(clause: Clause, meanings: frozenset[str]) -> int:
    """Where the matter begins: behind the frame, or behind the comma that ends it."""
    words = clause.words
    at = commands = 0
    while at < len(words) and _is_frame(words[at], meanings, is_first=at == 0):
        if commands and words[at].plain in POLITE and words[at].plain not in ("please", "bitte", "mal"):
            break
        if commands and "," in clause.text[words[at - 1].end : words[at].start]:
            break
        is_command = words[at].plain in COMMANDS and words[at].plain not in _HELPING
        commands += is_command
        if commands > 1 and is_command and words[at].meaning not in meanings:
            break  # the rest is what is to be done, said or remembered
        at += 1
    return at


def _last(words: Sequence[Word], meanings: frozenset[str]) -> int:
    at = len(words)
    while at > 0 and (words[at - 1].plain in POLITE or words[at - 1].plain in _TRAILING):
        at -= 1
    end = at
    while at > 0 and (_names(words[at - 1], meanings) or words[at - 1].plain in _ENDS):
        at -= 1
    has_tool = any(_names(word, meanings) for word in words[at:end])
    return at if has_tool else end


def _names(word: Word, meanings: frozenset[str]) -> bool:
    """Whether a word, or all that it is made of, names the tool."""
    return word.meaning in meanings or (bool(word.parts) and meanings.issuperset(word.parts))


def _is_frame(word: Word, meanings: frozenset[str], *, is_first: bool) -> bool:
    if word.is_capital and not is_first and not _names(word, meanings):
        return False
    form = word.plain
    return (
        form in SILENT
        or form in POLITE
        or form in COMMANDS
        or form in _FRAME
        or form in ASKING
        or _names(word, meanings)
    )
