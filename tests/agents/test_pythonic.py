"""Calls written as Python are read as literals, and nothing of them is run."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from organism.agents.pythonic import NotPythonic, read_call, read_literal

LITERAL = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("text", "name", "positional", "named"),
    [
        ("f()", "f", (), {}),
        ("f(1, 'a')", "f", (1, "a"), {}),
        ("shop.send-it(a=1,)", "shop.send-it", (), {"a": 1}),
        (
            "f( a = True , b = [1, (2, 'x')], c = {'k': None} )",
            "f",
            (),
            {"a": True, "b": [1, [2, "x"]], "c": {"k": None}},
        ),
        ("f(a=true, b=null)", "f", (), {"a": True, "b": None}),
        ('f(a="""two\nlines""")', "f", (), {"a": "two\nlines"}),
        (r"f(a='it\'s \u00e4\n')", "f", (), {"a": "it's ä\n"}),
        ("f(a=-1.5e3)", "f", (), {"a": -1500.0}),
    ],
)
def test_a_call_is_read(text: str, name: str, positional: tuple[Any, ...], named: dict[str, Any]) -> None:
    call = read_call(text, 0)
    assert (call.name, call.positional, call.named, call.end) == (name, positional, named, len(text))


@given(LITERAL)
def test_what_python_writes_is_read_as_python_reads_it(value: Any) -> None:
    written = repr(value)
    try:
        wanted = ast.literal_eval(written)
    except (SyntaxError, ValueError):
        return
    assert read_literal(written, 0) == (wanted, len(written))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "f",
        "f(",
        "f(a=",
        "f(a=1",
        "f(a=b)",
        "f(a=g())",
        "f(a=1+1)",
        "f(a=[1)",
        "f(a={1: 2})",
        "f(a={'k'})",
        "f(a='open)",
        "f(a==1)",
        "f(*a)",
        "f(a=1e999)",
        "f(a=f'{x}')",
        "f(a=__import__('os'))",
        "f(a=" + "9" * 5000 + ")",
        "f(a=" + "[" * 33 + "]" * 33 + ")",
        "1()",
    ],
)
def test_what_is_no_literal_is_no_call(text: str) -> None:
    with pytest.raises(NotPythonic):
        read_call(text, 0)


@given(st.text("f(a=[]{}'\"\\,:1e-. \n", max_size=60))
def test_any_text_is_read_or_is_no_call(text: str) -> None:
    try:
        seen = read_call(text, 0).end
    except NotPythonic as error:
        seen = error.at
    assert 0 <= seen <= len(text)
