"""The redactor: live secrets, named fields and looks are gone, and all else stays as it is (S30)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from organism.model.redact import MASK, Redactor, visible
from tests.growth import growth_fault

SECRET = 'canary & "four" <seven>\\é-4711'
TOKEN = "org_laptop_" + "0a" * 32

LOOKS = [
    TOKEN,
    "page_18c_" + "f" * 64,
    "sk-proj-abcdefghijklmnop1234",
    "AKIAIOSFODNN7EXAMPLE",
    "ASIAIOSFODNN7EXAMPLE",
    *(f"gh{kind}_" + "a1B2" * 9 for kind in "pousr"),
    *(f"xox{kind}-1234567890-abc" for kind in "abeoprs"),
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----",
]
QUERY_NAMES = ("token", "access_token", "api_key", "apikey", "key", "ticket", "password", "secret")


@pytest.mark.parametrize("secret", LOOKS)
def test_what_looks_like_a_credential_is_not_shown(secret: str) -> None:
    said = Redactor().text(f"before {secret} after")
    assert said == f"before {MASK} after"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Bearer abcdefgh1234", f"Authorization: Bearer {MASK}"),
        ("basic dXNlcjpwYXNzd29yZA==", f"basic {MASK}"),
        ("Basic dXNlcjpwYXNz", f"Basic {MASK}"),
        ("GET /x?limit=1&api_key=abc&q=2", f"GET /x?limit=1&api_key={MASK}&q=2"),
        *((f"/x?{name}=abc&q=2", f"/x?{name}={MASK}&q=2") for name in QUERY_NAMES),
        *((f"/x?{name.upper()}=abc", f"/x?{name.upper()}={MASK}") for name in QUERY_NAMES),
        ("AUTHORIZATION: BEARER abcdefgh1234", f"AUTHORIZATION: BEARER {MASK}"),
        ("postgres://me:hunter2@db/x", f"postgres://{MASK}@db/x"),
    ],
)
def test_what_stands_around_a_credential_stays(text: str, shown: str) -> None:
    assert Redactor().text(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "Hello, Dan!",
        "msg-01a2b3c4d5e6f708",
        "a" * 64,
        "the token count is 4711",
        "http://localhost:8080/api/v1",
        "a bearer of news",
        "mailto:me@example.org",
        "10:30 basic salary",
        "A basic understanding of Basic Principles, basic JavaScript and bearer certificates",
    ],
)
def test_all_else_is_shown_as_it_is(text: str) -> None:
    assert Redactor(["another-secret-of-mine"]).text(text) == text


@pytest.mark.parametrize(
    "name", ["password", "api_key", "API-Key", "client_secret", "token", "access_token", "Authorization", "db.passwd"]
)
def test_what_stands_under_the_name_of_a_secret_is_not_shown(name: str) -> None:
    assert Redactor().value({name: "x", "deep": [{name: "y"}]}) == {name: MASK, "deep": [{name: MASK}]}


@pytest.mark.parametrize(
    "name", ["tokens", "api_key_env", "tokenizer", "passenger", "max_tokens_per_thread", "keyboard"]
)
def test_a_number_or_a_name_that_only_resembles_one_is_shown(name: str) -> None:
    value = {name: 5, "password": "", "api_key_env": "OPENAI_API_KEY", "tokenizer": "x"}
    assert Redactor().value(value) == value


def test_a_live_secret_is_found_in_json_and_in_xml_as_it_is_written_there() -> None:
    redactor = Redactor([SECRET])
    in_json = json.dumps({"a": f"x{SECRET}y"}, ensure_ascii=False).encode()
    in_xml = f"<a>x{SECRET.replace('&', '&amp;').replace('<', '&lt;').replace('>', '&gt;')}y</a>".encode()
    assert redactor.holds(in_json)
    assert json.loads(redactor.masked_bytes(in_json)) == {"a": f"x{MASK}y"}
    assert redactor.masked_bytes(in_xml) == f"<a>x{MASK}y</a>".encode()


def test_what_is_kept_loses_only_live_secrets() -> None:
    redactor = Redactor(["canary-4711"], lambda text: text == TOKEN)
    foreign = "sk-proj-abcdefghijklmnop1234 password=x org_other_" + "1" * 64
    assert redactor.masked_bytes(f"{foreign} canary-4711 {TOKEN}".encode()) == f"{foreign} {MASK} {MASK}".encode()
    assert redactor.holds_token(TOKEN.encode())
    assert not redactor.holds_token(foreign.encode())


def test_a_secret_that_is_a_part_of_another_leaves_nothing_of_it() -> None:
    redactor = Redactor(["canary-4711", "the-canary-4711-of-mine"])
    assert redactor.text("the-canary-4711-of-mine") == MASK


def test_what_is_too_short_is_no_secret() -> None:
    assert Redactor(["hello"]).text("hello") == "hello"


def test_a_secret_that_messages_are_read_by_is_shown_nowhere_and_kept_where_it_is_needed() -> None:
    redactor = Redactor(["GreetingResponse"])
    redactor.spare("<xs:element name='GreetingResponse'/>")
    assert redactor.masked_bytes(b"<GreetingResponse/>") == b"<GreetingResponse/>"
    assert redactor.text("GreetingResponse") == MASK


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda i: st.lists(i) | st.dictionaries(st.text(), i)
    )
)
def test_no_value_keeps_a_secret(value: object) -> None:
    said = json.dumps(Redactor(["canary-4711"]).value({"a": value, "b": ["canary-4711", {"canary-4711": value}]}))
    assert "canary-4711" not in said


@given(
    st.recursive(
        st.none() | st.integers() | st.text() | st.sampled_from([*LOOKS, SECRET, "x?key=hidden", "Basic dXNlcjpwYXNz"]),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["db.password", "toKens", SECRET]), inner)
        ),
    )
)
def test_finished_json_shows_what_its_value_shows(value: object) -> None:
    redactor, finished = Redactor([SECRET]), json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert redactor.decoded(finished.encode()) == redactor.value(value)


PARTS = (
    "org_laptop_",
    "0a" * 32,
    "xyzxyzxyz",
    "abcdefgh",
    "abcdefghIJKL12",
    "aabaabaab",
    "xyz",
    "aab",
    "a",
    " ",
    "o",
    "🙂",
)


@example(["xyzxyzxyz", "org_laptop_", "0a" * 32], [1])
@given(st.lists(st.sampled_from(PARTS), max_size=8), st.lists(st.integers(1, 7), min_size=1, max_size=8))
def test_a_text_in_pieces_hides_what_the_whole_hides(parts: list[str], sizes: list[int]) -> None:
    secrets = ("xyzxyzxyz", "abcdefgh", "abcdefghIJKL12", "aabaabaab")
    redactor, text = Redactor(secrets, lambda _: True), "".join(parts)
    shown, held, at = "", "", 0
    for size in itertools.cycle(sizes):
        if at >= len(text):
            break
        new, held = redactor.split(held + text[at : at + size])
        shown, at = shown + new, at + size
    said, whole = shown + redactor.masked(held), redactor.masked(text)
    assert not any(secret in said for secret in secrets)
    assert PARTS[0] + PARTS[1] not in said or PARTS[0] + PARTS[1] in whole
    assert said == whole or said.count(MASK) > whole.count(MASK)  # what begins within a word may be masked in pieces


BITS = (
    "a", "a.", "-", "a://", "a://:", "a://a:a", "eyJ", "eyJaaaaaaaa.", "eyJ-AKIA0000000000000000-", "org_", "org_a-",
    "org_x_" + "0a" * 32 + "-", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "bearer ", "basic aB/", "basic  ",
    "?key=", "sk-", "\ud83d",
)  # fmt: skip
BEFORE = ("", "a://:", "eyJ", "org_")


@pytest.mark.thorough
@pytest.mark.parametrize("before", BEFORE)
def test_redaction_grows_no_faster_than_its_text(before: str) -> None:
    redactor = Redactor([SECRET], lambda _: False)

    def prepare(bit: str, size: int) -> Callable[[], object]:
        text = before + " eyj :// org_ basic " + before + bit * (size // len(bit))
        return lambda: (redactor.text(text), redactor.split(text))

    faults = {bit: growth_fault(partial(prepare, bit)) for bit in BITS}
    assert {bit: fault for bit, fault in faults.items() if fault} == {}


def test_a_live_token_is_hidden_behind_what_only_begins_like_one() -> None:
    redactor = Redactor(is_live=lambda text: text == TOKEN)
    for before in ("org_x-", "page_1.org_-", "org_" + "y" * 500 + "."):
        assert TOKEN.encode() not in redactor.masked_bytes(f"{before}{TOKEN}".encode())
        assert TOKEN not in redactor.masked(f"{before}{TOKEN} after")


def test_what_nobody_sees_is_written_out() -> None:
    shown = visible({"id": "a\u202eb\u200b", "list": ["\x00", 1, None], "\u2066key": {"deep": "\ufeff"}})
    assert shown == {
        "id": "a⟨U+202E⟩b⟨U+200B⟩",
        "list": ["⟨U+0000⟩", 1, None],
        "⟨U+2066⟩key": {"deep": "⟨U+FEFF⟩"},
    }


def test_what_everybody_sees_stays_as_it_is() -> None:
    text = "Grüße, 日本, 🙂\n\ttabbed"
    assert visible(text) == text
