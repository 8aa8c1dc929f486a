"""Finds the number that a field asks for."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from organism.agents.providers.builtin.days import years_of
from organism.agents.providers.builtin.fields import Field
from organism.agents.providers.builtin.labelling import Taken, is_alike, labelled
from organism.agents.providers.builtin.numbers import Number
from organism.agents.providers.builtin.schemas import Schema
from organism.agents.providers.builtin.sources import Source
from organism.agents.providers.builtin.words import Word

NEAR_WORDS: Final = 4
MOST_DIGITS: Final = 24
"""A longer number is no quantity."""
_AGES: Final = frozenset({"age", "alter", "aged"})
_AGED: Final = re.compile(r"(?:\bam|'m|bin|ist|aged|is|,)\s*$", re.IGNORECASE)
_SIGNS: Final = (
    (
        frozenset({"percent", "percentage", "share", "rate", "discount", "prozent", "rabatt", "tax", "anteil", "vat"}),
        ("%", "percent", "prozent", "per cent"),
    ),
    (
        frozenset(
            {"price", "amount", "total", "sum", "betrag", "fee", "salary", "budget", "revenue", "balance", "cost"}
            | {"costs", "kosten", "preis", "summe", "gehalt", "value", "invoice", "payment", "refund", "erstattung"}
            | {"deposit", "kaution", "rent", "miete", "wage", "lohn", "honorar", "gebuhr", "fine", "tip", "income"}
            | {"damage", "schaden", "schadenshohe", "schadenshoehe", "hohe", "hoehe", "zahlung", "premium", "beitrag"}
            | {"rechnungsbetrag", "income", "bonus", "donation", "spende", "loan", "kredit", "offer", "angebot", "bid"}
        ),
        (
            "€",
            "$",
            "£",
            "eur",
            "usd",
            "dollar",
            "euro",
            "gbp",
            "chf",
            "pound",
            "pfund",
            "yen",
            "¥",
            "franken",
            "yuan",
            "rupee",
            "zlot",
        ),
    ),
    (_AGES, ("year", "jahre", "yo", "-year")),
    (
        frozenset({"quantity", "menge", "anzahl", "count", "pieces", "stuck", "stuckzahl", "units", "items"}),
        ("piece", "stück", "unit", "item", "pcs", "x ", "times", "mal"),
    ),
)
"""What stands beside numbers of a kind, by the words of a field that asks for such."""


def number(wanted: Field, source: Source, taken: Taken) -> int | float | None:
    """The number that is called so, stands beside words of the field, or is the only one of its kind."""
    found = labelled(wanted, source, lambda value: _as_number(wanted, Source(value, source.language)))
    if found is not None:
        taken.values.add(("number", str(found)))
        return found
    near = _near(wanted, source)
    if near is not None:
        taken.values.add(("number", str(near)))
        return near
    values = [value for value in _numbers_like(wanted, source) if value is not None]
    chosen = taken.next("number", [str(value) for value in values])
    return next((value for value in values if str(value) == chosen), None)


def _as_number(wanted: Field, source: Source) -> int | float | None:
    return next((value for each in source.numbers if (value := _held(wanted, each.value)) is not None), None)


def _held(wanted: Field, value: Decimal) -> int | float | None:
    """The number as the schema takes it; None if it does not."""
    schema = wanted.schema
    if value.adjusted() > MOST_DIGITS:
        return None
    if wanted.kind == "integer" and value != value.to_integral_value():
        return None
    made = int(value) if value == value.to_integral_value() and abs(value) < 10**15 else float(value)
    return made if _is_within(made, schema) else None


def _is_within(value: float, schema: Schema) -> bool:
    """Whether a number lies between the bounds of the schema."""
    low, high = schema.get("minimum", value), schema.get("maximum", value)
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    return bool(low <= value <= high and (above is None or value > above) and (below is None or value < below))


def _near(wanted: Field, source: Source) -> int | float | None:
    """The number with the most of the field's words around it; those behind it count first: ``3 apples``."""
    best, chosen = 0.0, None
    words, like = source.words, _like(wanted, source)
    for each in source.numbers:
        value = _held(wanted, each.value)
        if value is None:
            continue
        at = bisect_left(words, each.start, key=lambda word: word.start)
        after = bisect_left(words, each.end, key=lambda word: word.start)
        behind, before = words[after : after + NEAR_WORDS], words[max(0, at - NEAR_WORDS) : at]
        score = (
            _nearness(wanted, before[::-1]) + _nearness(wanted, behind[:1]) * 1.1 + _nearness(wanted, behind[1:]) * 0.3
        )
        score *= 3 if each in like else 1
        if score > best:
            best, chosen = score, value
    return chosen


def _nearness(wanted: Field, words: Sequence[Word]) -> float:
    return sum(1.0 / (at + 1) for at, word in enumerate(words) if is_alike(word, wanted.meanings))


def _numbers_like(wanted: Field, source: Source) -> list[int | float | None]:
    """The numbers of the field's kind, in their order; if there are none, all."""
    if wanted.meanings & {"year", "jahr"}:
        return [_held(wanted, Decimal(year)) for year, _ in years_of(source.text)]
    numbers = _like(wanted, source) or [each for each in source.numbers if not _is_of_other_kind(wanted, source, each)]
    ranked = sorted(numbers or source.numbers, key=lambda each: not source.text[each.start].isdigit())
    return [_held(wanted, each.value) for each in ranked]


def _is_of_other_kind(wanted: Field, source: Source, number: Number) -> bool:
    """Whether it looks like money, a share or an age, and the field asks for none."""
    forms = set(wanted.forms)
    return any(not forms & words and _has_sign(source.text, number, signs) for words, signs in _SIGNS)


def _like(wanted: Field, source: Source) -> list[Number]:
    """The numbers that look like shares, money or ages, if the field asks for such."""
    forms = set(wanted.forms)
    signs = next((signs for words, signs in _SIGNS if forms & words), ())
    found = [each for each in source.numbers if signs and _has_sign(source.text, each, signs)]
    if not found and forms & _AGES:
        return [each for each in source.numbers if _AGED.search(source.text, max(0, each.start - 8), each.start)]
    return found


def _has_sign(text: str, number: Number, signs: tuple[str, ...]) -> bool:
    """Whether one of the signs stands right before or behind the number."""
    behind = text[number.end : number.end + 14].lstrip().lower()
    return behind.startswith(signs) or text[max(0, number.start - 4) : number.start].rstrip().lower().endswith(signs)


def numbers(wanted: Field, source: Source) -> list[int | float]:
    """Every number that such a field takes."""
    found = [_held(wanted, each.value) for each in source.numbers]
    return [value for value in found if value is not None]
