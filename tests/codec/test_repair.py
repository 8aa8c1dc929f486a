"""The text of a model: what is repaired and noted, what is refused, and that nothing within a document is lost."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from organism.codec import Codec, Repaired, RepairedPayload, repair_json, repair_text
from organism.errors import InvalidPayload


@dataclass
class Reply:
    text: str
    tags: list[str] = field(default_factory=list)


@dataclass
class Ping:
    pass


CODEC = Codec.of([Reply, Ping])


def from_text(text: str) -> RepairedPayload:
    """What a model's text says: repaired, then read strictly."""
    repaired = repair_text(text, {"Reply", "Ping"})
    return RepairedPayload(CODEC.from_xml(repaired.document), repaired.notes)


# (what the model wrote, the payload, what the notes say)
REPAIRED: list[tuple[str, object, tuple[str, ...]]] = [
    ("<Reply><text>hi</text></Reply>", Reply("hi"), ()),
    ("  \n<Reply><text>hi</text></Reply>\n ", Reply("hi"), ()),
    ("<Ping/>", Ping(), ()),
    ("<Ping></Ping>", Ping(), ()),
    ("<?xml version='1.0'?><Reply><text>hi</text></Reply>", Reply("hi"), ("cut",)),
    ("```xml\n<Reply><text>hi</text></Reply>\n```", Reply("hi"), ("fence",)),
    ("```\n<Reply><text>hi</text></Reply>\n```", Reply("hi"), ("fence",)),
    ("```xml\n<Reply><text>hi</text></Reply>", Reply("hi"), ("fence",)),
    ("Sure, here it is:\n<Reply><text>hi</text></Reply>", Reply("hi"), ("cut",)),
    ("<Reply><text>hi</text></Reply>\nHope this helps!", Reply("hi"), ("cut",)),
    ("Here:\n```xml\n<Reply><text>hi</text></Reply>\n```\nBye & thanks <3", Reply("hi"), ("fence", "cut")),
    ("<thinking>hm</thinking><Reply><text>hi</text></Reply>", Reply("hi"), ("cut",)),
    ("I use the <Reply> format:\n<Reply><text>hi</text></Reply>", Reply("hi"), ("cut",)),
    ("<Reply><text>hi</text></Reply> That was a <Reply> for you.", Reply("hi"), ("cut",)),
    ("<Reply><text>AT&T</text></Reply>", Reply("AT&T"), ("bare &",)),
    ("<Reply><text>a && b</text></Reply>", Reply("a && b"), ("escaped 2 bare &",)),
    ("<Reply><text>a &amp; b & c</text></Reply>", Reply("a & b & c"), ("escaped 1 bare &",)),
    ("<Reply><text>&lt;&gt;&quot;&apos;&#65;&#x42;</text></Reply>", Reply("<>\"'AB"), ()),
    ("<Reply><text>a&nbsp;b</text></Reply>", Reply("a&nbsp;b"), ("bare &",)),
    ("<Reply><text>x?a=1&b=2</text></Reply>", Reply("x?a=1&b=2"), ("bare &",)),
    ("<Reply><text>&</text></Reply>", Reply("&"), ("bare &",)),
    ("<Reply><text>1 < 2</text></Reply>", Reply("1 < 2"), ("bare <",)),
    ("<Reply><text>I <3 you</text></Reply>", Reply("I <3 you"), ("bare <",)),
    ("<Reply><text>a<b and c>d</text></Reply>", Reply("a<b and c>d"), ("bare <",)),
    ("<Reply><text>a ]]> b</text></Reply>", Reply("a ]]> b"), ()),
    ("<Reply><text>hi</Reply>", Reply("hi"), ("closed </text> before </Reply>",)),
    ("<Reply><text>hi</text>", Reply("hi"), ("closed </Reply> at the end",)),
    ("<Reply><text>hi", Reply("hi"), ("closed </text>, </Reply> at the end",)),
    ("<Reply><text>hi</te", Reply("hi"), ("cut off", "closed")),
    ("<Reply><text>hi</text><tags><item>a</item><item>b", Reply("hi", ["a", "b"]), ("closed",)),
    ("<Reply><text>hi</text><tags><item>a<item>b</tags></Reply>", None, ()),
    ("<Reply><text>hi</text><tags><item>a</item></Reply>", Reply("hi", ["a"]), ("closed </tags>",)),
    ("<Reply><text><![CDATA[a & b < c]]></text></Reply>", Reply("a & b < c"), ()),
    ("<Reply><text><![CDATA[a & b", Reply("<![CDATA[a & b"), ("bare <", "bare &", "closed")),
    ("<Reply><!-- & --><text>hi</text></Reply>", Reply("hi"), ()),
    ("<Reply><text>bell\x07</text></Reply>", Reply("bell\ufffd"), ("U+0007",)),
    ("<Reply><text>esc&#27;[0m</text></Reply>", Reply("esc\ufffd[0m"), ("&#27;",)),
    ("<Reply><text>&#x110000;&#0;</text></Reply>", Reply("\ufffd\ufffd"), ("&#x110000;", "&#0;")),
    ("<Reply><text>half \ud83d</text></Reply>", Reply("half \ufffd"), ("U+D83D",)),
    ("<Reply><text>\ufffe</text></Reply>", Reply("\ufffd"), ("U+FFFE",)),
    ("<Reply><text>a\r\nb</text></Reply>", Reply("a\nb"), ()),
    ("<Reply ><text\n>hi</text ></Reply>", Reply("hi"), ()),
    ("<Reply><text>```</text></Reply>", Reply("```"), ()),
    ("<Reply><text><Reply> is my name</text></Reply>", None, ()),
]
REFUSED = {
    "": "No document was found",
    "I would rather not.": "No document was found",
    "<Other><text>hi</text></Other>": "No document was found",
    "<reply><text>hi</text></reply>": "No document was found",
    "<Reply><text>a</text></Reply><Reply><text>b</text></Reply>": "more than one document",
    "<Reply><text>a</text></Reply> and <Ping/>": "more than one document",
    "<Reply>" + "<text>" * 40: "nested too deep",
    "<Reply></text></Reply>": "closes what was never opened",
    "<!DOCTYPE Reply [<!ENTITY a 'b'>]><Reply><text>&a;</text></Reply>": "DOCTYPE",
    "<Reply><test>hi</test></Reply>": "'test' is not known",
    "<Reply><text>use <b>bold</b></text></Reply>": "'b' is not known",
    "<Reply><tags/><text>hi</text></Reply>": "does not fit",
    "<Reply><text a='1' a='2'>hi</text></Reply>": "not well-formed",
    '{"text": "hi"}': "No document was found",
}


