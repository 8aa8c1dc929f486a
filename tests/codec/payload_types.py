"""Chance for the codec's tests: dataclass types of every allowed shape, and values of them."""

from __future__ import annotations

from dataclasses import field, make_dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple

import annotated_types
from hypothesis import strategies as st
from pydantic import Field

Strategy = st.SearchStrategy[Any]


class Recipe(NamedTuple):
    """A type, and how to make values of it."""

    hint: Any
    values: Strategy


class PayloadType(NamedTuple):
    """A dataclass, and how to make objects of it."""

    cls: type
    values: Strategy


_AWKWARD = st.sampled_from(
    [
        "",
        " ",
        "\r",
        "\n",
        "\r\n",
        "\t",
        " a ",
        "<b>&amp;</b>",
        "]]>",
        "&#13;",
        "\u2028",
        "\u0085",
        "\x7f",
        "ä😀",
        "\ufeff",
        "a\rb",
    ]
)
texts = _AWKWARD | st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff"), max_size=8
)
ints = st.integers(-(2**63), 2**63 - 1)
floats = st.floats(allow_nan=False, allow_infinity=False)
decimals = st.decimals(allow_nan=False, allow_infinity=False, places=4) | st.sampled_from(
    [Decimal("-0.00"), Decimal("1E+5"), Decimal("1E-40"), Decimal("9" * 60), Decimal("0E+3")]
)
dates = st.dates(date(1, 1, 1), date(9999, 12, 31))
offsets = st.integers(-840, 840).map(lambda minutes: timezone(timedelta(minutes=minutes))) | st.just(UTC)
odd_offsets = st.integers(-86399, 86399).map(lambda seconds: timezone(timedelta(seconds=seconds)))
datetimes = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=offsets | odd_offsets)  # noqa: DTZ001 - the zones follow
names = st.sampled_from(
    ["name", "text", "item", "key", "value", "message", "größe", "_private", "x1", "from_", "list", "class_"]
)


def _enum(values: list[Any]) -> Recipe:
    members = {f"M{at}": value for at, value in enumerate(values)}
    made: Any = Enum("Choice", members)  # type: ignore[misc]  # its members are chance
    return Recipe(made, st.sampled_from(list(made)))


def _literal(values: list[Any]) -> Recipe:
    return Recipe(Literal[tuple(values)], st.sampled_from(values))


plain = st.sampled_from(
    [
        Recipe(str, texts),
        Recipe(int, ints),
        Recipe(float, floats),
        Recipe(bool, st.booleans()),
        Recipe(Decimal, decimals),
        Recipe(bytes, st.binary(max_size=8)),
        Recipe(date, dates),
        Recipe(datetime, datetimes),
    ]
)
constrained = st.sampled_from(
    [
        Recipe(Annotated[str, Field(min_length=1, max_length=6)], st.text("aä<&\r 😀", min_size=1, max_size=6)),
        Recipe(Annotated[str, Field(pattern="^[a-c]+-[0-9]{2,3}$")], st.from_regex(r"\A[a-c]{1,4}-[0-9]{2,3}\Z")),
        Recipe(Annotated[int, annotated_types.Interval(ge=-5, lt=9)], st.integers(-5, 8)),
        Recipe(Annotated[float, annotated_types.Gt(0.5)], st.floats(0.5, exclude_min=True, allow_infinity=False)),
        Recipe(Annotated[Decimal, annotated_types.Le(10)], st.decimals(-10, 10, places=2)),
        Recipe(Annotated[bytes, annotated_types.Len(1, 4)], st.binary(min_size=1, max_size=4)),
        Recipe(Annotated[date, annotated_types.Ge(date(2000, 1, 1))], st.dates(date(2000, 1, 1))),
        Recipe(
            Annotated[datetime, annotated_types.Lt(datetime(2100, 1, 1, tzinfo=UTC))],
            st.datetimes(datetime(2, 1, 1), datetime(2099, 12, 30), timezones=offsets),  # noqa: DTZ001 - the zones follow
        ),
        Recipe(Annotated[list[int], annotated_types.Len(1, 3)], st.lists(ints, min_size=1, max_size=3)),
        Recipe(
            dict[Annotated[str, annotated_types.MinLen(1)], bool],
            st.dictionaries(st.text("a\t\n\r\"' <&", min_size=1), st.booleans()),
        ),
    ]
)
chosen = st.one_of(
    st.lists(st.text("ab <&\r", max_size=3), min_size=1, max_size=4, unique=True).map(_enum),
    st.lists(st.integers(-9, 9), min_size=1, max_size=4, unique=True).map(_enum),
    st.lists(st.text("ab <&\r", max_size=3), min_size=1, max_size=4, unique=True).map(_literal),
    st.lists(st.integers(-9, 9), min_size=1, max_size=4, unique=True).map(_literal),
)
leaves = plain | constrained | chosen


def _list_of(inner: Recipe) -> Recipe:
    return Recipe(list[inner.hint], st.lists(inner.values, max_size=3))  # type: ignore[name-defined]  # made while running


def _dict_of(inner: Recipe) -> Recipe:
    return Recipe(dict[str, inner.hint], st.dictionaries(texts, inner.values, max_size=3))  # type: ignore[name-defined]  # as above


def _maybe(inner: Recipe) -> Recipe:
    return Recipe(inner.hint | None, st.none() | inner.values)


def _nested(parts: tuple[Recipe, ...], name: str) -> Recipe:
    made = make_dataclass(name, [(f"f{at}", part.hint) for at, part in enumerate(parts)])
    return Recipe(made, st.builds(made, *(part.values for part in parts)))


def _union(one: Recipe, other: Recipe) -> Recipe:
    return Recipe(one.hint | other.hint, one.values | other.values)


def _deeper(inner: st.SearchStrategy[Recipe]) -> st.SearchStrategy[Recipe]:
    records = st.builds(_nested, st.tuples(inner) | st.tuples(inner, inner) | st.just(()), st.just("Inner"))
    others = st.builds(_nested, st.tuples(inner), st.just("Other"))
    return st.one_of(
        inner.map(_list_of), inner.map(_dict_of), inner.map(_maybe), records, st.builds(_union, records, others)
    )


recipes: st.SearchStrategy[Recipe] = st.recursive(leaves, _deeper, max_leaves=5)


@st.composite
def payload_types(draw: st.DrawFn) -> PayloadType:
    """A payload class of up to five fields, some of them with defaults, and its objects."""
    fields: list[tuple[str, Any, Any]] = []
    values: dict[str, Strategy] = {}
    for name in draw(st.lists(names, max_size=5, unique=True)):
        recipe = draw(recipes)
        fields.append((name, recipe.hint, _default(draw, recipe)))
        values[name] = recipe.values
    cls = make_dataclass("Made", fields, kw_only=True, frozen=draw(st.booleans()))
    return PayloadType(cls, st.builds(cls, **values))


def _default(draw: st.DrawFn, recipe: Recipe) -> Any:
    if not draw(st.booleans()):
        return field()
    value = draw(recipe.values)
    return field(default_factory=lambda: value)
