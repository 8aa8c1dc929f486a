"""A client that folds a stream has the batch, whatever the run was."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from organism.agents.invoke import Shape, outputs
from organism.model.run import REQUIRED, STOP_REASONS, RunEntry
from organism.projections.run import fold, trim_to_trailing_unit
from organism.server.invoking.request import STREAMS
from organism.server.invoking.run import writer_for

pytestmark = pytest.mark.thorough

NAMES = st.sampled_from(["a", "b", "c"])
TEXTS = st.text(max_size=6)
ANYTHING = st.none() | st.booleans() | st.integers(-9, 9) | TEXTS | st.dictionaries(TEXTS, TEXTS, max_size=2)
FIELDS = {
    "id": NAMES,
    "text": TEXTS,
    "delta": TEXTS,
    "offset": st.none() | st.integers(0, 8),
    "output": TEXTS,
    "isError": st.booleans(),
    "stopReason": st.sampled_from((*STOP_REASONS, None)),
    "payload": st.fixed_dictionaries({}, optional={"toolName": TEXTS, "toolCall": ANYTHING}),
    "rawInput": ANYTHING,
    "tool": TEXTS,
}


def entries_of(kind: str) -> st.SearchStrategy[RunEntry]:
    """Entries of one type: as they should be, with less, or with more."""
    needed = {name: FIELDS.get(name, ANYTHING) for name in REQUIRED[kind]}
    given_too = {name: FIELDS[name] for name in ("rawInput", "tool", "offset") if name not in needed}
    data = st.fixed_dictionaries(needed, optional=given_too) | st.fixed_dictionaries({}, optional=needed)
    return st.fixed_dictionaries({"type": st.just(kind), "data": data})


RUNS = st.lists(st.one_of(*map(entries_of, REQUIRED)), max_size=20)


async def _given(run: Sequence[RunEntry]) -> AsyncIterator[RunEntry]:
    for entry in run:
        yield entry


def as_json(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value))


@settings(max_examples=1000)
@given(RUNS, st.sampled_from(STREAMS), st.integers(0, 3), st.booleans())
def test_the_lines_that_a_client_folds_are_the_batch(
    run: list[RunEntry],
    form: str,
    heard: int,
    is_trimmed: bool,  # noqa: FBT001 - hypothesis gives it by position
) -> None:
    batch = asyncio.run(outputs(run[:heard], _given(run[heard:]), Shape(is_stream=False, is_trimmed=is_trimmed)))
    write = writer_for(form)
    lines = b"".join(write(entry) for entry in run).decode().split("\n")
    folded = fold(orjson.loads(line.removeprefix("data: ")) for line in lines if line)
    folded["messages"] = trim_to_trailing_unit(folded["messages"]) if is_trimmed else folded["messages"]
    assert {name: value for name, value in folded.items() if value is not None} == as_json(batch)
