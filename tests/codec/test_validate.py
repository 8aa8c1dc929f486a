"""The codec of a set of classes: what is encoded, what is believed, who may say what, and how much."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import orjson
import pytest
from annotated_types import Interval, MaxLen
from pydantic import Field

from organism.codec import Codec, PayloadLimits, PayloadOverLimit, SpoofAttempt, UnknownPayload
from organism.codec.limits import ENVELOPE, XSI
from organism.errors import InvalidPayload


@dataclass
class Greeting:
    """Greet someone."""

    name: str


@dataclass
class GreetingResponse:
    message: str
    original_sender: str


@dataclass
class Line:
    amount: Annotated[int, Interval(ge=1, le=9)]
    note: str | None = None


@dataclass
class Order:
    code: Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
    lines: list[Line]
    by_name: dict[str, Line] = field(default_factory=dict)
    either: Line | Greeting | None = None
    short: Annotated[str, MaxLen(3)] = ""


@dataclass
class Tree:
    children: list[Tree] = field(default_factory=list)


@pytest.fixture(scope="module")
def codec() -> Codec:
    return Codec.of([Greeting, GreetingResponse, Order, Tree])


def envelope(meta: str, body: str = "<Greeting xmlns=''><name>Ada</name></Greeting>") -> bytes:
    return f"<message xmlns='{ENVELOPE}'>{meta}{body}</message>".encode()


# ── encoding ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_greeting_is_encoded_as_the_spec_writes_it(codec: Codec) -> None:
    encoded = codec.encode("greeter", "shouter", "call-1", GreetingResponse("Hello!", "console"))
    assert encoded.xml == (
        b'<message xmlns="urn:organism:envelope:1">'
        b"<meta><from>greeter</from><to>shouter</to><thread>call-1</thread></meta>"
        b'<GreetingResponse xmlns=""><message>Hello!</message><original_sender>console</original_sender>'
        b"</GreetingResponse></message>"
    )
    assert encoded.json == b'{"message":"Hello!","original_sender":"console"}'
    assert encoded.type_name == "GreetingResponse"


def test_the_receiver_never_gets_the_sender_s_object(codec: Codec) -> None:
    order = Order("ABC", [Line(1)])
    fresh = codec.encode("a", "b", "t", order).payload
    order.lines.clear()
    assert fresh == Order("ABC", [Line(1)])


@pytest.mark.parametrize(
    ("from_", "to", "token"), [("9a", "b", "t"), ("a", "", "t"), ("a", "b", ""), ("a\n", "b", "t")]
)
def test_a_name_that_no_listener_has_is_refused(codec: Codec, from_: str, to: str, token: str) -> None:
    with pytest.raises(InvalidPayload):
        codec.encode(from_, to, token, Greeting("Ada"))


def test_a_name_cannot_break_out_of_its_element(codec: Codec) -> None:
    with pytest.raises(InvalidPayload):
        codec.encode("a</from><from>b", "b", "t", Greeting("Ada"))
    assert codec.encode("a", "b", "t</thread>&", Greeting("Ada")).xml.count(b"<thread>") == 1


def test_a_class_that_is_not_registered_is_refused_with_its_place(codec: Codec) -> None:
    with pytest.raises(UnknownPayload, match=r"test_validate\.Line"):
        codec.encode("a", "b", "t", Line(1))
    with pytest.raises(UnknownPayload, match=r"builtins\.dict"):
        codec.encode("a", "b", "t", {})
    with pytest.raises(UnknownPayload):
        codec.json(None)


def test_what_is_decoded_must_be_valid_and_known(codec: Codec) -> None:
    meta = "<meta><from>a</from><to>b</to><thread>t</thread></meta>"
    assert codec.decode(envelope(meta)) == ("a", "b", "t", Greeting("Ada"))
    assert codec.decode(envelope(meta.replace("<to>", "\n  <to>"))).to == "b"
    with pytest.raises(UnknownPayload):
        codec.decode(envelope(meta, "<Other xmlns=''/>"))
    with pytest.raises(UnknownPayload):
        codec.decode(b"<Greeting><name>Ada</name></Greeting>")
    with pytest.raises(InvalidPayload, match="/name"):
        codec.decode(envelope(meta, "<Greeting xmlns=''><name>a</name><name>b</name></Greeting>"))
    with pytest.raises(InvalidPayload):
        codec.decode(envelope("<meta><from>a</from><to>b</to></meta>"))


# ── limits ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_payload_is_counted_in_bytes_of_its_xml_at_every_door(codec: Codec) -> None:
    frame = len("<Greeting><name></name></Greeting>")
    fits, more = "ä" * ((1000 - frame) // 2), "ä" * ((1000 - frame) // 2 + 1)
    limits = PayloadLimits(payload_bytes=1000)
    assert codec.encode("a", "b", "t", Greeting(fits), limits).payload.name == fits
    assert codec.from_json("Greeting", {"name": fits}, limits).name == fits
    assert codec.from_xml(f"<Greeting><name>{fits}</name></Greeting>".encode(), limits).name == fits
    for door in (
        lambda: codec.encode("a", "b", "t", Greeting(more), limits),
        lambda: codec.from_json("Greeting", {"name": more}, limits),
        lambda: codec.from_xml(f"<Greeting><name>{more}</name></Greeting>".encode(), limits),
    ):
        with pytest.raises(PayloadOverLimit, match="too large") as error:
            door()
        assert (error.value.code, error.value.status) == ("payload_too_large", 413)


def test_elements_and_depth_are_limited_for_json_and_for_handlers_too(codec: Codec) -> None:
    deep: dict[str, Any] = {}
    for _ in range(40):
        deep = {"children": [deep]}
    wide: dict[str, Any] = {"children": [{}] * 1500}
    for value, words in ((deep, "nested too deep"), (wide, "too many elements")):
        with pytest.raises(PayloadOverLimit, match=words):
            codec.from_json("Tree", value)
    with pytest.raises(PayloadOverLimit, match="too many elements"):
        codec.encode("a", "b", "t", Tree([Tree() for _ in range(1500)]))
    with pytest.raises(PayloadOverLimit, match="too many elements"):
        codec.encode("a", "b", "t", Tree([Tree(), Tree(), Tree()]), PayloadLimits(elements=10))
    assert len(codec.encode("a", "b", "t", Tree([Tree() for _ in range(40)])).payload.children) == 40
    assert len(codec.from_json("Tree", wide, PayloadLimits(elements=20_000)).children) == 1500


def test_json_that_is_deeper_than_the_interpreter_goes_is_refused(codec: Codec) -> None:
    deep: dict[str, Any] = {}
    for _ in range(20_000):
        deep = {"children": [deep]}
    with pytest.raises(PayloadOverLimit, match="nested too deep"):
        codec.from_json("Tree", deep)
    while deep:
        deep = deep["children"][0]  # taken apart one by one: freeing it at once would go as deep


# ── JSON from outside ────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_fault_of_a_json_value_is_listed_with_its_pointer(codec: Codec) -> None:
    value = {
        "code": "abc",
        "lines": [{"amount": 1.5, "note": 7, "extra/~": 1}, 5],
        "by_name": {"a/b": {"amount": 10}},
        "either": {"Line": {"amount": 1}, "Greeting": {"name": "x"}},
        "short": "abcd",
    }
    with pytest.raises(InvalidPayload) as error:
        codec.from_json("Order", value)
    assert [fault.pointer for fault in error.value.details] == [
        "/code",
        "/lines/0/extra~1~0",
        "/lines/0/amount",
        "/lines/0/note",
        "/by_name/a~1b/amount",
        "/either",
        "/short",
    ]
    assert error.value.param == "/code"


def test_a_union_is_read_by_the_name_of_its_class(codec: Codec) -> None:
    value = {"code": "ABC", "lines": [], "either": {"Greeting": {"name": "Ada"}}}
    assert codec.from_json("Order", value).either == Greeting("Ada")
    with pytest.raises(InvalidPayload, match="/either/Greeting/name"):
        codec.from_json("Order", value | {"either": {"Greeting": {"name": 1}}})


def test_an_unknown_payload_is_named_with_those_that_are_known(codec: Codec) -> None:
    with pytest.raises(UnknownPayload, match="'Greting' here; known are Greeting, GreetingResponse, Order, Tree"):
        codec.from_json("Greting", {})


# ── XML from outside ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_faults_of_a_document_have_json_pointers_too(codec: Codec) -> None:
    document = (
        b"<Order><code>abc</code><lines><item><amount>1</amount></item><item><amount>10</amount></item></lines>"
        b"<by_name><item key='a/b'><amount>x</amount></item></by_name>"
        b"<either><Line><amount>0</amount></Line></either></Order>"
    )
    with pytest.raises(InvalidPayload) as error:
        codec.from_xml(document)
    pointers = ["/code", "/lines/1/amount", "/by_name/a~1b/amount", "/either/Line/amount"]
    assert [fault.pointer for fault in error.value.details] == pointers


def test_all_fields_that_a_document_lacks_are_named_at_any_depth(codec: Codec) -> None:
    with pytest.raises(InvalidPayload) as both:
        codec.from_xml(b"<GreetingResponse/>")
    assert [fault.pointer for fault in both.value.details] == ["/message", "/original_sender"]
    document = (
        b"<Order><lines><item/><item><amount>10</amount></item></lines>"
        b"<by_name><item key='a/b'><note>x</note></item></by_name><either><Greeting/></either></Order>"
    )
    with pytest.raises(InvalidPayload) as error:
        codec.from_xml(document)
    pointers = {fault.pointer for fault in error.value.details}
    assert {"/code", "/lines/0/amount", "/by_name/a~1b/amount", "/either/Greeting/name"} <= pointers
    assert "/lines/1/amount" not in {fault.pointer for fault in error.value.details if "missing" in fault.message}


def test_what_is_said_to_be_nothing_lacks_nothing(codec: Codec) -> None:
    lines = "<lines><item xsi:nil='true'/></lines>"
    with pytest.raises(InvalidPayload) as error:
        codec.from_xml(f"<Order xmlns:xsi='{XSI}'><code>abc</code>{lines}</Order>".encode())
    assert "/lines/0/amount" not in {fault.pointer for fault in error.value.details}


META = "<meta><from>console</from><to>greeter</to><thread>thr-1</thread></meta>"


@pytest.mark.parametrize(
    ("meta", "said"),
    [
        ("", ("", "", "")),
        ("<meta/>", ("", "", "")),
        ("<meta><to>greeter</to></meta>", ("", "greeter", "")),
        (META, ("console", "greeter", "thr-1")),
        ("<meta><thread>thr-1</thread><from>console</from></meta>", ("console", "", "thr-1")),
    ],
)
def test_an_envelope_from_outside_says_what_it_claims(codec: Codec, meta: str, said: tuple[str, str, str]) -> None:
    assert codec.parse_any(envelope(meta)) == (*said, Greeting("Ada"))


def test_a_document_may_come_without_an_envelope(codec: Codec) -> None:
    assert codec.parse_any(b"<Greeting><name>Ada</name></Greeting>") == ("", "", "", Greeting("Ada"))


@pytest.mark.parametrize(("tenant", "claimed"), [("<tenant>other</tenant>", "other"), ("<tenant/>", "")])
def test_a_tenant_is_never_for_a_document_to_say(codec: Codec, tenant: str, claimed: str) -> None:
    with pytest.raises(SpoofAttempt) as error:
        codec.parse_any(envelope(f"<meta>{tenant}</meta>"))
    assert (error.value.field, error.value.claimed, error.value.actual) == ("tenant", claimed, "")
    assert isinstance(error.value, InvalidPayload)


@pytest.mark.parametrize(
    "document",
    [
        envelope(META, ""),
        envelope(META, "<Greeting xmlns=''><name>a</name></Greeting>" * 2),
        envelope(META, "<Greeting><name>a</name></Greeting>"),
        envelope(META + META),
        envelope("<meta><from>console</from><from>console</from></meta>"),
        envelope("<meta><name>x</name></meta>"),
        envelope("<meta><from xmlns=''>console</from></meta>"),
        envelope(META).replace(ENVELOPE.encode(), b""),
    ],
)
def test_what_is_no_envelope_is_refused(codec: Codec, document: bytes) -> None:
    with pytest.raises(InvalidPayload) as error:
        codec.parse_any(document)
    assert not isinstance(error.value, SpoofAttempt)


def test_json_is_compact_and_the_same_by_either_way(codec: Codec) -> None:
    order = Order("ABC", [Line(1)], {"a": Line(2, "x")}, Line(3))
    text = codec.json(order)
    assert text == codec.encode("a", "b", "t", order).json == orjson.dumps(orjson.loads(text))
    assert codec.json(Greeting("ä")) == '{"name":"ä"}'.encode()
