"""Plain classes: what their pattern takes the XSD takes too, and reads alike; what it does not take costs nothing."""

from __future__ import annotations

from dataclasses import dataclass, field, make_dataclass
from random import Random
from typing import Annotated, Any

import pytest
from annotated_types import MaxLen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from organism.codec import Codec
from organism.codec import validate as codec_validate
from organism.codec import xml as codec_xml
from organism.codec.envelope import Around
from organism.codec.limits import Terms
from organism.codec.plain import Plain
from organism.codec.schema import PayloadSchema
from organism.errors import InvalidPayload

NAMES = ("greeter", "calculator.add", "call-1")
often = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


@dataclass
class Note:
    text: str
    times: int
    urgent: bool
    by: str = "nobody"
    copies: int | None = None


@dataclass
class Words:
    first: str
    second: str


@dataclass
class Empty:
    pass


PLAIN = (Note, Words, Empty)
VALUES = {
    Note: st.builds(
        Note,
        text=st.text(),
        times=st.integers(-(2**63), 2**63 - 1),
        urgent=st.booleans(),
        by=st.text(),
        copies=st.none() | st.integers(-9, 9),
    ),
    Words: st.builds(Words, first=st.text(), second=st.text()),
    Empty: st.builds(Empty),
}
CODEC = Codec.of(PLAIN)
WITHIN = Terms()


def pattern_of(cls: type) -> Plain:
    return Plain(PayloadSchema.of(cls).shapes.root, Around(cls.__name__))


