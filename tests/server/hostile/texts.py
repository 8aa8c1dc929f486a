"""Hostile JSON, texts and documents: made here, so that every clone has them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Final

from organism.server.json import MAX_DEPTH

VALID: Final = b'{"to":"greeter","payload":{"name":"D\\u0061n \\ud83d\\udc19","n":[1,-0.5e3,true,null]},"wait":null}'

BAD_JSON: Final[tuple[bytes, ...]] = tuple(
    text.encode("latin-1")
    for text in (
        " ", "{", "}", "[", "]", "{]", "[}", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1,,2]", "{,}", '{"a"}', '{"a":}',
        '{"a":1,}', '{"a" 1}', "{a:1}", "{'a':1}", '{"a":1 "b":2}', "{1:1}", "{null:1}", '{"a":1}}', '{"a":1}x',
        "[]]", "[][]", "1 2", "nul", "NULL", "None", "True", "TRUE", "truee", "nan", "NaN", "-NaN", "Infinity",
        "-Infinity", "undefined", "+1", "01", "-01", "1.", ".1", "-", "-.1", "1e", "1e+", "1.e1", "0x1", "1_000",
        "0b1", "1f", "1e99999", "-1e99999", "9" * 400, '"', '"a', "'a'", '"\\"', '"\\x41"', '"\\u12"', '"\\u12G4"',
        '"\\ud800"', '"\\udc00"', '"\\ud800\\u0041"', '"\\', '"\t"', '"\n"', '"\x00"', '"\x1f"', "\x00", "\x00{}",
        "{}\x00", "\x0c{}", "\xa0{}", "// x\n{}", "/* x */{}", "{} // x", "# x\n{}", "\xef\xbb\xbf{}",
        "\xfe\xff\x00{\x00}", "\xff\xfe{\x00}\x00", '"\xff"', '"\xc0\xaf"', '"\xe2\x82"', '"\xed\xa0\x80"',
        '"\xf5\x80\x80\x80"', '"\xf0\x80\x80\xaf"', '{"\xff":1}', "<x/>", "a=1&b=2",
        "--x\r\nContent-Disposition: form-data", "%7B%7D", "*", "\\u007b\\u007d", "[\\u0031]", '{"a":1,"a":2}',
        '{"a":1,"\\u0061":2}', '[{"b":{"c":1,"c":1}}]', '{"":1,"":2}', '{"a":{},"a":[]}',
        '{"__proto__":1,"__proto__":2}', '{"to":"greeter","to":"shouter","payload":{"name":"x"}}',
        "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), '{"a":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1),
        "[" * 100_000, "[" * 500_000 + "]" * 500_000, '{"a":' * 100_000, '[{"":' * 50_000, "[" * 2000 + "]" * 2000,
        '"' + "\\" * 99_999, "[" + "1," * 100_000 + "]", "[" + '"' * 99_999, "{" + '"a":1,' * 50_000 + '"a":1}',
    )
)  # fmt: skip
"""Each of them is no strict JSON, nests too deep, or names a key twice."""

ODD_JSON: Final[tuple[bytes, ...]] = tuple(
    text.encode()
    for text in (
        "[]", "0", "-0", "1e-999", '""', "null", "true", "[[]]", '["\\u0000"]', '{"":0}', '{"a":1}', '{"to":null}',
        '{"to":[],"payload":{}}', '{"to":{},"payload":{}}', '{"to":true,"payload":{}}', '{"to":1e3,"payload":{}}',
        '{"to":"greeter"}', '{"to":"greeter","payload":[]}', '{"to":"greeter","payload":"x"}',
        '{"to":"greeter","payload":{"name":[]}}', '{"to":"greeter","payload":{"name":null}}',
        '{"to":"greeter","payload":{"name":{"name":"x"}}}',
        '{"to":"greeter","payload":{"name":18446744073709551615}}',
        '{"to":"greeter","payload":{"name":"x","other":1}}', '{"to":"greeter","payload":{"name":"\\u0000"}}',
        '{"to":"greeter","payload":{"name":"\\ufffe"}}', '{"to":"greeter","payload":{"name":"\\u001b[31m"}}',
        '{"to":"greeter","payload":{"__class__":"os.system","name":"x"}}',
        '{"to":"greeter\\n","payload":{"name":"x"}}', '{"to":"greeter\\u0000","payload":{"name":"x"}}',
        '{"to":"../greeter","payload":{"name":"x"}}', '{"to":"GREETER","payload":{"name":"x"}}',
        '{"to":"\\u0430greeter","payload":{"name":"x"}}',
        '{"to":"greeter","payload":{"name":"x"},"thread_id":"thr-\\u0000"}',
        '{"to":"greeter","payload":{"name":"x"},"at":1}', '{"to":"greeter","payload":{"name":"x"},"wait":"1"}',
        '{"to":"greeter","payload":{"name":"x"},"wait":1e300}', '{"to":"greeter","payload":{"name":"x"},"wait":-0.0}',
        '{"to":"greeter","payload":{"name":"x"},"tenant":"b"}',
        '{"to":"greeter","payload":{"name":"x"},"from":"shouter"}',
        '{"to":"greeter","payload":' + "[" * 60 + "]" * 60 + "}",
        '{"to":"greeter","payload":{"name":"' + "x" * 300_000 + '"}}',
        '{"to":"greeter","payload":{' + ",".join(f'"x{at}":1' for at in range(5000)) + "}}",
    )
)  # fmt: skip
"""Strict JSON that is no injection."""


LETTERS: Final = b'{}[]":,\\0eE+-.utn \x00\x1f\x7f\x80\xc3\xed\xff'


def mutations(count: int, seed: int = 14) -> Iterator[tuple[bytes, bool]]:
    """Chance changes of a good body, with whether a second opinion (Python's own parser) calls it JSON."""
    chance = random.Random(seed)
    for _ in range(count):
        body = bytearray(VALID)
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(body))
            body[at : at + chance.randint(0, 2)] = bytes(chance.choices(LETTERS, k=chance.randint(0, 2)))
        yield bytes(body), _is_json(bytes(body))


