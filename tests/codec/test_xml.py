"""S10: what is hostile is refused, in bounded time and memory, before anything is believed."""

from __future__ import annotations

import ast
import gc
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from organism.codec import Codec, PayloadLimits, PayloadOverLimit
from organism.codec import xml as codec_xml
from organism.codec.limits import ENVELOPE, MAX_DEPTH, XSI
from organism.errors import InvalidPayload

ROOT = Path(__file__).parents[2]
CORPUS = Path(os.environ.get("ORGANISM_CORPORA", "nowhere")) / "xml-attacks"
QUICK_S = 2.0  # of the processor: what else runs on the machine does not count


@dataclass
class Note:
    text: str = ""
    item: list[str] = field(default_factory=list)


@dataclass
class Tree:
    children: list[Tree] = field(default_factory=list)


@pytest.fixture(scope="module")
def codec() -> Codec:
    return Codec.of([Note, Tree])


def corpus() -> Iterator[Path]:
    return (path for path in sorted(CORPUS.iterdir()) if path.is_file()) if CORPUS.is_dir() else iter(())


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the corpus {CORPUS.name} is not here")
def test_each_document_of_the_corpus_is_refused_by_every_door(codec: Codec) -> None:
    documents = [path.read_bytes() for path in corpus()]
    assert len(documents) >= 13
    for document in documents:
        for door in (codec.from_xml, codec.parse_any, codec.decode):
            began = time.thread_time()
            with pytest.raises(InvalidPayload):
                door(document)
            assert time.thread_time() - began < QUICK_S


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the corpus {CORPUS.name} is not here")
def test_each_doctype_of_the_corpus_is_refused_as_such(codec: Codec) -> None:
    with_doctype = [path.read_bytes() for path in corpus() if b"<!DOCTYPE" in path.read_bytes()]
    assert len(with_doctype) >= 8
    for document in with_doctype:
        with pytest.raises(InvalidPayload, match="DOCTYPE"):
            codec.from_xml(document)


DOCTYPES = [
    "<!DOCTYPE Note><Note/>",
    "<?xml version='1.0'?>\n<!-- x -->\n<!DOCTYPE Note [<!ENTITY a 'b'>]><Note><text>&a;</text></Note>",
    "<!DOCTYPE Note [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><Note><text>&a;</text></Note>",
    "<!DOCTYPE Note SYSTEM 'http://127.0.0.1:9/x.dtd'><Note/>",
    "<!DOCTYPE Note [<!ATTLIST Note key CDATA 'x'>]><Note/>",
    "<!DOCTYPE Note [<!ENTITY % p SYSTEM 'http://127.0.0.1:9/x'> %p;]><Note/>",
]


@pytest.mark.parametrize("document", DOCTYPES)
def test_no_doctype_passes_either_parser(codec: Codec, document: str) -> None:
    with pytest.raises(InvalidPayload, match="DOCTYPE"):
        codec.from_xml(document.encode())
    with pytest.raises(InvalidPayload, match=r"DOCTYPE|well-formed"):
        codec_xml.parse(document.encode(), PayloadLimits())


def test_the_word_doctype_in_a_text_is_a_text(codec: Codec) -> None:
    text = "<!DOCTYPE html>"
    assert codec.encode("a", "b", "t", Note(text)).payload == Note(text)
    assert codec.from_xml(b"<Note><text><![CDATA[<!DOCTYPE html>]]></text></Note>") == Note(text)


def test_a_bomb_of_entities_costs_no_memory_and_no_time(codec: Codec) -> None:
    levels = "".join(f'<!ENTITY e{level} "{f"&e{level - 1};" * 10 if level else "x" * 100}">' for level in range(10))
    bomb = f"<!DOCTYPE Note [{levels}]><Note><text>&e9;</text></Note>".encode()
    began = time.thread_time()
    for door in (codec.from_xml, codec.decode):
        with pytest.raises(InvalidPayload):
            door(bomb)
    assert time.thread_time() - began < QUICK_S