def read(cls: type, document: str) -> Any:
    """What the pattern makes of the document; None if it does not take it."""
    pattern = pattern_of(cls)
    found = pattern.find(document, len(document.encode("utf-8", "surrogatepass")), WITHIN)
    return None if found is None else pattern.read(found)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The documents that libxml2 gets to see."""
    seen: list[bytes] = []
    parse = codec_xml.parse

    def noted(document: bytes, *terms: Any) -> Any:
        seen.append(document)
        return parse(document, *terms)

    monkeypatch.setattr(codec_validate, "parse", noted)
    return seen


@given(payload=st.one_of(*VALUES.values()))
@often
def test_what_is_sealed_by_a_pattern_is_what_libxml2_reads(payload: Any) -> None:
    try:
        sealed = CODEC.seal(*NAMES, payload)
    except InvalidPayload:
        return  # libxml2 refuses it: what is in the text XML cannot carry
    assert CODEC.decode(sealed.xml) == (*NAMES, sealed.payload)
    assert sealed.payload == payload
    assert sealed.payload is not payload


PIECES = [
    *("<", ">", "&", "&amp;", "&#xD;", "\r", "\n", "\x00", "\x0b", "\ufffe", "\ud800", "é", "]]>", "-", "+", "0", "00"),
    *("<by>", "</by>", "<by></by>", "<copies>1</copies>", "<text>", "</text>", "<times>1</times>", "true", "1", " "),
    *('<item xmlns="">', "<!-- -->", "<?a?>", "<!DOCTYPE a>", "<![CDATA[a]]>", ' a="1"', "x" * 300, "."),
]


def changed(document: str, chance: Random) -> str:
    """The document with some places cut out or something put in."""
    for _ in range(chance.randint(1, 3)):
        begin = chance.randrange(len(document))
        end = begin + chance.choice((0, 0, 1, chance.randint(0, 30)))
        document = document[:begin] + chance.choice(("", *PIECES)) + document[end:]
    return document


@given(payload=st.one_of(*VALUES.values()), seed=st.integers(0, 2**32))
@often
def test_no_text_near_a_document_is_taken_that_the_xsd_refuses(payload: Any, seed: int) -> None:
    chance = Random(seed)
    document = CODEC.encode(*NAMES, _carried(payload)).decode()
    for _ in range(30):
        text = changed(document, chance)
        taken = read(type(payload), text)
        if taken is not None:
            assert CODEC.decode(text.encode()).payload == taken


def _carried(payload: Any) -> Any:
    """The payload with printable text alone."""
    texts = {name: value if not isinstance(value, str) else ascii(value) for name, value in vars(payload).items()}
    return type(payload)(**texts)


@pytest.mark.parametrize(
    ("payload", "is_for_libxml2"),
    [
        (Note("a", 1, urgent=True), False),
        (Note("a\n\tä 😀 \x7f\u2028", -(10**17), urgent=False, by="", copies=0), False),
        (Words("", " "), False),
        (Empty(), False),
        (Note("a & b", 1, urgent=True), True),
        (Note("a\r", 1, urgent=True), True),
        (Note("a", 2**63 - 1, urgent=True), True),
    ],
)
def test_libxml2_gets_what_a_pattern_does_not_take(payload: Any, parsed: list[bytes], is_for_libxml2: bool) -> None:  # noqa: FBT001 - a parameter
    sealed = CODEC.seal(*NAMES, payload)
    assert parsed == [sealed.xml] * is_for_libxml2
    assert sealed.payload == payload


@dataclass
class Short:
    text: Annotated[str, MaxLen(2)]


@dataclass
class Inside:
    note: Words


@dataclass
class Many:
    texts: list[str] = field(default_factory=list)


@dataclass
class Nil:
    text: str | None = "something"


@pytest.mark.parametrize(
    "payload",
    [Short("ab"), Inside(Words("a", "b")), Many(["a"]), Nil(None), Nil("a")],
    ids=["constrained", "nested", "list", "nil", "perhaps nil"],
)
def test_a_class_that_is_not_plain_is_for_libxml2(payload: Any, parsed: list[bytes]) -> None:
    codec = Codec.of([type(payload)])
    sealed = codec.seal(*NAMES, payload)
    assert parsed == [sealed.xml]
    assert sealed.payload == payload


@pytest.mark.parametrize(
    "names",
    [
        ("1", "shouter", "call-1"),
        ("greeter", "a" * 129, "call-1"),
        ("greeter", "sh outer", "call-1"),
        ("greeter", "shouter", ""),
        ("greeter", "shouter", "c" * 257),
    ],
)
def test_the_envelope_is_looked_at_too(names: tuple[str, str, str]) -> None:
    with pytest.raises(InvalidPayload):
        CODEC.seal(*names, Words("a", "b"))


def test_the_longest_names_are_taken(parsed: list[bytes]) -> None:
    CODEC.seal("a" * 128, "b" * 128, "c" * 256, Words("a", "b"))
    assert parsed == []


def test_limits_hold_for_plain_classes(parsed: list[bytes]) -> None:
    wide = make_dataclass("Wide", [(f"text{number}", str) for number in range(40)])
    codec = Codec.of([wide])
    payload = wide(*["a"] * 40)
    sealed = codec.seal(*NAMES, payload, Terms(elements=46, payload_bytes=2000))
    assert parsed == []
    with pytest.raises(InvalidPayload, match="too many elements"):
        codec.seal(*NAMES, payload, Terms(elements=45))
    with pytest.raises(InvalidPayload, match="too large"):
        codec.seal(*NAMES, payload, Terms(payload_bytes=len(sealed.xml) // 2))


@dataclass
class Choosy:
    text: str

    def __post_init__(self) -> None:
        if self.text == "no":
            raise ValueError("not this one")


def test_a_class_may_still_refuse_its_values() -> None:
    codec = Codec.of([Choosy])
    payload = Choosy("yes")
    payload.text = "no"
    with pytest.raises(InvalidPayload, match="the class refuses these values: 'not this one'"):
        codec.seal(*NAMES, payload)


@pytest.mark.parametrize("text", ["", "a", "<&>\r\n\"'", "]]>", "é 😀", "\x7f", "\x00", "\ud800", "\ufffe"])
@pytest.mark.parametrize("more", [{}, {"third": "c"}, {"second": 1}, {"second": None}], ids=str)
def test_a_draft_of_texts_alone_is_what_the_closures_would_make(text: str, more: dict[str, Any]) -> None:
    value = {"first": text, "second": "b", **more}
    expected, faults = CODEC.schema("Words").from_json(value)
    if faults:
        with pytest.raises(InvalidPayload) as error:
            CODEC.draft("Words", value)
        assert list(error.value.details) == faults
    else:
        assert CODEC.draft("Words", value) == expected


def test_a_draft_that_the_class_refuses_names_the_reason() -> None:
    with pytest.raises(InvalidPayload, match="does not fit") as error:
        Codec.of([Choosy]).draft("Choosy", {"text": "no"})
    assert "not this one" in error.value.details[0].message


@pytest.mark.parametrize("text", ["", "<&>\r\n", "é 😀", 5, None])
def test_texts_are_written_as_the_closures_write_them(text: Any) -> None:
    payload = Words("a", text)
    schema = CODEC.schema("Words")
    written = Plain(schema.shapes.root, Around("Words")).write(payload)
    if type(text) is str:
        assert written == schema.write(payload)
    else:
        assert written is None


@dataclass(kw_only=True)
class Named:
    second: str = "2"
    first: str


@dataclass(kw_only=True)
class Called:
    first: str


@pytest.mark.parametrize("payload", [Named(first="1"), Called(first="1")])
def test_fields_that_are_given_by_name_are_read_so(payload: Any, parsed: list[bytes]) -> None:
    codec = Codec.of([type(payload)])
    assert codec.seal(*NAMES, payload).payload == payload
    assert codec.draft(type(payload).__name__, {"first": "1"}) == payload
    assert parsed == []
