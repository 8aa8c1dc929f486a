"""Chance for the codec's tests: dataclass types of every allowed shape, drawn by hypothesis, and objects of them.

Objects are made from a drawn seed, not drawn bit by bit: ten thousand of them are to take seconds.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import field, make_dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from math import isfinite
from random import Random
from typing import Annotated, Any, Literal, NamedTuple

from annotated_types import Ge, Gt, Interval, Le, Len, Lt, MinLen
from hypothesis import strategies as st
from pydantic import Field

from organism import Json, JsonObject

Make = Callable[[Random], Any]


class Recipe(NamedTuple):
    """A type, and how to make a value of it."""

    hint: Any
    make: Make


class PayloadType(NamedTuple):
    """A dataclass, and how to make an object of it."""

    cls: type
    make: Make


AWKWARD = ["", " ", "\r", "\n", "\r\n", "\t", " a ", "<b>&amp;</b>", "]]>", "&#13;"]
AWKWARD += ["\u2028", "\u0085", "\x7f", "😀", "\ufeff"]
LETTERS = "abcäß😀\r\n\t <>&\"'\u00a0\ufffd\U0010ffff"
FLOATS = [0.0, -0.0, 5e-324, 1e22, 1e16, 0.1, 1.7976931348623157e308, -1.0]
DECIMALS = [Decimal(text) for text in ("0", "-0.00", "1E+5", "1E-40", "9" * 60, "0E+3", "12.50", "-.5")]
INTS = [0, 1, -1, 2**63 - 1, -(2**63)]
NAMES = ["name", "text", "item", "key", "value", "message", "größe", "_private", "x1", "from_", "list", "class_"]


def _text(chance: Random, least: int = 0, most: int = 8) -> str:
    if not least and chance.random() < 0.3:
        return chance.choice(AWKWARD)
    return "".join(chance.choices(LETTERS, k=chance.randint(least, most)))


def _float(chance: Random) -> float:
    number = struct.unpack("d", chance.randbytes(8))[0]
    return number if isfinite(number) and chance.random() < 0.7 else chance.choice(FLOATS)


def _int(chance: Random) -> int:
    return chance.choice(INTS) if chance.random() < 0.3 else chance.getrandbits(64) - 2**63


def _decimal(chance: Random) -> Decimal:
    if chance.random() < 0.3:
        return chance.choice(DECIMALS)
    return Decimal(chance.getrandbits(70) - 2**69).scaleb(-chance.randint(0, 30))


def _date(chance: Random, first: int = 1) -> date:
    return date.fromordinal(chance.randint(date(first, 1, 1).toordinal(), date.max.toordinal()))


def _datetime(chance: Random, last: int = 9998) -> datetime:
    day = date.fromordinal(chance.randint(date(2, 1, 1).toordinal(), date(last, 12, 30).toordinal()))
    offset = chance.choice([UTC, _offset(chance.randint(-840, 840) * 60), _offset(chance.randint(-86399, 86399))])
    since = timedelta(microseconds=chance.choice([0, chance.randrange(86_400_000_000)]))
    return datetime(day.year, day.month, day.day, tzinfo=offset) + since


def _offset(seconds: int) -> timezone:
    return timezone(timedelta(seconds=seconds))


def _many(chance: Random, make: Make, least: int = 0, most: int = 3) -> list[Any]:
    return [make(chance) for _ in range(chance.randint(least, most))]


def _json(chance: Random, levels: int = 3) -> Any:
    kind = chance.randrange(7 if levels else 5)
    if kind == 5:
        return _many(chance, lambda inner: _json(inner, levels - 1))
    if kind == 6:
        return _json_object(chance, levels)
    return [None, chance.random() < 0.5, _int(chance), _float(chance), _json_text(chance)][kind]


def _json_object(chance: Random, levels: int = 3) -> dict[str, Any]:
    return {_json_text(chance): _json(chance, levels - 1) for _ in range(chance.randint(0, 3))}


def _json_text(chance: Random) -> str:
    return _text(chance) + chance.choice(["", "\x00", "\ufffe", "\x1f"])


def _choice(values: Sequence[Any]) -> Make:
    return lambda chance: chance.choice(values)


def _enum(values: list[Any]) -> Recipe:
    members = {f"M{at}": value for at, value in enumerate(values)}
    made: Any = Enum("Choice", members)  # type: ignore[misc]  # its members are chance
    return Recipe(made, _choice(list(made)))


def _literal(values: list[Any]) -> Recipe:
    return Recipe(Literal[tuple(values)], _choice(values))


PLAIN = [
    Recipe(str, _text),
    Recipe(int, _int),
    Recipe(float, _float),
    Recipe(bool, _choice([True, False])),
    Recipe(Decimal, _decimal),
    Recipe(bytes, lambda chance: chance.randbytes(chance.randint(0, 8))),
    Recipe(date, _date),
    Recipe(datetime, _datetime),
    Recipe(Json, _json),
    Recipe(JsonObject, _json_object),
]
CONSTRAINED = [
    Recipe(Annotated[str, Field(min_length=1, max_length=6)], lambda chance: _text(chance, 1, 6)),
    Recipe(
        Annotated[str, Field(pattern="^[a-c]+-[0-9]{2,3}$")],
        lambda chance: "".join(chance.choices("abc", k=chance.randint(1, 4))) + f"-{chance.randint(10, 999)}",
    ),
    Recipe(Annotated[int, Interval(ge=-5, lt=9)], lambda chance: chance.randint(-5, 8)),
    Recipe(Annotated[float, Gt(0.5)], lambda chance: 0.5 + 5 * (1 - chance.random())),
    Recipe(Annotated[Decimal, Le(10)], lambda chance: Decimal(chance.randint(-1000, 1000)).scaleb(-2)),
    Recipe(Annotated[bytes, Len(1, 4)], lambda chance: chance.randbytes(chance.randint(1, 4))),
    Recipe(Annotated[date, Ge(date(2000, 1, 1))], lambda chance: _date(chance, 2000)),
    Recipe(Annotated[datetime, Lt(datetime(2100, 1, 1, tzinfo=UTC))], lambda chance: _datetime(chance, 2099)),
    Recipe(Annotated[list[int], Len(1, 3)], lambda chance: _many(chance, _int, 1)),
    Recipe(
        dict[Annotated[str, MinLen(1)], bool],
        lambda chance: {_text(chance, 1): chance.random() < 0.5 for _ in range(2)},
    ),
]
_few_texts = st.lists(st.text("ab <&\r", max_size=3), min_size=1, max_size=4, unique=True)
_few_ints = st.lists(st.integers(-9, 9), min_size=1, max_size=4, unique=True)
_leaves = st.one_of(
    st.sampled_from(PLAIN),
    st.sampled_from(CONSTRAINED),
    (_few_texts | _few_ints).map(_enum),
    (_few_texts | _few_ints).map(_literal),
)


def _list_of(inner: Recipe) -> Recipe:
    return Recipe(list[inner.hint], lambda chance: _many(chance, inner.make))  # type: ignore[name-defined]  # made here


def _dict_of(inner: Recipe) -> Recipe:
    hint = dict[str, inner.hint]  # type: ignore[name-defined]  # made here
    return Recipe(hint, lambda chance: {_text(chance): inner.make(chance) for _ in range(chance.randint(0, 3))})


def _maybe(inner: Recipe) -> Recipe:
    return Recipe(inner.hint | None, lambda chance: inner.make(chance) if chance.random() < 0.7 else None)


def _nested(parts: tuple[Recipe, ...], name: str) -> Recipe:
    made = make_dataclass(name, [(f"f{at}", part.hint) for at, part in enumerate(parts)])
    return Recipe(made, lambda chance: made(*(part.make(chance) for part in parts)))


def _union(one: Recipe, other: Recipe) -> Recipe:
    return Recipe(one.hint | other.hint, lambda chance: chance.choice([one, other]).make(chance))


def _deeper(inner: st.SearchStrategy[Recipe]) -> st.SearchStrategy[Recipe]:
    records = st.builds(_nested, st.tuples(inner) | st.tuples(inner, inner) | st.just(()), st.just("Inner"))
    others = st.builds(_nested, st.tuples(inner), st.just("Other"))
    return st.one_of(
        inner.map(_list_of), inner.map(_dict_of), inner.map(_maybe), records, st.builds(_union, records, others)
    )


recipes: st.SearchStrategy[Recipe] = st.recursive(_leaves, _deeper, max_leaves=5)
seeds = st.integers(0, 2**64 - 1).map(Random)


@st.composite
def payload_types(draw: st.DrawFn) -> PayloadType:
    """A payload class of up to five fields, some of them with defaults, and its objects."""
    fields: list[tuple[str, Any, Any]] = []
    makes: dict[str, Make] = {}
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=5, unique=True)):
        recipe = draw(recipes)
        fields.append((name, recipe.hint, _default(draw, recipe)))
        makes[name] = recipe.make
    cls = make_dataclass("Made", fields, kw_only=True, frozen=draw(st.booleans()))
    return PayloadType(cls, lambda chance: cls(**{name: make(chance) for name, make in makes.items()}))


def _default(draw: st.DrawFn, recipe: Recipe) -> Any:
    if not draw(st.booleans()):
        return field()
    value = recipe.make(draw(seeds))
    return field(default_factory=lambda: value)