@pytest.mark.parametrize(
    "document",
    [
        "<Note/>".encode("utf-16"),
        "<?xml version='1.0' encoding='utf-16'?><Note/>".encode("utf-16"),
        b"<Note><text>\xff</text></Note>",
        b"<Note><text>\xc0\xaf</text></Note>",
        b"<Note><text>\xed\xa0\x80</text></Note>",
        b"\xef\xbb\xbf\xef\xbb\xbf<Note/>",
        b"+ADw-Note/+AD4-",
        b"",
        b" ",
        b"\x00",
        b"<Note>",
        b"<Note/><Note/>",
        b"<Note><text>\x01</text></Note>",
        b"<Note><text>&#1;</text></Note>",
        b"<Note><text>&nbsp;</text></Note>",
        b"<Note text=a/>",
        b"x<Note/>",
    ],
)
def test_what_is_not_well_formed_utf_8_is_refused(codec: Codec, document: bytes) -> None:
    with pytest.raises(InvalidPayload, match="not well-formed"):
        codec.from_xml(document)
    with pytest.raises(InvalidPayload, match="not well-formed"):
        codec_xml.parse(document, PayloadLimits())


def test_a_declared_encoding_is_not_believed(codec: Codec) -> None:
    text = "ä😀"
    document = f"<?xml version='1.0' encoding='iso-8859-1'?><Note><text>{text}</text></Note>".encode()
    assert codec.from_xml(document) == Note(text)
    assert codec.from_xml("\ufeff<Note/>".encode()) == Note()


def test_comments_and_instructions_are_removed_without_splitting_a_text(codec: Codec) -> None:
    assert codec.from_xml(b"<?a b?><Note><!-- x --><text>ad<!-- x -->m<?x y?>in</text></Note>") == Note("admin")


def nested(depth: int) -> bytes:
    """`depth` levels of elements."""
    inner = b"<Tree><children>" + b"<item><children>" * ((depth - 2) // 2)
    return inner + b"</children></item>" * ((depth - 2) // 2) + b"</children></Tree>"


def test_thirty_two_levels_pass_and_more_do_not(codec: Codec) -> None:
    assert isinstance(codec.from_xml(nested(MAX_DEPTH)), Tree)
    for parse in (codec.from_xml, codec.decode):
        with pytest.raises(PayloadOverLimit, match="nested too deep"):
            parse(nested(MAX_DEPTH + 2))


def test_two_thousand_elements_pass_and_more_do_not(codec: Codec) -> None:
    def items(count: int) -> bytes:
        return b"<Note><item>" + b"<item/>" * count + b"</item></Note>"

    assert len(codec.from_xml(items(1998)).item) == 1998
    with pytest.raises(PayloadOverLimit, match="too many elements"):
        codec.from_xml(items(1999))
    with pytest.raises(PayloadOverLimit, match="too many elements"):
        codec.decode(items(1999))
    assert len(codec.from_xml(items(19_000), PayloadLimits(elements=20_000)).item) == 19_000


def test_the_bytes_of_a_payload_are_counted_to_the_last(codec: Codec) -> None:
    limit = PayloadLimits(payload_bytes=1000)
    letters = 1000 - len(b"<Note><text></text></Note>")
    fits = b"<Note><text>" + b"x" * letters + b"</text></Note>"
    assert codec.from_xml(fits, limit) == Note("x" * letters)
    with pytest.raises(PayloadOverLimit, match="expected at most 1,000 bytes of XML, came 1,001"):
        codec.from_xml(fits.replace(b"x", b"xx", 1), limit)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b"<Note>" + b"".join(b"<text xmlns:a%d='urn:a%d'/>" % (n, n) for n in range(20)) + b"</Note>", "namespace"),
        (
            b"<Note>" + b"".join(b"<text xmlns:a%d='%s'/>" % (n, XSI.encode()) for n in range(17)) + b"</Note>",
            "too many",
        ),
        (b"<Note " + b" ".join(b"a%d=''" % n for n in range(65)) + b"/>", "too many attributes"),
        (b"<Note xmlns='urn:x'/>", "namespace 'urn:x' is not known"),
        (b"<Note other='1'/>", "attribute 'other' is not known"),
        (b"<Note><strange/></Note>", "element 'strange' is not known"),
        (b"<" + b"p" * 20 + b":Note xmlns:" + b"p" * 20 + b"=''/>", "not known"),
        (f"<Note xmlns:xsi='{XSI}' xsi:type='Tree'/>".encode(), "attribute 'xsi:type' is not known"),
        (f"<Note xmlns:xsi='{XSI}' xsi:noNamespaceSchemaLocation='x.xsd'/>".encode(), "is not known"),
    ],
)
def test_foreign_names_are_refused_before_a_tree_is_built(codec: Codec, document: bytes, words: str) -> None:
    with pytest.raises(InvalidPayload, match=words):
        codec.from_xml(document)


