"""Choosing one of a field's allowed values: the one that the text names, else the one that its words speak for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from organism.agents.providers.builtin.fields import Field, parts_of
from organism.agents.providers.builtin.finders import all_in
from organism.agents.providers.builtin.labels import NEUTRAL, OPPOSITES, SPEAKING
from organism.agents.providers.builtin.lexicon import NEGATIONS, named
from organism.agents.providers.builtin.sources import Source
from organism.agents.providers.builtin.words import known, language_of, plain, words_of

NAMED: Final = 3.0
"""What it counts that a text names a value; a word that speaks for it counts ``SPOKEN``, at most ``MOST``."""
PART: Final = 1.5
SPOKEN: Final = 0.5
MOST: Final = 2.5
SURE_ABOVE: Final = 2.0
_GLUE: Final = named("glue")


@dataclass(frozen=True, slots=True)
class Choice:
    """A value, and how much speaks for it."""

    value: Any
    evidence: float


def choose(wanted: Field, source: Source, *, needs_evidence: bool = False) -> Any | None:
    """The best value of the field's ``enum``; None if evidence is needed and there is none."""
    best = best_choice(wanted, source)
    return None if best is None or (needs_evidence and best.evidence <= 0) else best.value


def best_choice(wanted: Field, source: Source) -> Choice | None:
    """The value that most speaks for, and how much. Where nothing does: one that says so, or one in the middle."""
    values = [value for value in wanted.schema.get("enum", ()) if value is not None]
    if not values:
        return None
    spoken = _language(values, source) if wanted.topic == "language" else None
    if spoken is not None:
        return spoken
    if wanted.topic == "currency":
        codes = [code for code in all_in(source, "currency") if code in values]
        if codes:
            return Choice(codes[0], NAMED)
    said = _said(wanted, source)
    scores = {at: _score(value, wanted, source) for at, value in enumerate(values)}
    if said is not None:
        for at, value in enumerate(values):
            scores[at] += 2 * max(0.0, _score(value, wanted, said))
    best = max(scores, key=lambda at: scores[at])
    if scores[best] > 0:
        rivals = [at for at, score in scores.items() if score == scores[best]]
        return Choice(values[_likest(values, rivals, source)], scores[best])
    return Choice(values[_undecided(values, scores, source)], 0.0)


def _language(values: Sequence[Any], source: Source) -> Choice | None:
    """The language that the text is in, if it is among the values and the text names none of them."""
    names = {"en": ("en", "eng", "english", "englisch"), "de": ("de", "ger", "deu", "german", "deutsch")}
    found = language_of([source.text])
    is_named = any(isinstance(value, str) and known(value)[2] in source.meanings for value in values)
    if found is None or is_named:
        return None
    return next((Choice(value, NAMED) for value in values if str(value).lower() in names[found]), None)


def _said(wanted: Field, source: Source) -> Source | None:
    """What the text calls by the field's own name."""
    for each in source.labelled:
        label = {word.meaning for word in each.label if not word.is_silent}
        if wanted.meanings and wanted.meanings <= label:
            return Source(each.value, source.language)
    return None


def _score(value: Any, wanted: Field, source: Source) -> float:
    if isinstance(value, bool):
        return 0.0
    if isinstance(value, int | float):
        return NAMED if any(each.value == value for each in source.numbers) else 0.0
    if not isinstance(value, str):
        return 0.0
    forms = [plain(part) for part in parts_of(value)] or [plain(value)]
    content = [form for form in forms if form not in _GLUE] or forms
    score = NAMED * _named(forms, source)
    meanings = [known(form)[2] for form in content]
    shared = sum(1 for meaning in meanings if meaning in source.meanings - source.denied)
    score += PART * shared / len(meanings)
    spoken = {
        word for meaning in meanings for word in SPEAKING.get(meaning, ()) if word in source.speaking - source.denied
    }
    opposite = {word for meaning in meanings for word in SPEAKING.get(OPPOSITES.get(meaning, ""), ())}
    spoken |= opposite & source.denied
    score += min(MOST, SPOKEN * len(spoken))
    return score + _hinted(value, wanted, source)


def _named(forms: Sequence[str], source: Source) -> float:
    """Whether the whole value stands in the text: 1, or -1 where it is denied."""
    text = source.padded
    at = text.find(f" {' '.join(forms)} ")
    if at < 0:
        return 0.0
    if len(forms) == 1:
        return -1.0 if forms[0] in source.denied else 1.0
    before = text[:at].split()[-3:] if at < 400 else text[at - 60 : at].split()[-3:]  # noqa: PLR2004 - far enough back
    return -1.0 if NEGATIONS.intersection(before) else 1.0


def _hinted(value: str, wanted: Field, source: Source) -> float:
    """The schema's description may tell what a value means: ``urgent: needs an answer today``."""
    text = wanted.schema.get("description")
    if not isinstance(text, str) or value not in text:
        return 0.0
    behind = text.partition(value)[2][:160]
    ends = [behind.find(str(other)) for other in wanted.schema["enum"] if other != value and str(other) in behind]
    told = words_of(behind[: min(ends)] if ends else behind)
    return SPOKEN * min(3, len({word.meaning for word in told if not word.is_silent} & source.meanings))


def _likest(values: Sequence[Any], rivals: Sequence[int], source: Source) -> int:
    """Of values that as much speaks for, the one whose letters are most like words of the text."""
    return max(rivals, key=lambda at: (_likeness(str(values[at]), source), -abs(at - (len(values) - 1) / 2)))


def _undecided(values: Sequence[Any], scores: Mapping[int, float], source: Source) -> int:
    for at, value in enumerate(values):
        if NEUTRAL.intersection(parts_of(str(value))) and scores[at] >= 0:
            return at
    allowed = [at for at, score in scores.items() if score >= 0] or list(scores)
    return _likest(values, allowed, source)


def _likeness(value: str, source: Source) -> float:
    """How many pairs of letters of the value stand in the text, as a share."""
    pairs = {plain(value)[at : at + 2] for at in range(max(1, len(value) - 1))}
    return len(pairs & source.pairs) / len(pairs)
