"""Flags are resolved in the handler, and a batch is the fold of the stream."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import product

import pytest

from organism.agents.invoke import Flags, Shape, outputs, resolved
from organism.config.check import InvokeMode
from organism.errors import ForceNotSupported, NotAcceptable
from organism.model.run import RunEntry
from organism.views.run import fold, trim_to_trailing_unit

SAYS: tuple[bool | None, ...] = (None, False, True)
MODES: tuple[tuple[InvokeMode, ...], ...] = (("batch",), ("stream",), ("batch", "stream"), ("batch", "force"))

RUN: tuple[RunEntry, ...] = (
    {"type": "message_start", "data": {"id": "m1"}},
    {"type": "message_delta", "data": {"id": "m1", "delta": "let me see", "offset": 0}},
    {"type": "message_end", "data": {"id": "m1"}},
    {"type": "tool_call", "data": {"id": "t1", "name": "search", "input": {"q": "x"}}},
    {"type": "tool_result", "data": {"id": "t1", "output": "42", "isError": False}},
    {"type": "message", "data": {"text": "42"}},
    {"type": "usage", "data": {"input": 3, "output": 4, "total": 7}},
    {"type": "done", "data": {"stopReason": "stop"}},
)


async def entries() -> AsyncIterator[RunEntry]:
    for entry in RUN:
        yield entry


@pytest.mark.parametrize(("stream", "trim", "force"), list(product(SAYS, SAYS, SAYS)))
@pytest.mark.parametrize("modes", MODES, ids="+".join)
def test_every_combination_of_flags_is_delivered_or_refused(
    *, stream: bool | None, trim: bool | None, force: bool | None, modes: tuple[InvokeMode, ...]
) -> None:
    flags = Flags(stream, trim, force)
    if force and "force" not in modes:
        with pytest.raises(ForceNotSupported) as forced:
            resolved(flags, modes)
        assert (forced.value.requested, forced.value.supported) == ("force", modes)
    elif stream is None:
        assert resolved(flags, modes) == Shape(is_stream=modes == ("stream",), is_trimmed=bool(trim))
    elif (asked := "stream" if stream else "batch") not in modes:
        with pytest.raises(NotAcceptable) as refused:
            resolved(flags, modes)
        assert (refused.value.requested, refused.value.supported) == (asked, modes)
    else:
        assert resolved(flags, modes) == Shape(is_stream=stream, is_trimmed=bool(trim))


@pytest.mark.parametrize("trim", [False, True])
async def test_a_batch_is_the_fold_of_the_stream_without_what_is_null(*, trim: bool) -> None:
    given = await outputs(entries(), Shape(is_stream=False, is_trimmed=trim))
    messages = fold(RUN)["messages"]
    assert given == {"messages": trim_to_trailing_unit(messages) if trim else messages, "stop_reason": "stop"}
