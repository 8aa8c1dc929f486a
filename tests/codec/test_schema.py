"""What a payload class may be, what is derived from it, and how each fault of one is named."""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from datetime import date
from decimal import Decimal
from enum import Enum, Flag, StrEnum
from typing import Annotated, Any, ClassVar, Generic, Literal, NewType, TypeVar

import annotated_types
import orjson
import pytest
from pydantic import Field

from organism.codec import Codec, PayloadSchema, UnsupportedPayload

Item = TypeVar("Item")
UserId = NewType("UserId", str)


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


class Rights(Flag):
    READ = 1
    WRITE = 2


class Mixed(Enum):
    ONE = 1
    TWO = "two"


@dataclass
class Address:
    """Where someone lives."""

    street: str
    zip_code: Annotated[str, Field(pattern=r"^\d{5}$", description="five digits")]


@dataclass
class Card:
    number: str


@dataclass
class Order:
    """An order of things.

    As a customer sent it.
    """

    KIND: ClassVar[str] = "order"
    user: UserId
    address: Address
    paid_by: Card | Address
    amounts: dict[str, Decimal]
    lines: Annotated[list[str], annotated_types.MinLen(1)]
    color: Color = Color.RED
    due: date | None = None
    note: str = ""


@dataclass
class Node:
    name: str
    children: list[Node] = field(default_factory=list)
    parent: Node | None = None


@dataclass
class Plain:
    name: str


def faults(cls: Any) -> dict[str, str]:
    with pytest.raises(UnsupportedPayload) as refused:
        PayloadSchema.of(cls)
    return {fault.pointer: fault.message for fault in refused.value.details}


def test_the_xsd_of_a_class_is_written_out_in_the_order_of_its_fields() -> None:
    schema = PayloadSchema.of(Order)
    order = [schema.xsd.index(f'name="{name}"') for name in ("user", "address", "paid_by", "amounts", "lines", "color")]
    assert order == sorted(order)
    assert "<xs:documentation>An order of things.\n\nAs a customer sent it.</xs:documentation>" in schema.xsd
    assert '<xs:pattern value="[0-9]{5}"/>' in schema.xsd


def test_the_example_is_a_valid_document_and_gives_a_payload() -> None:
    codec = Codec.of([Order, Node, Address])
    for schema in codec.schemas:
        assert isinstance(codec.from_xml(schema.example_xml), schema.cls)


def test_the_usage_text_tells_what_a_model_must_know() -> None:
    usage = PayloadSchema.of(Order).usage
    for words in (
        "An order of things.",
        "<user>text</user>",
        "- color: one of red, blue; may be left out",
        "five digits",
    ):
        assert words in usage
    assert "Fields of Address (Where someone lives.)" in usage


def test_the_signature_that_dataclass_writes_is_not_taken_for_a_docstring() -> None:
    schema = PayloadSchema.of(Plain)
    assert "documentation" not in schema.xsd
    assert "description" not in schema.json_schema


def test_a_description_that_is_no_text_is_left_out() -> None:
    @dataclass
    class Described:
        __doc__ = 42  # type: ignore[assignment] # a class may say anything here

        text: Annotated[str, Field(description=7)] = ""

    schema = PayloadSchema.of(Described)
    assert "documentation" not in schema.xsd
    assert schema.example() == {"text": "text"}


def test_the_json_schema_names_nested_classes_and_tags_unions() -> None:
    schema = PayloadSchema.of(Order).json_schema
    assert schema["required"] == ["user", "address", "paid_by", "amounts", "lines"]
    assert schema["properties"]["address"] == {"$ref": "#/$defs/Address"}
    assert [list(one["properties"]) for one in schema["properties"]["paid_by"]["oneOf"]] == [["Card"], ["Address"]]
    assert schema["properties"]["color"] == {"enum": ["red", "blue"]}
    assert schema["additionalProperties"] is False
    assert PayloadSchema.of(Node).json_schema["properties"]["children"]["items"] == {"$ref": "#"}
    assert orjson.loads(orjson.dumps(schema)) == schema


def test_a_recursive_class_is_written_and_read() -> None:
    codec = Codec.of([Node])
    tree = Node("root", [Node("a", [Node("b")]), Node("c", parent=Node("d"))])
    assert codec.encode("a", "b", "t", tree).payload == tree


def test_two_nested_classes_of_one_name_are_kept_apart() -> None:
    def inner(hint: Any) -> Any:
        return dataclass(type("Inner", (), {"__annotations__": {"x": hint}}))

    one, other = inner(int), inner(str)
    outer: Any = dataclass(type("Outer", (), {"__annotations__": {"a": one, "b": other}}))
    codec = Codec.of([outer])
    payload = outer(one(1), other("x"))
    assert codec.encode("a", "b", "t", payload).payload == payload
    assert set(codec.schema("Outer").json_schema["$defs"]) == {"Inner", "Inner-2"}


@dataclass
class Unsupported:
    a: set[int]
    b: tuple[int, ...]
    c: Any
    d: int | str
    e: dict[int, str]
    f: list  # type: ignore[type-arg]  # the point
    g: Rights
    h: Mixed
    i: Literal[1, "a"]
    j: complex
    k: Annotated[int, annotated_types.MinLen(1)]
    l: Annotated[str, annotated_types.Ge(1)]  # noqa: E741 - one letter each
    m: Annotated[int, annotated_types.MultipleOf(2)]
    n: Annotated[str, Field(alias="other")]
    o: Annotated[str, Field(pattern="(?=a)a")]
    p: Annotated[int, annotated_types.Interval(ge=5, le=4)]
    q: Annotated[int, annotated_types.Ge(2**70)]
    r: Annotated[list[int], annotated_types.Len(3, 2)]
    s: Literal[True]
    t: object
    w: str = Field(default="x")
    x: int = field(init=False, default=1)
    y: Annotated[int, Field(default=3)] = 3
    z: Annotated[str, Field(pattern="a"), Field(pattern="b")] = "a"