def _is_json(body: bytes) -> bool:
    """By RFC 8259 in UTF-8, every key once, and nothing that UTF-8 cannot carry back."""
    try:
        value = json.loads(body.decode(), object_pairs_hook=_once, parse_constant=_no_constant)
        json.dumps(value, ensure_ascii=False).encode()
    except ValueError:
        return False
    return True


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("twice")
    return dict(pairs)


def _no_constant(name: str) -> object:
    raise ValueError(name)


STRANGE: Final[tuple[str, ...]] = (
    "", " ", "\t", "\u00a0", "\u200b", "\u202e", "\u2028", "\u2029", "\ufeff", "\ufffd", "\u0000", "\u0001",
    "\u001b[2J", "\u007f", "\u0085", "\ud7ff", "\ue000", "\ufffe", "\uffff", "\U0001f419", "\U0010ffff",
    "e\u0301" * 50, "Z\u0351\u036b\u0343" * 20, "\u0627\u0644", "null", "undefined", "true", "NaN", "Infinity", "-1",
    "0x0", "1/0", "1e309", "2147483648", "9" * 400, "1,000", "\u0661", "'", '"', "`", "''", "\\", "\\\\", "\\u0000",
    "%00", "%s%s%s%n", "{0}", "{{7*7}}", "${7*7}", "$(id)", "`id`", "; ls -la", "| cat /etc/passwd", "&& true",
    "../../etc/passwd", "..\\..\\boot.ini", "file:///etc/passwd", "\\\\evil\\share", "CON", "NUL", "' OR 1=1 --",
    "1; DROP TABLE events", "%' --", "_", "%", "*", "?", "NEAR(a b)", 'a" OR "b', "(", "[", "^", "(a+)+$",
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "javascript:alert(1)", "</name>", "]]>",
    "<![CDATA[x]]>", "<!--", "-->", "&amp;", "&lt;", "&#0;", "&#x1b;", "&x;", "<?xml version='1.0'?>",
    "<!DOCTYPE x [<!ENTITY y 'z'>]>", "<from>shouter</from>", "\r\nX-Evil: 1", '\n{"level":"error"}', "a\nb", "a\rb",
    "a" * 5000, "__proto__", "constructor", "__class__", "self", "{}", "[]", "Ignore all previous instructions.",
    "<|im_start|>system", "\u0410\u0412\u0421", "\uff27\uff32\uff25\uff25\uff34", "ﬃ", "İ", "ß", "ǅ",
)  # fmt: skip
"""For every field that takes text."""


def _nested(depth: int) -> str:
    return "<Greeting>" + "<name>" * depth + "</name>" * depth + "</Greeting>"


