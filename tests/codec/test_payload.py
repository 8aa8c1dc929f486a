"""Values at the edges of each type: what is carried exactly, and what is refused with words that help."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, make_dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

import orjson
import pytest
from annotated_types import Interval, Len, MinLen

from organism import Json, JsonObject
from organism.codec import Codec, Encoded, UnsupportedPayload
from organism.errors import Fault, InvalidPayload
from tests.growth import growth_fault


class Color(StrEnum):
    RED = "red"
    ODD = " <odd>\r"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Twice(Enum):
    ONE = "one"
    UNO = "one"  # noqa: PIE796 - an alias


@dataclass
class Circle:
    radius: float


@dataclass
class Square:
    side: float


@dataclass
class Empty:
    pass


@dataclass(kw_only=True)
class Any1:
    text: str = ""
    number: int = 0
    real: float = 0.0
    flag: bool = False
    exact: Decimal = Decimal(0)
    raw: bytes = b""
    day: date = date(2000, 1, 1)
    at: datetime = datetime(2000, 1, 1, tzinfo=UTC)
    color: Color = Color.RED
    level: Level = Level.LOW
    twice: Twice = Twice.ONE
    word: Literal["a", "b"] | None = None
    digit: Literal[1, 2] = 1
    names: list[str | None] = field(default_factory=list)
    table: dict[str, int | None] = field(default_factory=dict)
    grid: list[list[int]] = field(default_factory=list)
    tables: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    shape: Circle | Square | None = None
    shapes: list[Circle | Square | None] = field(default_factory=list)
    maybe: list[str] | None = None
    five: int | None = 5
    some: list[int] = field(default_factory=lambda: [1])
    few: Annotated[list[int], Len(0, 2)] = field(default_factory=list)
    single: Annotated[dict[str, int], Len(0, 1)] = field(default_factory=dict)
    open_: Annotated[Decimal, Interval(gt=-1, lt=1)] = Decimal(0)
    empty: Empty | None = None
    json: Json = None
    meta: JsonObject = field(default_factory=dict)
    maybe_meta: JsonObject | None = None
    jsons: list[Json] = field(default_factory=list)
    json_table: dict[str, Json] = field(default_factory=dict)


CODEC = Codec.of([Any1])


def encoded(**values: Any) -> Encoded:
    return CODEC.encode("a", "b", "t", Any1(**values))


def refused(**values: Any) -> tuple[Fault, ...]:
    with pytest.raises(InvalidPayload) as error:
        encoded(**values)
    return error.value.details


CARRIED: list[dict[str, Any]] = [
    {"text": text}
    for text in ("", " ", "\r", "\r\n", "\n", "\t", "  a  ", "<&>\"'", "]]>", "\x7f\x85\u2028", "😀", "\ufffd", "&#13;")
]
CARRIED += [{"number": number} for number in (0, -1, 2**63 - 1, -(2**63))]
CARRIED += [{"real": real} for real in (0.1, 1e22, 5e-324, -1.7976931348623157e308, 1e16, 123456789.125)]
CARRIED += [{"exact": Decimal(text)} for text in ("0.10", "-0.00", "1E+5", "1E-40", "9" * 80, "0E+3", "0." + "3" * 60)]
CARRIED += [{"raw": raw} for raw in (b"", b"\x00", bytes(range(256)))]
CARRIED += [{"day": day} for day in (date.min, date.max, date(2024, 2, 29))]
CARRIED += [
    {"at": datetime(2026, 1, 31, 12, 0, 0, 1, tzinfo=timezone(timedelta(hours=hours)))} for hours in (-14, 0, 14)
]
CARRIED += [{"at": datetime(2026, 7, 1, tzinfo=ZoneInfo("Europe/Vienna"))}]
CARRIED += [
    {"color": Color.ODD},
    {"level": Level.HIGH},
    {"twice": Twice.UNO},
    {"word": "b"},
    {"word": None},
    {"digit": 2},
]
CARRIED += [{"names": names} for names in ([], [""], [None], ["", None, "a", None])]
CARRIED += [{"table": table} for table in ({}, {"": 1}, {"\t\n\r \"<&'": None, "b": -1}, {"b": 1, "a": 2})]
CARRIED += [{"grid": [[], [1], []]}, {"tables": {"a": {}, "b": {"c": [""]}}}]
CARRIED += [{"shape": Square(1.5)}, {"shapes": [None, Circle(1.0), Square(2.0)]}]
CARRIED += [{"maybe": maybe} for maybe in (None, [], [""])]
CARRIED += [{"five": five} for five in (None, 5, 6)]
CARRIED += [{"some": some} for some in ([], [1], [2, 3])]
JSON_CARRIED: list[Any] = [
    None,
    True,
    0,
    -(2**63),
    2**64 - 1,
    0.1,
    -0.0,
    1e22,
    "",
    " ",
    "null",
    "<&]]>\r\n",
    "\x00\ufffe\uffff😀",
]
JSON_CARRIED += [[], {}, [None, [{}]], {"": {"a~/b": [1, 1.0]}, "\x00": "ü"}]
CARRIED += [{"json": json} for json in JSON_CARRIED]
CARRIED += [{"meta": {"deep": json}} for json in JSON_CARRIED]
CARRIED += [{"maybe_meta": meta} for meta in (None, {}, {"a": None})]
CARRIED += [{"jsons": JSON_CARRIED, "json_table": {"a": None, "\t": {"b": []}}}]


@pytest.mark.parametrize("values", CARRIED)
def test_a_value_at_the_edge_comes_back_as_it_went(values: dict[str, Any]) -> None:
    payload = Any1(**values)
    got = encoded(**values)
    assert got.payload == payload
    assert CODEC.from_json("Any1", orjson.loads(got.json)) == payload
    assert CODEC.decode(got.xml).payload == payload


def test_a_zero_keeps_its_sign() -> None:
    assert math.copysign(1, encoded(real=-0.0).payload.real) == -1
    assert b'"real":-0.0' in encoded(real=-0.0).json


def test_an_empty_list_is_not_a_missing_one() -> None:
    assert b"<maybe></maybe>" in encoded(maybe=[]).xml
    assert b"<maybe>" not in encoded(maybe=None).xml
    assert CODEC.from_xml(b"<Any1/>") == Any1()
    assert CODEC.from_xml(b"<Any1><some/></Any1>") == Any1(some=[])


def test_none_is_written_out_where_a_missing_element_means_another_default() -> None:
    nil = b'<five xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:nil="true"></five>'
    assert nil in encoded(five=None).xml
    assert CODEC.from_xml(b"<Any1/>").five == 5


def test_the_json_forms_are_those_of_the_spec() -> None:
    got = encoded(
        exact=Decimal("12.50"), raw=b"abc", at=datetime(2026, 1, 31, 12, tzinfo=UTC), color=Color.RED, level=Level.HIGH,
        shape=Circle(2.0),
    )  # fmt: skip
    forms = orjson.loads(got.json)
    assert forms["exact"] == "12.50"
    assert forms["raw"] == "YWJj"
    assert forms["at"] == "2026-01-31T12:00:00+00:00"
    assert (forms["color"], forms["level"], forms["word"]) == ("red", 2, None)
    assert forms["shape"] == {"Circle": {"radius": 2.0}}
    assert list(forms)[:3] == ["text", "number", "real"]


def test_offsets_that_xsd_has_no_form_for_keep_their_instant() -> None:
    odd = datetime(1890, 1, 1, tzinfo=timezone(timedelta(hours=1, minutes=5, seconds=21)))
    assert encoded(at=odd).payload.at == odd
    far = datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=20)))
    assert encoded(at=far).payload.at == far


def test_other_lexical_forms_of_xsd_are_read() -> None:
    document = (
        b"<Any1><number> +007 </number><real>.5</real><flag>1</flag><exact> 1. </exact><day> 2026-01-31 </day></Any1>"
    )
    assert CODEC.from_xml(document) == Any1(number=7, real=0.5, flag=True, exact=Decimal(1), day=date(2026, 1, 31))


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize("values", [{"text": Text("a")}, {"text": Color.RED}, {"number": Level.HIGH}, {"real": 3}])
def test_subclasses_and_whole_numbers_become_what_is_declared(values: dict[str, Any]) -> None:
    ((name, value),) = values.items()
    fresh = getattr(encoded(**values).payload, name)
    assert fresh == value
    assert type(fresh) in (str, int, float)
    assert type(fresh) is not bool


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"text": 5}, "/text", "expected text, came int 5"),
    ({"text": None}, "/text", "expected text, came nothing"),
    ({"text": "a\x00"}, "/text", r"U\+0000 at 1"),
    ({"text": "\ud800"}, "/text", r"U\+D800"),
    ({"text": "\uffff"}, "/text", r"U\+FFFF"),
    ({"number": 2**63}, "/number", "declare the field Decimal"),
    ({"number": -(2**63) - 1}, "/number", "declare the field Decimal"),
    ({"number": 10**5000}, "/number", "bits"),
    ({"number": True}, "/number", "expected whole number, came bool True"),
    ({"number": 1.0}, "/number", "expected whole number, came float"),
    ({"real": math.nan}, "/real", "finite"),
    ({"real": math.inf}, "/real", "finite"),
    ({"real": 10**400}, "/real", "finite"),
    ({"real": True}, "/real", "expected number"),
    ({"flag": 1}, "/flag", "expected true or false"),
    ({"exact": Decimal("NaN")}, "/exact", "finite"),
    ({"exact": Decimal("1E+9999999")}, "/exact", "exponent"),
    ({"exact": 1}, "/exact", "expected decimal"),
    ({"raw": "x"}, "/raw", "expected base64"),
    ({"day": datetime(2026, 1, 1, tzinfo=UTC)}, "/day", "expected date"),
    ({"at": datetime(2026, 1, 1)}, "/at", "offset"),  # noqa: DTZ001 - the point
    ({"at": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=20)))}, "/at", "years 1 and 9999"),
    ({"color": "red"}, "/color", "expected Color"),
    ({"word": "c"}, "/word", "expected one of 'a', 'b'"),
    ({"digit": True}, "/digit", "expected int"),
    ({"names": ("a",)}, "/names", "expected a list"),
    ({"names": ["a", 1]}, "/names/1", "expected text"),
    ({"table": {"a/b~c": "x"}}, "/table/a~1b~0c", "whole number"),
    ({"table": {1: 1}}, "/table/1", "expected text"),
    ({"table": {"\x01": 1}}, "/table/\x01", r"U\+0001"),
    ({"tables": {"a": {"b": [None]}}}, "/tables/a/b/0", "expected text"),
    ({"shape": "circle"}, "/shape", "expected Circle or Square"),
    ({"shapes": [Circle("x")]}, "/shapes/0/Circle/radius", "expected number"),  # type: ignore[arg-type]  # the point
]


@pytest.mark.parametrize(("values", "pointer", "words"), WRONG)
def test_a_wrong_value_is_named_with_its_place(values: dict[str, Any], pointer: str, words: str) -> None:
    (fault,) = refused(**values)
    assert fault.pointer == pointer
    with pytest.raises(InvalidPayload, match=words) as error:
        CODEC.encode("a", "b", "t", Any1(**values))
    assert fault.message in error.value.message


def test_all_faults_are_listed_but_never_more_than_twenty() -> None:
    assert [fault.pointer for fault in refused(text=1, number="x", real=None)] == ["/text", "/number", "/real"]
    with pytest.raises(InvalidPayload) as error:
        CODEC.from_json("Any1", {f"unknown{number}": 1 for number in range(50)})
    assert len(error.value.details) == 20


@pytest.mark.parametrize("values", [{"names": [1] * 50}, {"table": {str(number): "x" for number in range(50)}}])
def test_a_list_or_table_ends_at_its_first_wrong_element(values: dict[str, Any]) -> None:
    assert len(refused(**values)) == 1


@dataclass
class Node:
    children: list[Node]


def test_a_payload_that_holds_itself_is_refused() -> None:
    node = Node([])
    node.children.append(node)
    with pytest.raises(InvalidPayload, match="does the payload hold itself"):
        Codec.of([Node]).encode("a", "b", "t", node)


def test_a_faulty_payload_whose_parts_are_shared_without_end_is_refused() -> None:
    node: Any = Node([5])  # type: ignore[list-item]  # the point
    for _ in range(60):
        node = Node([node] * 4)
    with pytest.raises(InvalidPayload, match="does the payload hold itself"):
        Codec.of([Node]).encode("a", "b", "t", node)


def test_a_payload_without_one_of_its_attributes_is_refused() -> None:
    node = Node([])
    del node.children
    with pytest.raises(InvalidPayload, match="at /children: expected a value, came none"):
        Codec.of([Node]).encode("a", "b", "t", node)


@dataclass
class Narrow:
    age: Annotated[int, Interval(ge=0, lt=150)]
    tags: Annotated[list[Annotated[str, Len(1, 3)]], MinLen(1)]
    table: dict[Annotated[str, MinLen(2)], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.age == 13:
            raise ValueError("not thirteen")


@dataclass
class Sub(Circle):
    extra: int = 0


@dataclass
class Holder:
    circle: Circle


@pytest.mark.parametrize(
    ("payload", "pointers"),
    [
        (Narrow(200, ["a"]), ["/age"]),
        (Narrow(-1, []), ["/age", "/tags"]),
        (Narrow(1, ["", "abcd"]), ["/tags/0"]),
        (Narrow(1, ["a"], {"k": 1}), ["/table/k"]),
        (Holder(Sub(1.0)), ["/circle"]),
    ],
)
def test_constraints_and_exact_classes_hold_for_what_a_handler_returns(payload: Any, pointers: list[str]) -> None:
    with pytest.raises(InvalidPayload) as error:
        Codec.of([type(payload)]).encode("a", "b", "t", payload)
    assert [fault.pointer for fault in error.value.details] == pointers


RAISED: list[BaseException] = []


@dataclass
class Raiser:
    text: str

    def __post_init__(self) -> None:
        if RAISED:
            raise RAISED[0]


class Mute(Exception):
    def __str__(self) -> str:
        raise SystemExit


@pytest.mark.parametrize(
    "error",
    [
        SystemExit(1),
        KeyboardInterrupt(),
        asyncio.CancelledError(),
        StopIteration(),
        MemoryError(),
        GeneratorExit(),
        Mute(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_class_raises_refuses_the_payload(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    codec, payload = Codec.of([Raiser]), Raiser("x")
    envelope = codec.encode("a", "b", "t", payload).xml
    document = b"<Raiser><text>x</text></Raiser>"
    monkeypatch.setattr(f"{__name__}.RAISED", [error])
    for read in (
        lambda: codec.from_json("Raiser", {"text": "x"}),
        lambda: codec.decode(envelope),
        lambda: codec.parse_any(document),
        lambda: codec.encode("a", "b", "t", payload),
    ):
        with pytest.raises(InvalidPayload):
            read()


def test_what_a_class_refuses_in_its_post_init_is_an_invalid_payload() -> None:
    codec = Codec.of([Narrow])
    with pytest.raises(InvalidPayload, match="not thirteen"):
        codec.from_json("Narrow", {"age": 13, "tags": ["a"]})
    with pytest.raises(InvalidPayload, match="not thirteen"):
        codec.from_xml(b"<Narrow><age>13</age><tags><item>a</item></tags></Narrow>")


def test_a_key_that_stands_twice_is_refused() -> None:
    with pytest.raises(InvalidPayload, match="twice"):
        CODEC.from_xml(b"<Any1><table><item key='a'>1</item><item key='a'>2</item></table></Any1>")


# ── JSON, read strictly ──────────────────────────────────────────────────────────────────────────────────────────────

JSON_TAKEN: list[tuple[str, Any, Any]] = [
    ("number", -(2**63), -(2**63)),
    ("real", 3, 3.0),
    ("exact", "-.50", Decimal("-0.50")),
    ("exact", "+1.", Decimal(1)),
    ("raw", "AAE=", b"\x00\x01"),
    ("day", "2024-02-29", date(2024, 2, 29)),
    ("at", "2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
    ("at", "2026-01-31T14:00:00.25+02:00", datetime(2026, 1, 31, 12, 0, 0, 250_000, tzinfo=UTC)),
    ("color", "red", Color.RED),
    ("digit", 2, 2),
    ("empty", {}, Empty()),
    ("empty", None, None),
]
JSON_REFUSED: list[tuple[str, Any, str]] = [
    ("text", 1, "expected text"),
    ("text", ["a"], "came a list"),
    ("number", 2**63, "declare the field Decimal"),
    ("number", 1e30, "declare the field Decimal"),
    ("number", 1.0, "expected whole number"),
    ("number", True, "expected whole number"),
    ("number", None, "nothing"),
    ("real", True, "expected number"),
    ("real", float("nan"), "finite"),
    ("real", 10**400, "finite"),
    ("flag", 1, "true or false"),
    ("exact", 1, "decimal number as text"),
    ("exact", "1e5", "no exponent"),
    ("exact", "1\n", "decimal number"),
    ("exact", "\u0661", "decimal number"),
    ("raw", 1, "base64"),
    ("raw", "A", "base64"),
    ("raw", "AAF=", "canonical"),
    ("raw", "ä", "base64"),
    ("day", "2026-02-30", "calendar"),
    ("day", "20260131", "date"),
    ("day", "2026-01-31T00:00:00Z", "date"),
    ("at", "2026-01-31T12:00:00", "offset"),
    ("at", "2026-01-31T24:00:00Z", "offset"),
    ("at", "2026-01-31T12:00:00+24:00", "calendar"),
    ("at", "2026-02-30T12:00:00Z", "calendar"),
    ("color", "RED", "one of 'red', "),
    ("digit", "1", "one of 1, 2"),
    ("digit", 3, "one of 1, 2"),
    ("few", {"a": 1}, "expected a list, came an object with 'a'"),
    ("few", [1, 2, 3], "at most 2 items"),
    ("table", [], "expected an object, came a list"),
    ("single", {"a": 1, "b": 2}, "at most 1 items"),
    ("open_", "1", "less than 1"),
    ("open_", "-1.0", "more than -1"),
    ("empty", {"a": 1}, "known are none"),
    ("json", float("nan"), "finite"),
    ("json", {"a": [0, float("-inf")]}, "finite"),
    ("json", {"a": 2**64}, "64 bits"),
    ("json", ["\ud800"], "half of a surrogate pair"),
    ("json", {"\udfff": 1}, "half of a surrogate pair"),
    ("json", {1: 2}, "as the key of a JSON object"),
    ("json", [{"a": (1, 2)}], "expected JSON, came a tuple"),
    ("json", [Decimal(1)], "expected JSON, came a Decimal"),
    ("json", [0] * 40_000, "at most 40,000 values"),
    ("meta", [], "expected JSON object, came a list"),
    ("meta", None, "expected JSON object, came nothing"),
    ("meta", "lang", "expected JSON object, came str"),
    ("meta", '{"a":1,"a":2}', "stands here twice"),
    ("meta", {"a": float("inf")}, "finite"),
    ("jsons", {}, "expected a list"),
]


@pytest.mark.parametrize(("name", "value", "wanted"), JSON_TAKEN)
def test_a_form_of_the_spec_is_taken(name: str, value: Any, wanted: Any) -> None:
    taken = getattr(CODEC.from_json("Any1", {name: value}), name)
    assert taken == wanted
    assert type(taken) is type(wanted)


@pytest.mark.parametrize(("name", "value", "words"), JSON_REFUSED)
def test_another_form_is_refused_with_words_that_help(name: str, value: Any, words: str) -> None:
    with pytest.raises(InvalidPayload) as error:
        CODEC.from_json("Any1", {name: value})
    (fault,) = error.value.details
    assert words in fault.message
    assert fault.pointer.startswith(f"/{name}")


def nested(levels: int) -> Any:
    return [nested(levels - 1)] if levels else 1


def test_json_is_carried_to_64_levels_and_no_further() -> None:
    assert encoded(json=nested(64)).payload.json == nested(64)
    for refuse in (lambda: encoded(json=nested(65)), lambda: CODEC.from_json("Any1", {"json": nested(65)})):
        with pytest.raises(InvalidPayload, match="at most 64 levels"):
            refuse()


def test_json_that_holds_itself_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["a"] = [loop, loop]
    with pytest.raises(InvalidPayload, match="at /json"):
        encoded(json=loop)


def test_what_is_wrong_within_json_is_reported_at_its_place() -> None:
    assert [fault.pointer for fault in refused(json={"a~/": [0, {"b": math.nan}]})] == ["/json/a~0~1/1/b"]
    with pytest.raises(InvalidPayload) as error:
        CODEC.from_xml(b'<Any1><json>{"a": [{"b": 1, "b": 2}]}</json></Any1>')
    assert [(fault.pointer, fault.message) for fault in error.value.details] == [
        ("/json/a/0/b", "this key stands here twice")
    ]


@pytest.mark.parametrize(
    "text", ["", " ", "lang", "{'a':1}", "[NaN]", "1e999", "18446744073709551616", '"\\ud800"', "[1,]"]
)
def test_text_that_is_no_json_is_refused_in_a_document(text: str) -> None:
    with pytest.raises(InvalidPayload, match="/json"):
        CODEC.from_xml(f"<Any1><json>{text}</json></Any1>".encode())


def test_json_has_one_text_whatever_the_order_of_its_keys() -> None:
    one, other = encoded(meta={"b": 1, "a": {"d": 1, "c": 2}}), encoded(meta={"a": {"c": 2, "d": 1}, "b": 1})
    assert one.xml == other.xml
    assert b'<meta>{"a":{"c":2,"d":1},"b":1}</meta>' in one.xml
    assert b'"meta":{"a":{"c":2,"d":1},"b":1}' in one.json


def test_an_object_may_come_as_the_text_of_its_json() -> None:
    for value in ({"a": [1]}, '{"a": [1]}', '\n{"a":[1]}'):
        assert CODEC.from_json("Any1", {"meta": value}).meta == {"a": [1]}
    assert CODEC.from_json("Any1", {"json": '{"a": 1}'}).json == '{"a": 1}'


def test_a_payload_and_its_fresh_copy_share_no_json() -> None:
    given = {"a": [1]}
    fresh = encoded(meta=given).payload.meta
    given["a"].append(2)
    assert fresh == {"a": [1]}


def test_json_takes_no_constraints() -> None:
    with pytest.raises(UnsupportedPayload, match="fits str, bytes, list and dict only"):
        Codec.of([make_dataclass("Bounded", [("json", Annotated[Json, MinLen(1)])])])


def test_json_of_a_payload_that_the_codec_did_not_make_may_be_refused() -> None:
    with pytest.raises(InvalidPayload, match="/color"):
        CODEC.json(Any1(color="red"))  # type: ignore[arg-type]  # the point


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
