"""The JSON forms of payloads, each read strictly."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal

import orjson
import pytest
from annotated_types import Interval, Len

from organism.codec import Codec
from organism.errors import InvalidPayload
from tests.growth import growth_fault


class Color(Enum):
    RED = "red"


@dataclass
class Empty:
    pass


@dataclass(kw_only=True)
class Forms:
    text: str = ""
    number: int = 0
    real: float = 0.0
    flag: bool = False
    exact: Decimal = Decimal(0)
    raw: bytes = b""
    day: date = date(2000, 1, 1)
    at: datetime = datetime(2000, 1, 1, tzinfo=UTC)
    color: Color = Color.RED
    level: Literal[1, 2] = 1
    items: Annotated[list[int], Len(0, 2)] = field(default_factory=list)
    table: Annotated[dict[str, int], Len(0, 1)] = field(default_factory=dict)
    open_: Annotated[Decimal, Interval(gt=-1, lt=1)] = Decimal(0)
    empty: Empty | None = None


CODEC = Codec.of([Forms])

TAKEN: list[tuple[str, Any, Any]] = [
    ("number", -(2**63), -(2**63)),
    ("real", 3, 3.0),
    ("exact", "-.50", Decimal("-0.50")),
    ("exact", "+1.", Decimal(1)),
    ("raw", "AAE=", b"\x00\x01"),
    ("day", "2024-02-29", date(2024, 2, 29)),
    ("at", "2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
    ("at", "2026-01-31T14:00:00.25+02:00", datetime(2026, 1, 31, 12, 0, 0, 250_000, tzinfo=UTC)),
    ("color", "red", Color.RED),
    ("level", 2, 2),
    ("empty", {}, Empty()),
    ("empty", None, None),
]
REFUSED: list[tuple[str, Any, str]] = [
    ("text", 1, "expected text"),
    ("text", ["a"], "came a list"),
    ("number", 2**63, "declare the field Decimal"),
    ("number", 1e30, "declare the field Decimal"),
    ("number", 1.0, "expected whole number"),
    ("number", True, "expected whole number"),
    ("number", "1", "expected whole number"),
    ("number", None, "nothing"),
    ("real", "1.0", "expected number"),
    ("real", True, "expected number"),
    ("real", float("nan"), "finite"),
    ("real", 10**400, "finite"),
    ("flag", 1, "true or false"),
    ("flag", "true", "true or false"),
    ("exact", 1, "decimal number as text"),
    ("exact", "1e5", "no exponent"),
    ("exact", "NaN", "decimal number"),
    ("exact", "1\n", "decimal number"),
    ("exact", "\u0661", "decimal number"),
    ("raw", 1, "base64"),
    ("raw", "A", "base64"),
    ("raw", "AAF=", "canonical"),
    ("raw", "AA E=", "base64"),
    ("raw", "ä", "base64"),
    ("day", "2026-02-30", "calendar"),
    ("day", "20260131", "date"),
    ("day", "2026-01-31T00:00:00Z", "date"),
    ("day", 20260131, "date"),
    ("at", "2026-01-31T12:00:00", "offset"),
    ("at", "2026-01-31 12:00:00Z", "offset"),
    ("at", "2026-01-31T24:00:00Z", "offset"),
    ("at", "2026-01-31T12:00:00+24:00", "calendar"),
    ("at", "2026-02-30T12:00:00Z", "calendar"),
    ("at", 1769860800, "offset"),
    ("color", "RED", "one of 'red'"),
    ("level", "1", "one of 1, 2"),
    ("level", True, "one of 1, 2"),
    ("level", 3, "one of 1, 2"),
    ("items", {"a": 1}, "expected a list, came an object with 'a'"),
    ("items", [1, 2, 3], "at most 2 items"),
    ("items", "ab", "expected a list"),
    ("table", [], "expected an object, came a list"),
    ("table", {"a": 1, "b": 2}, "at most 1 items"),
    ("open_", "1", "less than 1"),
    ("open_", "-1.0", "more than -1"),
    ("empty", {"a": 1}, "known are none"),
]


@pytest.mark.parametrize(("name", "value", "wanted"), TAKEN)
def test_a_form_of_the_spec_is_taken(name: str, value: Any, wanted: Any) -> None:
    taken = getattr(CODEC.from_json("Forms", {name: value}), name)
    assert taken == wanted
    assert type(taken) is type(wanted)


@pytest.mark.parametrize(("name", "value", "words"), REFUSED)
def test_another_form_is_refused_with_words_that_help(name: str, value: Any, words: str) -> None:
    with pytest.raises(InvalidPayload) as error:
        CODEC.from_json("Forms", {name: value})
    (fault,) = error.value.details
    assert words in fault.message
    assert fault.pointer.startswith(f"/{name}")


def test_offsets_of_a_day_and_more_have_no_form() -> None:
    at = CODEC.from_json("Forms", {"at": "2026-01-31T12:00:00+23:00"}).at
    assert at == datetime(2026, 1, 30, 13, tzinfo=UTC)
    assert b"2026-01-30T13:00:00+00:00" in CODEC.seal("a", "b", "t", Forms(at=at)).xml


def test_json_of_a_payload_that_the_codec_did_not_make_may_be_refused() -> None:
    with pytest.raises(InvalidPayload, match="/color"):
        CODEC.json(Forms(color="red"))  # type: ignore[arg-type]  # the point


@dataclass
class Named:
    by_name: dict[str, list[Decimal]]


@pytest.mark.thorough
@pytest.mark.parametrize("number", ['"1"', "1", '"1.x"'])
def test_reading_grows_no_faster_than_its_json(number: str) -> None:
    codec = Codec.of([Named])

    def prepare(size: int) -> Callable[[], object]:
        value = orjson.loads(
            b'{"by_name":{"%b":[%b]}}' % (b"a" * (size // 2), b",".join([number.encode()] * (size // 8)))
        )

        def read() -> None:
            with suppress(InvalidPayload):
                codec.from_json("Named", value)

        return read

    assert growth_fault(prepare) == ""