@pytest.mark.parametrize(("text", "payload", "notes"), REPAIRED)
def test_what_can_be_repaired_is_and_is_noted(text: str, payload: object, notes: tuple[str, ...]) -> None:
    if payload is None:
        with pytest.raises(InvalidPayload):
            from_text(text)
        return
    repaired = from_text(text)
    assert repaired.payload == payload
    assert bool(repaired.notes) == bool(notes)
    for words in notes:
        assert any(words in note for note in repaired.notes), repaired.notes


@pytest.mark.parametrize(("text", "words"), REFUSED.items())
def test_what_cannot_be_repaired_is_refused(text: str, words: str) -> None:
    with pytest.raises(InvalidPayload, match=words):
        from_text(text)


@settings(derandomize=True)
@given(st.text(max_size=30), st.lists(st.text(max_size=5), max_size=3))
def test_a_strict_document_is_left_as_it_is(text: str, tags: list[str]) -> None:
    document = CODEC.schema("Reply").form.write(Reply(repair_json(text)[0], [repair_json(tag)[0] for tag in tags]))
    whole = CODEC.schema("Reply").document(document)
    assert repair_text(whole, {"Reply"}) == Repaired(whole.encode(), ())


@settings(derandomize=True)
@given(st.text("ab &<>;#x12'\"=/!-[]\r\n", max_size=30))
def test_a_text_with_bare_marks_is_never_lost_or_makes_a_crash(text: str) -> None:
    try:
        repaired = from_text(f"<Reply><text>{text}</text></Reply>").payload
    except InvalidPayload:
        return
    assert isinstance(repaired, Reply)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "piece",
    ["<", "<![CDATA[", "<!--", "<?", "<a", "<a ", "&", "</a", "<a b='", "\x00", "<a>", "<a></a>", "<Reply> x", "&#1;"],
)
def test_repairing_is_linear(piece: str) -> None:
    began = time.thread_time()
    with pytest.raises(InvalidPayload):
        from_text("<Reply><text>" + piece * (200_000 // len(piece)) + "</nothing></Reply>")
    assert time.thread_time() - began < 3


def test_notes_are_few_and_short() -> None:
    repaired = from_text("<Reply><text>hi</text><tags>" + "<item>&</item>" * 100 + "</tags></Reply>")
    assert len(repaired.notes) == 20
    assert all(len(note) < 200 for note in repaired.notes)


def test_json_of_a_model_is_carried_with_notes() -> None:
    repaired, notes = repair_json({"a": ["x\x00", "y"], "k\x1b": 1, "n": None})
    assert repaired == {"a": ["x\ufffd", "y"], "k\ufffd": 1, "n": None}
    assert [note.split(":")[0] for note in notes] == ["/a/0", "/"]
    with pytest.raises(InvalidPayload, match="become one"):
        repair_json({"a\x00": 1, "a\x01": 2})
