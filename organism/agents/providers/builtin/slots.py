"""The parts of a request that may be arguments: runs of words between the words that only join them.

``move a.txt to /srv`` has two parts: the one that nothing leads to, and the one behind ``to``. Which part is whose is
told by what leads to it, by a field's own word beside it, and by what the tool is named for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from organism.agents.providers.builtin.asking import Clause, quotes_in
from organism.agents.providers.builtin.fields import Field
from organism.agents.providers.builtin.lexicon import ASKING, COMMANDS, MEANINGS, POLITE, SILENT, named, rows
from organism.agents.providers.builtin.sources import EMAIL, URL, Source
from organism.agents.providers.builtin.words import known

MOST_SLOTS: Final = 12
"""Of a clause with more parts only the first ones are arguments."""

_TOKEN: Final = re.compile(r"\S+")
_ADDING: Final = frozenset({"and", "und"})
_EDGES: Final = " .,;:!?()[]\"'“”„`"
_PASSING: Final = named("passing")
_FRAME: Final = named("request_frame")
_UNITS: Final = named("units")
_LEADS: Final[Mapping[str, frozenset[str]]] = {
    form: frozenset(leads.split()) for leads, forms in rows("leads") for form in forms.split()
}
_LEADING: Final = frozenset(lead for leads in _LEADS.values() for lead in leads)
_OF: Final = frozenset({"of", "von", "vom", "for", "fur"})
"""Behind these stands what a thing is of, if nothing else is asked for: the price *of gold*."""
_MATTER: Final = 1.6
_LED, _OBJECT, _BARE, _OTHER, _NAMED, _OWN, _CAPITAL = 2.0, 1.5, 0.5, 0.3, 2.0, -3.0, 1.5


@dataclass(frozen=True, slots=True)
class Slot:
    """A run of words, and the word that leads to it; empty where none does."""

    text: str
    lead: str

    @property
    def words(self) -> list[str]:
        return self.text.split()


def slots_of(clause: Clause, source: Source, joints: frozenset[str] = frozenset()) -> list[Slot]:
    """The parts of a clause, without numbers, days and addresses, which have fields of their own.

    ``joints`` are meanings of words that only join here: ``send the robot to vacuum the hall``.
    """
    leading = _LEADING - {"an"} if source.language == "en" else _LEADING
    made = _Parts(clause.text, joints, leading)
    covered = _covered(source)
    quotes = list(quotes_in(clause.text))
    blank = _blanked(clause.text, [span for span, _ in quotes])
    pieces: list[tuple[int, int, str | None]] = [(each.start(), each.end(), None) for each in _TOKEN.finditer(blank)]
    pieces += [(*span, text) for span, text in quotes]
    for start, end, quote in sorted(pieces, key=lambda each: each[0]):
        if quote is None:
            made.take(start, end, is_typed=any(covered[start:end]))
        else:
            made.take_quote(quote, end)
        if len(made.found) >= MOST_SLOTS:
            break
    made.end()
    return made.found[:MOST_SLOTS]


class _Parts:
    """Puts the words of a clause together to its parts, one after another."""

    def __init__(self, text: str, joints: frozenset[str], leading: frozenset[str]) -> None:
        self.found: list[Slot] = []
        self._joints = joints
        self._leading = leading
        self._text = text
        self._lead = ""
        self._run: tuple[int, int] | None = None
        self._at = 0

    def take(self, start: int, end: int, *, is_typed: bool) -> None:
        """The next word, with the signs around it."""
        token = self._text[start:end]
        if self._text[self._at : start].strip() or "\n" in self._text[self._at : start]:
            self.end()
        text = token.strip(_EDGES)
        form = known(text)[0]
        if is_typed:
            self.end()
        elif form in _ADDING and self._run is not None:
            pass
        elif known(text)[2] in self._joints or _is_joint(text, form, has_begun=bool(self._run or self.found)):
            lead = "" if self._run is not None else self._lead
            self.end()
            self._lead = form if form in self._leading else lead
        else:
            self._run = (self._run[0] if self._run else start, end)
        if token.rstrip("\"'”“)")[-1:] in ".,;:!?":
            self.end()
        self._at = end

    def take_quote(self, quote: str, end: int) -> None:
        """What stands in quotes is a part of its own."""
        self.end(keeps=True)
        self.found.append(Slot(quote, self._lead))
        self._lead, self._at = "", end

    def end(self, *, keeps: bool = False) -> None:
        """The run of words ends here."""
        text = self._text[self._run[0] : self._run[1]].strip(_EDGES) if self._run else ""
        if text:
            self.found.append(Slot(text, self._lead))
        self._lead = self._lead if keeps and not text else ""
        self._run = None


def assigned(fields: Sequence[Field], slots: Sequence[Slot], own: frozenset[str]) -> Mapping[str, str]:
    """Which part each of the fields takes: the pair that fits best first, no part twice."""
    scored = [
        (_score(field, slot, own, is_alone=len(fields) == 1), -at, -place, field.name, slot)
        for place, field in enumerate(fields)
        for at, slot in enumerate(slots)
    ]
    made: dict[str, str] = {}
    used: set[int] = set()
    for score, at, place, name, slot in sorted(scored, key=lambda each: each[:3], reverse=True):
        if score > 0 and name not in made and at not in used:
            labels = fields[-place].meanings | (frozenset() if slot.text.istitle() else own)
            made[name] = without_label(labels, slot.text)
            used.add(at)
    return made


def leads_to(field: Field) -> frozenset[str]:
    """The words that lead to values of such a field; none where it takes what nothing leads to."""
    return frozenset(lead for form in field.forms for lead in _LEADS.get(form, ()))


def _covered(source: Source) -> bytearray:
    """By position: whether a number, a day or an address stands there."""
    covered = bytearray(len(source.text))
    spans = [(each.start, each.end) for each in source.numbers]
    spans += [(day.start, day.end) for day in source.days]
    spans += [(moment.start, moment.end) for moment in source.moments]
    spans += [match.span() for pattern in (EMAIL, URL) for match in pattern.finditer(source.text)]
    for start, end in spans:
        covered[start:end] = b"\1" * (end - start)
    return covered


def _blanked(text: str, spans: Sequence[tuple[int, int]]) -> str:
    signs = list(text)
    for start, end in spans:
        signs[start:end] = " " * (end - start)
    return "".join(signs)


def _is_joint(text: str, form: str, *, has_begun: bool) -> bool:
    """Whether a word only joins or frames the parts; before the first part also the verb of the request."""
    if not form or form in SILENT or form in POLITE or form in _PASSING or form in _UNITS:
        return True
    if text[:1].isupper() and has_begun and form not in COMMANDS:
        return False
    return not has_begun and (form in COMMANDS or form in ASKING or form in _FRAME)


def _score(field: Field, slot: Slot, own: frozenset[str], *, is_alone: bool) -> float:
    leads = leads_to(field)
    if slot.lead in leads:
        score = _LED
    elif not slot.lead:
        score = _BARE if leads else _OBJECT
    elif slot.lead in _OF and is_alone and not leads:
        score = _MATTER
    else:
        score = _OTHER
    parts = [(known(word)[2], *known(word)[3]) for word in slot.words]
    if any(field.meanings.intersection(meanings) for meanings in parts):
        score += _NAMED
    elif all((own - field.meanings).intersection(meanings) for meanings in parts):
        score += _OWN
    if field.topic == "person" and slot.text[:1].isupper():
        score += _CAPITAL
    return score if len(parts) > 1 or not field.meanings.intersection(parts[0][:1]) else _OWN


def without_label(labels: frozenset[str], text: str) -> str:
    """The text without the field's own word, or the tool's, before it or behind it."""
    words = text.split()
    while len(words) > 1 and known(words[0])[2] in labels:
        words = words[1:]
    while len(words) > 1 and known(words[-1])[2] in labels and not _is_known(words[:-1]):
        words = words[:-1]
    return " ".join(words).strip(_EDGES)


def _is_known(words: Sequence[str]) -> bool:
    """Whether the words are of the language, and no name of a thing: ``living room``, not ``nginx service``."""
    return all(known(word)[0] in MEANINGS for word in words)
