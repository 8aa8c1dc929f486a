"""The models of a process: remade all or nothing, closed when nobody uses them any more."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from organism.agents.providers.scripted import Scripted
from organism.agents.roster import Roster
from organism.config.settings import Model
from organism.errors import ConfigInvalid
from organism.model.completion import ModelRequest
from tests.agents.desk import Listening, model, says
from tests.agents.turning import turn

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


async def roster(**models: Model) -> tuple[Roster, Maker]:
    maker = Maker()
    made = Roster(maker)
    await made.take(made.prepared(models))
    return made, maker


async def test_the_way_of_a_model_is_it_and_its_fallbacks_in_turn_and_each_once() -> None:
    made, _ = await roster(
        a=model(fallback=("b", "c")), b=model(fallback=("d",)), c=model(fallback=("d",)), d=model(), e=model()
    )
    assert [served.name for served in made.way("a")] == ["a", "b", "d", "c"]
    assert made.way("nobody") == ()


async def test_what_cannot_be_made_leaves_all_as_it_was() -> None:
    made, maker = await roster(a=model())
    with pytest.raises(ConfigInvalid):
        made.prepared({"a": model(), "b": model(model="broken")})
    assert [served.name for served in made.way("a")] == ["a"]
    assert not maker.made[0].is_closed


async def test_who_is_replaced_is_closed_once_its_calls_have_ended() -> None:
    made, maker = await roster(a=model(), b=model())
    (old,) = made.way("a")
    async with old.used() as provider:
        await made.take(made.prepared({"a": model()}))
        assert closed(maker) == [False, True, False]  # the second is b, which nobody used
        assert [part async for part in provider.stream(REQUEST)]
    assert closed(maker) == [True, True, False]
    await made.close()
    assert closed(maker) == [True, True, True]
    assert made.way("a") == ()


async def test_a_reload_lets_in_who_waits_and_keeps_what_was_taken_of_the_rate() -> None:
    made, _ = await roster(a=model(max_concurrent=1, rate_limit_tpm=600))
    (old,) = made.way("a")
    old.rate.take(600, 0)
    async with old.used():
        waiting = asyncio.ensure_future(entered(old))
        await turn()
        assert not waiting.done()
        await made.take(made.prepared({"a": model(max_concurrent=2, rate_limit_tpm=1200)}))
        await turn()
        assert waiting.done()
    (new,) = made.way("a")
    assert (new.lanes.count, new.rate.per_minute) == (2, 1200)
    assert new.rate.wait_us(1200, 0) == 30_000_000


async def test_who_is_not_replaced_stays_open_between_its_calls() -> None:
    made, maker = await roster(a=model())
    (served,) = made.way("a")
    for _ in range(2):
        async with served.used() as provider:
            assert [part async for part in provider.stream(REQUEST)]
        assert closed(maker) == [False]
    await made.close()
    assert closed(maker) == [True]


async def test_a_reload_forgets_neither_who_runs_nor_what_was_taken_of_the_rate() -> None:
    made, _ = await roster(a=model(max_concurrent=1, rate_limit_tpm=100))
    (old,) = made.way("a")
    old.rate.take(100, 0)
    async with old.used():
        await made.take(made.prepared({"a": model(max_concurrent=1, rate_limit_tpm=100)}))
        (new,) = made.way("a")
        waiting = asyncio.ensure_future(entered(new))
        await turn()
        assert not waiting.done()
    await waiting
    assert new.rate.wait_us(100, 0) > 0


async def entered(served: Any) -> None:
    async with served.used():
        pass
