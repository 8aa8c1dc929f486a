"""Histories of sessions: turns with words, tool calls, parallel ones, errors, and calls whose turn died."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Messages = list[dict[str, Any]]
texts = st.text("ab .ä", max_size=20)


def message(role: str, content: str = "", **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


@st.composite
def _rounds(draw: st.DrawFn) -> Messages:
    """One round of a turn: perhaps words, calls, and a result for each call that was answered, in any order."""
    ids = draw(st.lists(st.sampled_from("abcdef"), max_size=4, unique=True))
    inputs = st.one_of(st.none(), texts, st.dictionaries(texts, st.integers(0, 99), max_size=2))
    calls = [message("tool", tool_call_id=each, tool_name="adder", input=draw(inputs)) for each in ids]
    answered = draw(st.permutations(ids)) if draw(st.integers(0, 5)) else ids[:-1]
    results = [message("tool", draw(texts), tool_call_id=each, is_error=draw(st.booleans())) for each in answered]
    return [*([message("assistant", draw(texts))] if draw(st.booleans()) else []), *calls, *results]


@st.composite
def histories(draw: st.DrawFn) -> Messages:
    found: Messages = []
    for _ in range(draw(st.integers(0, 6))):
        found.append(message("user", draw(texts)))
        for round_ in draw(st.lists(_rounds(), max_size=3)):
            found += round_
        found.append(message("assistant", draw(texts)))
    return found


def pairs_of(messages: Messages) -> list[tuple[int, int]]:
    """Where each call stands that has a result, and its result: the next one of its id."""
    pairs = []
    for at, each in enumerate(messages):
        if "tool_name" in each:
            for later in range(at + 1, len(messages)):
                if messages[later].get("tool_call_id") == each["tool_call_id"]:
                    if "tool_name" not in messages[later]:
                        pairs.append((at, later))
                    break
    return pairs
