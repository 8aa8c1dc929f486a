"""What models cost: sums of the calls in a log."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from organism.events.record import Record
from organism.events.vocabulary import ModelCalled, StepError, TextsEmbedded
from organism.log.sqlite import SqliteLog
from organism.views.read_models import portions
from organism.views.usage import DAY, HOUR, MODEL_CALLS, account, accounts
from organism.views.views import Where
from tests.log.engines import unit

HOUR_US = 3_600_000_000
AT = 1_768_168_067_000_000  # 2026-01-11T21:47:47Z
CALLED = ModelCalled(
    message="msg-1", agent="ada", step=1, model="m", provider="scripted", input_tokens=10, output_tokens=5,
    cost_usd="0.25", cost_source="price", attempts=1, duration=1_500_000,
)  # fmt: skip
FAILED = replace(CALLED, agent="bob", model="n", cost_usd="0.1", error=StepError("upstream_error", "No."))
EMBEDDED = TextsEmbedded("e", "local", 3, 7, "0", "zero", 500_000)


@pytest.fixture
async def log() -> AsyncIterator[SqliteLog]:
    opened = await SqliteLog.in_memory((MODEL_CALLS,))
    yield opened
    await opened.close()


async def called(log: SqliteLog, *events: ModelCalled | TextsEmbedded, thread: str | None = "t", at: int = AT) -> None:
    await log.commit(unit(thread, *map(Record, events), at=at))


async def test_a_call_is_counted_for_all_its_agent_its_thread_and_its_hour_and_day(log: SqliteLog) -> None:
    await called(log, CALLED)
    await called(log, FAILED, at=AT + HOUR_US)
    by_agent = await portions(log.views, "agent")
    assert to_builtins(account("", by_agent)) == {
        "name": "", "calls": 2, "failed_calls": 1, "input_tokens": 20, "output_tokens": 10, "tokens": 30,
        "cost_usd": "0.35", "model_seconds": 3.0, "last_called": "2026-01-11T22:47:47.000000Z",
        "models": [
            {"model": "m", "served_by": "scripted", "calls": 1, "input_tokens": 10, "output_tokens": 5, "tokens": 15,
             "cost_usd": "0.25"},
            {"model": "n", "served_by": "scripted", "calls": 1, "input_tokens": 10, "output_tokens": 5, "tokens": 15,
             "cost_usd": "0.1"},
        ],
    }  # fmt: skip
    calls: list[Any] = [[(each.name, each.calls) for each in accounts(by_agent)]]
    calls += [[(each.name, each.calls) for each in accounts(await portions(log.views, by))] for by in (HOUR, DAY)]
    assert calls == [
        [("ada", 1), ("bob", 1)],
        [("2026-01-11T21", 1), ("2026-01-11T22", 1)],
        [("2026-01-11", 2)],
    ]
    assert accounts(await portions(log.views, "thread_id", at=1))[0].calls == 1


async def test_an_embedding_is_in_the_total_and_is_no_agents_and_of_no_thread(log: SqliteLog) -> None:
    await called(log, EMBEDDED, CALLED)
    by_agent = await portions(log.views, "agent")
    assert (account("", by_agent).calls, [each.name for each in accounts(by_agent)]) == (2, ["ada"])
    assert [each.name for each in accounts(await portions(log.views, "thread_id"))] == ["t"]


async def test_models_stand_in_the_order_of_their_first_calls(log: SqliteLog) -> None:
    await called(log, replace(CALLED, model="z"), replace(CALLED, agent="bob", model="a"), replace(CALLED, model="a"))
    models = [[each.model for each in account("", await portions(log.views, by)).models] for by in ("agent", DAY)]
    assert models == [["z", "a"], ["z", "a"]]


@pytest.mark.parametrize(
    ("cost", "times", "sum_"),
    [
        ("0.000000000001", 3, "0.000000000003"),
        ("999999999.999999999999", 1000, "999999999999.999999999"),
        ("1000000000", 20_000, "20000000000000"),
        ("0.1", 10, "1"),
    ],
)
async def test_the_sum_of_costs_is_exact_however_small_or_large(
    log: SqliteLog, cost: str, times: int, sum_: str
) -> None:
    await called(log, *[replace(CALLED, cost_usd=cost)] * times)
    assert account("", await portions(log.views, "agent", (Where("agent", "=", "ada"),))).cost_usd == sum_