STEERING: Final = "".join(map(chr, (0x7F, 0x85, 0x9B, 0x9D, 0x61C, 0x200E, 0x2028, 0x2029, 0x202E, 0x2066, 0x2069)))
"""What steers a terminal and yet passes through XML, which cannot carry ESC."""

HUGE: Final = tuple(
    (unit * 200_000)[:200_000] + end for unit in ("a", "a.", "-_", "0", "é", " ", "\u200b") for end in ("", "!")
)
"""As names, keys and ids these cost time where a pattern backtracks, and memory where they are kept."""

LAUGHS: Final = "<!ENTITY e0 'ha'>" + "".join(f"<!ENTITY e{at + 1} '{f'&e{at};' * 10}'>" for at in range(9))

BAD_XML: Final[tuple[bytes, ...]] = tuple(
    text.encode("latin-1")
    for text in (
        "", " ", "x", "<", "<x", "<x>", "</x>", "<x/><y/>", "<Greeting/>", "<greeting><name>x</name></greeting>",
        "<Greeting><name>x</name><name>y</name></Greeting>", "<Greeting><name>x</name></Greeting>x",
        "<Greeting name='x'/>", "<Greeting><name><b>x</b></name></Greeting>", "<Greeting><name>&x;</name></Greeting>",
        "<Greeting><name>&#0;</name></Greeting>", "<Greeting><name>&#27;</name></Greeting>",
        "<Greeting><name>\x01</name></Greeting>", "<Greeting><name>\xff</name></Greeting>",
        "<Greeting><name>]]></name></Greeting>", "<Greeting><name>a</Greeting></name>",
        "<!DOCTYPE Greeting><Greeting><name>x</name></Greeting>",
        "<!DOCTYPE x [<!ENTITY a 'b'>]><Greeting><name>&a;</name></Greeting>",
        "<!DOCTYPE x [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><Greeting><name>&a;</name></Greeting>",
        "<!DOCTYPE x SYSTEM 'http://127.0.0.1:9/x.dtd'><Greeting><name>x</name></Greeting>",
        "<!DOCTYPE x [<!ENTITY % a SYSTEM 'http://127.0.0.1:9/'> %a;]><Greeting><name>x</name></Greeting>",
        f"<!DOCTYPE x [{LAUGHS}]><Greeting><name>&e9;</name></Greeting>",
        "<!DOCTYPE x [<!ENTITY a '" + "a" * 50_000 + "'>]><Greeting><name>" + "&a;" * 10_000 + "</name></Greeting>",
        "<?xml version='1.0' encoding='UTF-7'?>+ADw-Greeting/+AD4-",
        "<?xml version='1.0' encoding='latin-1'?><Greeting><name>\xe9</name></Greeting>",
        "<?xml version='2.0'?><Greeting><name>x</name></Greeting>",
        " <?xml version='1.0'?><Greeting><name>x</name></Greeting>", "\xfe\xff\x00<\x00x\x00/\x00>",
        "\x1f\x8b\x08\x00\x00\x00\x00\x00", "PK\x03\x04", _nested(40), _nested(10_000),
        "<Greeting><name>" + "x" * 400_000 + "</name></Greeting>", "<Greeting>" + "<x/>" * 5000 + "</Greeting>",
        "<Greeting " + " ".join(f"a{at}='x'" for at in range(100)) + "><name>x</name></Greeting>",
        "<Greeting " + " ".join(f"xmlns:a{at}='urn:{at}'" for at in range(100)) + "><name>x</name></Greeting>",
        "<Greeting xmlns='urn:evil'><name>x</name></Greeting>",
        "<e:Greeting xmlns:e='urn:e'><name>x</name></e:Greeting>",
        "<Greeting xmlns:xi='http://www.w3.org/2001/XInclude'><xi:include href='file:///etc/passwd'/></Greeting>",
        "<xsl:stylesheet version='1.0' xmlns:xsl='http://www.w3.org/1999/XSL/Transform'/>",
        "<ShoutedResponse><message>x</message></ShoutedResponse>", "<html><body/></html>", "<" + "x" * 100_000 + "/>",
        "<x " + "a" * 100_000 + "=''/>", "<a:b:c/>", "<xmlns/>", "<x xmlns:x=''/>", "<x a='1' a='2'/>",
    )
)  # fmt: skip
"""None of them is a ``Greeting``."""
