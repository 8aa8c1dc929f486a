"""A run as it was in the end: what a batch answer is made of."""

from __future__ import annotations

import pytest

from organism.errors import BudgetExhausted, ThreadKilled, Upstream
from organism.model.run import RunEntry
from organism.server.turns.run_result import FoldedRun, trim_to_trailing_unit
from organism.views.run import fold

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
FAILED: RunEntry = {"type": "error", "data": {"code": "upstream_error", "message": "Away."}}


def folded(*entries: RunEntry, is_trimmed: bool = False) -> FoldedRun:
    run = FoldedRun(is_trimmed=is_trimmed)
    for entry in entries:
        run.add(entry)
    return run


def done(reason: str) -> RunEntry:
    return {"type": "done", "data": {"stopReason": reason}}


@pytest.mark.parametrize("trim", [False, True])
def test_a_batch_is_the_fold_of_the_stream_without_what_is_null(*, trim: bool) -> None:
    messages = fold(RUN)["messages"]
    expected = {"messages": trim_to_trailing_unit(messages) if trim else messages, "stop_reason": "stop"}
    assert folded(*RUN, is_trimmed=trim).outputs() == expected


def test_the_calls_without_a_result_are_left_and_the_usage_is_added_up() -> None:
    run = folded(*RUN[:-1], {"type": "tool_call", "data": {"id": "t2", "name": "f", "input": {}}}, RUN[-2], RUN[-1])
    assert list(run.unanswered) == ["t2"]
    assert run.usage == {"input": 6, "output": 8, "total": 14}


def test_the_error_that_ended_a_run_is_its_failure_and_one_that_did_not_is_none() -> None:
    budget: RunEntry = {"type": "error", "data": {"code": "budget_exhausted", "message": "Spent."}}
    assert isinstance(folded(FAILED, done("error")).failure, Upstream)
    assert isinstance(folded(budget, done("budget")).failure, BudgetExhausted)
    assert isinstance(folded(FAILED, done("killed")).failure, ThreadKilled)
    assert folded(FAILED, RUN[5], done("stop")).failure is None
    assert folded(FAILED).failure is None


@pytest.mark.parametrize(
    ("roles", "kept"),
    [("", 0), ("a", 1), ("aa", 1), ("att", 3), ("aatt", 3), ("tt", 2), ("ta", 1), ("attat", 2)],
)
def test_the_trim_keeps_the_last_message_or_the_tool_run_with_what_began_it(roles: str, kept: int) -> None:
    messages = [{"role": "tool" if role == "t" else "assistant", "n": number} for number, role in enumerate(roles)]
    assert trim_to_trailing_unit(messages) == messages[len(messages) - kept :]
