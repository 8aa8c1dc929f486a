"""The models of a process: replaced all or nothing, closed when unused; their limits and rates of tokens."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from organism.agents.providers.scripted import Scripted
from organism.agents.registry import MINUTE_US, ModelRegistry
from organism.config.settings import Model
from organism.errors import ConfigInvalid
from organism.model.completion import ModelRequest
from organism.model.rate import TokenBucket
from tests.agents.desk import Listening, model, says
from tests.log.engines import turn

SECOND = 1_000_000
REQUEST = ModelRequest("m", ({"role": "user", "content": "Hi"},))


class Maker:
    """Makes providers, and keeps them."""

    def __init__(self) -> None:
        self.made: list[Listening] = []

    def __call__(self, _name: str, of: Model) -> Listening:
        if of.model == "broken":
            raise ConfigInvalid("That cannot be made.")
        self.made.append(Listening(Scripted([says()])))
        return self.made[-1]


def closed(maker: Maker) -> list[bool]:
    return [provider.is_closed for provider in maker.made]


async def registry(**models: Model) -> tuple[ModelRegistry, Maker]:
    maker = Maker()
    made = ModelRegistry(maker)
    await made.take(made.prepared(models))
    return made, maker


async def test_the_way_of_a_model_is_it_and_its_fallbacks_in_turn_and_each_once() -> None:
    made, _ = await registry(
        a=model(fallback=("b", "c")), b=model(fallback=("d",)), c=model(fallback=("d",)), d=model(), e=model()
    )
    assert [served.name for served in made.chain("a")] == ["a", "b", "d", "c"]
    assert made.chain("nobody") == ()


async def test_what_cannot_be_made_leaves_all_as_it_was() -> None:
    made, maker = await registry(a=model())
    with pytest.raises(ConfigInvalid):
        made.prepared({"a": model(), "b": model(model="broken")})
    assert [served.name for served in made.chain("a")] == ["a"]
    assert not maker.made[0].is_closed


async def test_who_is_replaced_is_closed_once_its_calls_have_ended() -> None:
    made, maker = await registry(a=model(), b=model())
    (old,) = made.chain("a")
    async with old.used() as provider:
        await made.take(made.prepared({"a": model()}))
        assert closed(maker) == [False, True, False]  # the second is b, which nobody used
        assert [part async for part in provider.stream(REQUEST)]
    assert closed(maker) == [True, True, False]
    await made.close()
    assert closed(maker) == [True, True, True]
    assert made.chain("a") == ()


async def test_a_reload_lets_in_who_waits_and_keeps_what_was_taken_of_the_rate() -> None:
    made, _ = await registry(a=model(max_concurrent=1, rate_limit_tpm=600))
    (old,) = made.chain("a")
    old.rate.take(600, 0)
    async with old.used():
        waiting = asyncio.ensure_future(entered(old))
        await turn()
        assert not waiting.done()
        await made.take(made.prepared({"a": model(max_concurrent=2, rate_limit_tpm=1200)}))
        await turn()
        assert waiting.done()
    (new,) = made.chain("a")
    assert new.rate.count == 1200
    assert new.rate.wait_us(1200, 0) == 30_000_000


async def entered(served: Any) -> None:
    async with served.used():
        pass


@pytest.mark.parametrize(("most", "inside"), [(2, [0, 1]), (0, [0, 1, 2, 3])])
async def test_as_many_calls_run_at_once_as_the_model_takes_and_the_rest_come_in_order(
    most: int, inside: list[int]
) -> None:
    made, _ = await registry(a=model(max_concurrent=most))
    (served,) = made.chain("a")
    came: list[int] = []
    gate = asyncio.Event()

    async def call(number: int) -> None:
        async with served.used():
            came.append(number)
            await gate.wait()

    calls = [asyncio.ensure_future(call(number)) for number in range(4)]
    for _ in range(3):
        await turn()
    assert came == inside
    gate.set()
    await asyncio.gather(*calls)
    assert came == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("per_minute", "taken", "waits"),
    [
        (600, [(300, 0), (300, 0), (100, 0), (10, 0)], [0, 0, 10, 11]),
        (600, [(600, 0), (100, 10), (700, 6000), (600, 6000)], [0, 0, 0, 70]),
        (100, [(5000, 0), (100, 0)], [0, 3000]),
        (0, [(10**9, 0), (10**9, 0)], [0, 0]),
    ],
)
def test_a_minute_s_worth_comes_at_once_and_the_rest_waits_its_time(
    per_minute: int, taken: list[tuple[int, int]], waits: list[int]
) -> None:
    rate = TokenBucket(per_minute, MINUTE_US)
    assert [rate.take(tokens, at * SECOND) for tokens, at in taken] == [wait * SECOND for wait in waits]


def test_what_was_not_used_comes_back_and_a_new_rate_keeps_what_was_taken() -> None:
    rate = TokenBucket(600, MINUTE_US)
    rate.take(600, 0)
    rate.give_back(500)
    assert rate.take(500, 0) == 0
    rate.resize(1200)
    assert (rate.take(600, 0), rate.wait_us(40, 0)) == (0, 2 * SECOND)


@given(st.integers(60, 6000), st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 30 * SECOND)), max_size=30))
def test_no_minute_gets_more_than_two_minutes_worth(per_minute: int, calls: list[tuple[int, int]]) -> None:
    rate, now, used = TokenBucket(per_minute, MINUTE_US), 0, []
    for tokens, pause in calls:
        now += pause
        used.append((now + rate.take(min(tokens, per_minute), now), min(tokens, per_minute)))
    for start, _ in used:
        within = sum(tokens for at, tokens in used if start <= at < start + MINUTE_US)
        assert within <= 2 * per_minute + 1