def test_every_fault_of_a_class_is_listed_by_name() -> None:
    found = faults(Unsupported)
    assert set(found) == {f"Unsupported.{name}" for name in "abcdefghijklmnopqrstwxyz"}
    assert found["Unsupported.a"].startswith("set[int] is not allowed; allowed are str, int,")
    assert "only dataclasses can be distinguished" in found["Unsupported.d"]
    assert "the keys of a dict are str" in found["Unsupported.e"]
    assert "init=False" in found["Unsupported.x"]


def test_defaults_that_do_not_fit_are_faults() -> None:
    @dataclass
    class Wrong:
        a: int = None  # type: ignore[assignment]  # the point
        b: Annotated[str, Field(max_length=2)] = "long"

    found = faults(Wrong)
    assert "`… | None`" in found["Wrong.a"]
    assert "at most 2 characters" in found["Wrong.b"]


def test_a_faulty_nested_class_is_named_as_the_place() -> None:
    @dataclass
    class Deep:
        inner: Unsupported

    assert "Unsupported.a" in faults(Deep)


@pytest.mark.parametrize("not_a_payload", [int, dict, "Greeting", list[int], Color])
def test_what_is_no_dataclass_is_no_payload(not_a_payload: Any) -> None:
    assert "expected a class with @dataclass" in next(iter(faults(not_a_payload).values()))


def test_generic_classes_init_only_fields_unknown_names_and_an_init_of_its_own_are_refused() -> None:
    @dataclass(init=False)
    class Own:
        x: int

    @dataclass
    class Box(Generic[Item]):
        item: Item

    @dataclass
    class Early:
        seed: InitVar[int]

    missing: Any = dataclass(type("Missing", (), {"__annotations__": {"x": "NotThere"}}))
    assert "generic" in faults(Box)["Box"]
    assert "InitVar" in faults(Early)["Early.seed"]
    assert "NotThere" in faults(missing)["Missing"]
    assert "__init__" in faults(Own)["Own"]


@pytest.mark.parametrize(
    "hint",
    [list, dict, [int], 5, "int |", ..., Annotated[int, Field(gt="x")], list["Nope"], type, None],  # type: ignore[name-defined]  # noqa: F821 - the point
)
def test_an_annotation_that_means_nothing_is_a_fault_and_no_crash(hint: Any) -> None:
    strange: Any = dataclass(type("Strange", (), {"__annotations__": {"x": hint}}))
    assert set(faults(strange)) <= {"Strange", "Strange.x"}


def test_a_class_that_must_hold_itself_without_end_is_refused() -> None:
    endless: Any = dataclass(type("Endless", (), {"__annotations__": {"again": "Endless"}}))
    assert "without end" in faults(endless)["Endless"]


def test_an_example_is_found_within_narrow_bounds() -> None:
    @dataclass
    class Narrow:
        a: Annotated[Decimal, annotated_types.Interval(gt=0, lt=1)]
        b: Annotated[float, annotated_types.Interval(gt=1e300, lt=1.1e300)]
        c: Annotated[int, annotated_types.Interval(gt=6, lt=8)]
        d: Annotated[date, annotated_types.Lt(date(1, 1, 2))]
        e: Annotated[bytes, annotated_types.Len(9, 9)]
        f: Annotated[str, annotated_types.Len(2, 2)]
        g: Annotated[str, Field(pattern="^a[0-9]*$", min_length=7)]
        h: Annotated[list[Annotated[int, annotated_types.Ge(5)]] | None, annotated_types.MinLen(2)]
        i: dict[Annotated[str, Field(pattern="k[0-9]*")], bool]

    schema = PayloadSchema.of(Narrow)
    assert Codec.of([Narrow]).from_xml(schema.example_xml).c == 7


def test_constraints_that_leave_no_example_are_refused() -> None:
    @dataclass
    class Impossible:
        code: Annotated[str, Field(pattern="[a-z]{3}", max_length=2)]

    with pytest.raises(UnsupportedPayload, match="no example"):
        PayloadSchema.of(Impossible)


def test_two_classes_of_one_name_must_have_one_schema() -> None:
    same: Any = dataclass(type("Plain", (), {"__annotations__": {"name": str}}))
    other: Any = dataclass(type("Plain", (), {"__annotations__": {"name": int}}))
    codec = Codec.of([Plain, same])
    assert codec.knows(same)
    assert type(codec.encode("a", "b", "t", same("x")).payload) is Plain
    with pytest.raises(UnsupportedPayload, match="Two payload classes are called Plain"):
        codec.with_class(other)


def test_a_codec_gains_a_class_without_changing() -> None:
    codec = Codec.of([Plain])
    more = codec.with_class(Card)
    assert (codec.knows(Card), more.knows(Card), more.knows(Plain)) == (False, True, True)
    assert more.with_class(Card) is more


def test_the_faults_of_all_classes_are_listed_at_once() -> None:
    @dataclass
    class One:
        a: set[int]

    @dataclass
    class Two:
        b: set[int]

    with pytest.raises(UnsupportedPayload) as refused:
        Codec.of([One, Plain, Two])
    assert [fault.pointer for fault in refused.value.details] == ["One.a", "Two.b"]


def test_an_xsd_has_no_import_and_no_include() -> None:
    for xsd in (PayloadSchema.of(Order).xsd, PayloadSchema.of(Node).xsd):
        assert "include" not in xsd
        assert "import" not in xsd
