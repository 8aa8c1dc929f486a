"""Fills the arguments of a tool from a request. What is required and not said makes the call impossible."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from organism.agents.providers.builtin.choosing import PART, best_choice
from organism.agents.providers.builtin.evidence import all_of, find
from organism.agents.providers.builtin.fields import Field
from organism.agents.providers.builtin.finders import all_in
from organism.agents.providers.builtin.labelling import Taken
from organism.agents.providers.builtin.lexicon import POLITE
from organism.agents.providers.builtin.numbers import from_digits
from organism.agents.providers.builtin.offers import OPERATIONS, Offer
from organism.agents.providers.builtin.places import Place
from organism.agents.providers.builtin.sources import Source
from organism.agents.providers.builtin.sum_tree import Sum, expression
from organism.agents.providers.builtin.tool_texts import ToolTexts, Wish
from organism.agents.providers.builtin.words import known

_STATES: Final = (
    ("on", "enabled", "an", "ein"),
    ("off", "disabled", "aus", "ab"),
    ("open", "opened", "auf"),
    ("closed", "close", "zu"),
)
"""Words of a state, the German particles of its verbs behind them."""
_TURNING: Final = frozenset({"turn", "switch", "put"})
ANYWHERE: Final = "UTC"
TWO: Final = 2


def arguments_for(wish: Wish, place: Place | None = None) -> dict[str, Any] | None:
    """The arguments; None if a required one is not said."""
    filler = _Filler(wish)
    made: dict[str, Any] = {}
    for field in wish.offer.fields:
        value = filler.place(field, place) if _wants_place(field) else None
        if value is None:
            value = filler.value(field)
        if value is None and field.is_required:
            value = field.schema.get("default", field.schema.get("const"))
            if value is None:
                return None
        if value is not None:
            made[field.name] = value
    return made


def arguments_of_sum(wish: Wish, found: Sum) -> dict[str, Any] | None:
    """A sum as one expression, or as two numbers and what is done with them; None if the tool takes no such sum."""
    offer = wish.offer
    texts = [field for field in offer.fields if field.kind == "string" and "enum" not in field.schema]
    texts.sort(key=lambda field: (field.topic != "sum", not field.is_required))
    if texts and (texts[0].topic == "sum" or not offer.takes_numbers):
        about = f"{offer.spec.description} {texts[0].schema.get('description', '')}"
        power = "^" if "^" in about and "**" not in about else "**"
        return {texts[0].name: expression(found, power)}
    return _numbers(offer, found)


def _numbers(offer: Offer, found: Sum) -> dict[str, Any] | None:
    values = [from_digits(part.digits) for part in found.parts if part.is_number]
    fields = [field for field in offer.fields if field.kind in ("number", "integer")]
    if len(values) != len(found.parts) or len(values) != TWO:
        return None
    made: dict[str, Any] = {
        field.name: None if value is None else int(value) if value == value.to_integral_value() else float(value)
        for field, value in zip(fields, values, strict=False)
    }
    made |= {
        field.name: _operation(found.op, field.schema.get("enum")) for field in offer.fields if field.kind == "string"
    }
    is_named = found.op in offer.operations
    has_choice = len(made) > len(values)
    return made if None not in made.values() and (has_choice or is_named) else None


def _wants_place(field: Field) -> bool:
    return field.topic in ("zone", "place") and field.kind == "string"


class _Filler:
    """Fills the fields of one tool from one clause."""

    def __init__(self, wish: Wish) -> None:
        self._offer = wish.offer
        self._clause = wish.clause
        self._source = Source(wish.clause.text, wish.language)
        self._wide = Source(wish.wide, wish.language)
        self._taken = Taken()
        self._texts = ToolTexts(wish, self._source, self._taken)

    def place(self, field: Field, place: Place | None) -> str | None:
        """A zone, or the name of the place, whichever is asked for."""
        if place is None and field.topic == "zone":
            return ANYWHERE if field.is_required and "default" not in field.schema else None
        if place is None:
            return None
        chosen = field.schema.get("enum")
        wanted = place.zone if field.topic == "zone" or "zone" in field.described else place.name
        if isinstance(chosen, Sequence) and wanted not in chosen:
            return next((value for value in (place.name, place.zone) if value in chosen), None)
        return wanted

    def value(self, field: Field) -> Any | None:
        """What the clause says for the field; for what must be said, the whole message too."""
        if "enum" in field.schema:
            return self._chosen(field)
        if not field.is_required:
            return self._listed(field) if field.kind == "array" else self._optional(field)
        value = self._said(field)
        if value is not None or field.topic == "sum":
            return value
        found = find(field, self._wide, self._taken)
        is_free = field.kind == "string" and field.topic in ("other", "title", "text", "person")
        return found if found is not None or not is_free else self._texts.before(field)

    def _chosen(self, field: Field) -> Any | None:
        switched = self._switched(field)
        if switched is not None:
            return switched
        best = best_choice(field, self._source)
        if field.is_required and (best is None or best.evidence <= 0):
            best = best_choice(field, self._wide)
        return best.value if best is not None and best.evidence >= (PART if not field.is_required else 0.5) else None

    def _switched(self, field: Field) -> Any | None:
        """Of two states the one that the verb's particle names: ``turn the fan off``, ``mach das Licht aus``."""
        values = {str(value).lower(): value for value in field.schema["enum"]}
        words = [word.plain for word in self._clause.words if not self._clause.bare[word.start].isspace()]
        verb = known(self._clause.verb)[0]
        said = next((word for word in reversed(words) if word not in POLITE), "")
        for states in _STATES:
            named = next((values[state] for state in states if state in values), None)
            if named is not None and (said in states or verb.startswith(states[2:]) or _stands_together(words, states)):
                return named
        return None

    def _optional(self, field: Field) -> Any | None:
        """What need not be said counts only if it is said by name, or is of a kind that says itself."""
        words = {word.meaning for word in self._clause.words}
        is_named = bool(field.meanings & words)
        is_typed = field.topic in ("email", "url", "date", "time", "datetime", "zone", "place", "phone", "language")
        if field.kind == "string" and field.topic in ("text", "query", "title", "other", "id") and not is_named:
            return None
        if not (is_named or (field.kind == "string" and is_typed)):
            return None
        if field.kind in ("integer", "number") and not self._source.numbers:
            return None
        return find(field, self._source, self._taken)

    def _listed(self, field: Field) -> list[Any] | None:
        """Addresses and the like for a list."""
        inner = Field.of(field.name, field.schema.get("items", {}), field.root, is_required=True)
        is_typed = inner.topic in ("email", "url", "phone", "date") and inner.kind == "string"
        return (all_of(inner, self._source) or None) if is_typed else None

    def _said(self, field: Field) -> Any | None:
        if field.kind == "array":
            return self._several(field)
        if field.kind != "string":
            return find(field, self._source, self._taken)
        special = self._texts.text(field)
        found = special if special is not None else find(field, self._source, self._taken)
        if found is None and field.topic in ("host", "symbol", "key", "person"):
            ids = all_in(self._source, "id")
            found = ids[0] if len(ids) == 1 else None
        return found if found is not None or field.topic == "place" else self._texts.part(field)

    def _several(self, field: Field) -> list[Any] | None:
        typed = self._listed(field)
        if typed:
            return typed
        items = field.schema.get("items")
        item = Field.of(field.name, items if items is not None else {}, field.root, is_required=True)
        if item.kind in ("number", "integer"):
            return [
                int(each.value) if item.kind == "integer" else float(each.value) for each in self._source.numbers
            ] or None
        subject = self._texts.subject
        parts = [part.strip() for part in re.split(r",|\band\b|\bund\b", subject) if part.strip()]
        return parts or None


def _stands_together(words: Sequence[str], states: Sequence[str]) -> bool:
    """``turn on``, ``switch off``."""
    return any(left in _TURNING and right in states for left, right in pairwise(words))


def _operation(op: str, allowed: object) -> str | None:
    """What the operation is called by the tool; its sign where the tool does not say."""
    names = OPERATIONS.get(op, ())
    if not isinstance(allowed, Sequence):
        return op
    return next((str(value) for value in allowed if str(value).lower() in names), None)
