from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from organism.config.faults import Faults
from organism.config.yaml import MAX_ALIASES, MAX_DEPTH, MAX_NODES, read_yaml
from organism.errors import ConfigInvalid


def read(text: str) -> Any:
    faults = Faults("o.yaml")
    tree = read_yaml(text, faults)
    faults.refuse_if_any()
    assert tree is not None
    return tree.plain()


def refused(text: str) -> list[str]:
    with pytest.raises(ConfigInvalid) as error:
        read(text)
    return [f"{fault.pointer} {fault.message}" for fault in error.value.details]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("no", "no"),
        ("yes", "yes"),
        ("off", "off"),
        ("true", True),
        ("~", None),
        ("", None),
        ("12", 12),
        ("-0", 0),
        ("010", 10),
        ("0o17", 15),
        ("0x1F", 31),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("2024-01-15", "2024-01-15"),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("'12'", "12"),
        ('"true"', "true"),
        ("|\n  a\n  b\n", "a\nb\n"),
        ("[a, [b]]", ["a", ["b"]]),
    ],
)
def test_values_are_those_of_the_core_schema(written: str, value: object) -> None:
    assert read(f"key: {written}") == {"key": value}


def test_a_document_cannot_ask_for_an_older_yaml() -> None:
    assert read("%YAML 1.1\n---\nkey: no") == {"key": "no"}


@pytest.mark.parametrize("key", ["no", "true", "12", "1.5", "null", "<<", "2024-01-15"])
def test_keys_are_always_text(key: str) -> None:
    assert read(f"{key}: 1") == {key: 1}


def test_an_alias_stands_for_its_anchor() -> None:
    assert read("a: &x [1, {b: 2}]\nc: *x") == {"a": [1, {"b": 2}], "c": [1, {"b": 2}]}


def test_every_duplicate_key_is_named_with_both_lines() -> None:
    assert refused("a: 1\nb: {c: 1,\n  c: 2}\na: 3\n") == [
        "o.yaml:3:b.c this key stands here twice, first in line 2",
        "o.yaml:4:a this key stands here twice, first in line 1",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "o.yaml:1 the file is empty; expected a mapping with `organism` and `listeners`"),
        ("# nothing\n", "o.yaml:1 the file is empty; expected a mapping with `organism` and `listeners`"),
        ("a: 1\nb: [1\nc: 2", "o.yaml:3 this is not YAML, column 2: while parsing a flow sequence"),
        ("a: 1\n\tb: 2", "o.yaml:2 this is not YAML, column 1: while scanning for the next token"),
        ("a: 1\nb: \x07", "o.yaml:2 this is not YAML: unacceptable character #x0007"),
        ("a: 1\n---\nb: 2", "o.yaml:2 a second document begins here; expected one"),
        ("a: 1\n? [b]\n: 2", "o.yaml:2 expected text as key, came a list or a mapping"),
        ("a: !!python/object:os.system x", "o.yaml:1:a tags are not taken here, came tag:yaml.org,2002:python/object"),
        ("a: [1, !!int x]", "o.yaml:1:a[1] tags are not taken here"),
        ("a: {b: .inf}", "o.yaml:1:a.b expected a finite number, came .inf"),
        ("a: -.INF", "o.yaml:1:a expected a finite number, came -.INF"),
        ("a: .nan", "o.yaml:1:a expected a finite number, came .nan"),
        ("a: 1e999", "o.yaml:1:a expected a finite number, came 1e999"),
        (f"a: {'9' * 50}", "o.yaml:1:a expected a number of at most 40 digits, came one of 50"),
        (f"a: {'9' * 5000}", "o.yaml:1:a expected a finite number"),
        ('a: "\\ud800"', "o.yaml:1:a expected characters, came half of a surrogate pair"),
        ("a: *b", "o.yaml:1:a the alias *b has no anchor &b that is complete before it"),
        ("a: &a [*a]", "o.yaml:1:a[0] the alias *a has no anchor &a that is complete before it"),
        (
            "a: &x 1\nb: [" + "*x, " * (MAX_ALIASES + 1) + "]",
            f"o.yaml:2:b[{MAX_ALIASES}] more than {MAX_ALIASES} aliases",
        ),
    ],
)
def test_naughty_yaml_is_refused_with_its_line(text: str, fault: str) -> None:
    (only,) = refused(text)
    assert only.startswith(fault)


def test_a_bomb_of_aliases_is_refused_by_what_it_would_become() -> None:
    lines = ["a0: &a0 [" + "x, " * 500 + "]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 3)}]" for n in range(1, 8)]
    (only,) = refused("\n".join(lines))
    assert only.startswith(f"o.yaml:6:a5[2] more than {MAX_NODES} values")


def test_aliases_cannot_nest_deeper_than_written_lists_can() -> None:
    deep = "[" * (MAX_DEPTH - 2) + "]" * (MAX_DEPTH - 2)
    (only,) = refused(f"a: &a {deep}\nb: [[[*a]]]")
    assert f"nested deeper than {MAX_DEPTH} levels" in only


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
def test_a_deep_document_is_refused_at_once(opening: str) -> None:
    (only,) = refused(opening * 50_000)
    assert "nested deeper than" in only or "expected text as key" in only


def test_what_is_nested_as_deep_as_allowed_is_read() -> None:
    assert read("[" * MAX_DEPTH + "]" * MAX_DEPTH)


PIECES = [
    *"[]{},:?-|>'\"#\t\r\n*&!%@` ~\\",
    *("a", "b: ", "- ", "  ", "&a ", "*a", "!!str ", "---", "...", "%YAML 1.1\n", "\ufeff", "\u2028", "\x85", "\x00"),
    *("0x", "1_0", ".inf", "1e999", "<<: ", "é", "😀", "\\x", "\\UFFFFFFFF", "|2", ">-", "9" * 50),
]


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_any_text_gives_a_tree_or_faults_and_never_another_error(text: str) -> None:
    faults = Faults("o.yaml")
    tree = read_yaml(text, faults)
    if tree is None:
        assert faults.refusal().details
    else:
        tree.plain()