def test_all_foreign_names_are_named_at_once_and_at_most_twenty(codec: Codec) -> None:
    document = b"<Note other='1'><nme x='1'><inner/></nme><text xml:lang='de'>a</text><b><c/></b></Note>"
    with pytest.raises(InvalidPayload) as refused:
        codec.from_xml(document)
    assert [fault.pointer for fault in refused.value.details] == ["", "/nme", "/text", "/b"]
    with pytest.raises(InvalidPayload) as flooded:
        codec.from_xml(b"<Note>" + b"".join(b"<n%d/>" % number for number in range(100)) + b"</Note>")
    assert len(flooded.value.details) == 20


def test_made_up_names_do_not_stay_in_memory(codec: Codec) -> None:
    def resident_bytes() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def send(salt: int) -> None:
        names = b"".join(b"<n%d_%d%s/>" % (salt, n, b"x" * 200) for n in range(1000))
        with pytest.raises(InvalidPayload):
            codec.from_xml(b"<Note>" + names + b"</Note>")

    send(0)
    gc.collect()
    before = resident_bytes()
    for salt in range(1, 60):
        send(salt)
    assert resident_bytes() - before < 4 * 1024 * 1024


def test_an_envelope_full_of_faults_is_refused_quickly_and_in_short(codec: Codec) -> None:
    items = b"<item><text/></item>" * 990
    document = f"<message xmlns='{ENVELOPE}'><meta><from>a</from><to>b</to><thread>t</thread></meta>".encode()
    document += b"<Note xmlns=''><item>" + items + b"</item></Note></message>"
    began = time.thread_time()
    with pytest.raises(InvalidPayload) as refused:
        codec.decode(document)
    assert time.thread_time() - began < QUICK_S
    assert [fault.pointer for fault in refused.value.details] == ["/item/0"]


def test_thousands_of_faults_are_found_quickly_where_so_many_elements_may_come() -> None:
    @dataclass
    class Numbers:
        numbers: list[int]

    large = Codec.of([Numbers], PayloadLimits(payload_bytes=4 * 1024 * 1024, elements=20_000))
    document = b"<Numbers><numbers>" + b"<item>x</item>" * 19_000 + b"</numbers></Numbers>"
    began = time.thread_time()
    with pytest.raises(InvalidPayload, match="/numbers/0: expected whole number"):
        large.from_xml(document)
    assert time.thread_time() - began < QUICK_S / 2
    assert len(large.from_xml(document.replace(b"x", b"7")).numbers) == 19_000


def test_only_the_one_file_calls_a_parser() -> None:
    parsers = {
        "fromstring",
        "parse",
        "XML",
        "iterparse",
        "XMLParser",
        "HTML",
        "HTMLParser",
        "XMLPullParser",
        "ParserCreate",
    }
    callers = {
        path.name
        for path in (ROOT / "organism").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in parsers
        if isinstance(node.value, ast.Name) and node.value.id in {"etree", "pyexpat", "lxml", "objectify", "html"}
    }
    assert callers == {"xml.py"}
