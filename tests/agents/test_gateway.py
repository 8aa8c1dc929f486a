"""The gateway: who may call, within which budget, at what cost."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from organism.agents.providers.messages import prompt_digest
from organism.config.settings import Budget, Price, Spend
from organism.events.vocabulary import ModelCalled, Root, StepError, StepStarted
from organism.model.completion import CompleteError, Finish, TextDelta, ThoughtDelta, Usage
from organism.model.ids import DEFAULT_TENANT
from organism.model.principal import Principal
from organism.pump.decide.decision import Decision
from organism.pump.prompt import json_of
from tests.agents.desk import HELLO, Desk, fails, model, says
from tests.pump.purse import rules_of


def error(caught: pytest.ExceptionInfo[CompleteError]) -> tuple[str, str]:
    return caught.value.code, caught.value.message


# ── what a call is ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_call_is_shown_as_it_comes_and_recorded_with_what_it_cost(desk: Any) -> None:
    d = await desk(says("Hello, Dan. How are you?", thought="A greeting.", tokens=(12, 7)))
    message = d.begun()
    done = await d.complete(message, 3, max_tokens=100, temperature=0.5)
    assert done.parts == [
        ThoughtDelta("A greeting."),
        TextDelta("Hello, Dan. How are "),
        TextDelta("you?"),
        Usage(12, 7),
        Finish("stop"),
    ]
    answer = done.outcome.completion
    assert (answer.model, answer.text, answer.thought) == ("m", "Hello, Dan. How are you?", "A greeting.")
    assert (answer.input_tokens, answer.output_tokens) == (12, 7)
    assert (answer.cost_usd, answer.cost_source) == (Decimal("0.0000165"), "price")
    request = d.providers["m"].requests[0]
    assert done.called == ModelCalled(
        message.id, "ada", 3, model="m", provider="scripted", input_tokens=12, output_tokens=7, cost_usd="0.0000165",
        cost_source="price", attempts=1, duration=0, prompt=prompt_digest(map(json_of, HELLO), request),
    )  # fmt: skip
    assert (request.model, request.messages, request.max_tokens, request.temperature) == ("real", HELLO, 100, 0.5)


async def test_a_listener_s_own_model_is_called_unless_the_call_names_one(tmp_path: Path) -> None:
    rules = rules_of(tmp_path, {"ada": {"model": "own"}, "bob": {}}, models={"own": {"provider": "offline"}})
    d = await Desk(rules, {"own": (model(), [says("own")]), "m": (model(), [says("named")])}).open()
    assert (await d.complete(d.begun(), model=None)).text == "own"
    assert (await d.complete(d.begun(), model="m")).text == "named"
    with pytest.raises(CompleteError) as caught:
        await d.complete(d.begun("bob"), model=None)
    assert error(caught) == (
        "model_not_in_allowlist",
        "bob names no model: give it one, `model: NAME`, in organism.yaml.",
    )


@pytest.mark.parametrize(
    ("price", "billed", "cost", "source"),
    [
        (Price(Decimal(3), Decimal(15)), None, "0.000105", "price"),
        (Price(Decimal(3), Decimal(15)), Decimal("0.02"), "0.02", "upstream"),
        (Price(), Decimal(0), "0", "upstream"),
        (Price(), None, "0", "zero"),
        (Price(Decimal(3), Decimal(15)), Decimal(-1), "0.000105", "price"),
        (Price(Decimal(3), Decimal(15)), Decimal("NaN"), "0.000105", "price"),
        (Price(Decimal(3), Decimal(15)), Decimal("1e30"), "0.000105", "price"),
    ],
)
async def test_a_cost_is_the_provider_s_own_else_the_price_else_nothing(
    desk: Any, price: Price, billed: Decimal | None, cost: str, source: str
) -> None:
    d = await desk(says(cost_usd=billed), of=model(price=price))
    called = (await d.complete(d.begun())).called
    assert (called.cost_usd, called.cost_source) == (cost, source)


async def test_tokens_that_no_provider_counts_are_estimated(desk: Any) -> None:
    d = await desk(says("x" * 40, thought="y" * 8, tokens=None))
    called = (await d.complete(d.begun(), messages=[{"role": "user", "content": "z" * 100}])).called
    assert (called.input_tokens, called.output_tokens) == (29, 12)


async def test_a_count_that_can_be_none_is_not_believed(desk: Any) -> None:
    d = await desk(says(tokens=(-5, 10**30)))
    called = (await d.complete(d.begun())).called
    assert (called.input_tokens, called.output_tokens) == (0, 10**9)


# ── who may ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def holder(name: str, *models: str) -> Principal:
    """Whose token allows these models."""
    return Principal(DEFAULT_TENANT, name, frozenset({"inject"}), models=frozenset(models))


async def test_only_models_of_the_configuration_can_be_called(desk: Any) -> None:
    d = await desk()
    for name in (7, ["m"], "M"):
        with pytest.raises(CompleteError, match="There is no model"):
            await d.complete(d.begun(), model=name)
    with pytest.raises(CompleteError, match="`max_tokens` is a whole number from 1"):
        await d.complete(d.begun(), max_tokens=1.5)
    with pytest.raises(CompleteError) as caught:
        await d.complete(d.begun(), model="gpt-99")
    assert error(caught) == ("model_not_in_allowlist", "There is no model 'gpt-99' under `models` in organism.yaml.")
    assert d.purse.state.folded.spend.open == {}


async def test_what_follows_from_an_injection_may_use_what_its_token_may(desk: Any) -> None:
    models = {"m": (model(), [says()]), "dear": (model(), [says()])}
    d = await desk(models=models, principals={"ann": holder("ann", "m"), "eve": holder("eve")})
    assert (await d.complete(d.begun(root=Root("ann")))).text
    with pytest.raises(CompleteError) as caught:
        await d.complete(d.begun(root=Root("ann")), model="dear")
    assert error(caught) == (
        "model_not_in_allowlist",
        "The token 'ann', from whose injection this follows, may not use 'dear'.",
    )
    with pytest.raises(CompleteError, match="may not use 'm'"):
        await d.complete(d.begun(root=Root("eve")))


async def test_a_token_that_is_narrowed_or_revoked_acts_at_once(desk: Any) -> None:
    everything = Principal(DEFAULT_TENANT, "ann", frozenset({"inject"}))
    d = await desk(principals={"ann": everything})
    message = d.begun(root=Root("ann"))
    assert (await d.complete(message, 1)).text
    d.principals["ann"] = holder("ann", "other")
    with pytest.raises(CompleteError, match="may not use 'm'"):
        await d.complete(message, 2)
    del d.principals["ann"]
    with pytest.raises(CompleteError, match="not valid any more"):
        await d.complete(message, 3)


async def test_a_fallback_that_the_token_may_not_use_is_not_asked(desk: Any) -> None:
    models = {"m": (model(fallback=("dear",)), [fails("unavailable", None)]), "dear": (model(), [says("dear")])}
    d = await desk(models=models, principals={"ann": holder("ann", "m")})
    done = await d.complete(d.begun(root=Root("ann")))
    assert done.outcome.error.code == "upstream_error"
    assert d.providers["dear"].requests == []
    assert (await d.complete(d.begun(), 2)).text == "dear"


@pytest.mark.parametrize(("depth", "is_refused"), [(0, False), (2, False), (3, True), (9, True)])
async def test_the_depth_that_a_caller_names_counts(desk: Any, depth: int, is_refused: bool) -> None:  # noqa: FBT001 - a case
    d = await desk()
    message = d.begun(root=Root(None, depth))
    if not is_refused:
        assert (await d.complete(message)).text
        return
    with pytest.raises(CompleteError) as caught:
        await d.complete(message)
    assert caught.value.code == "recursion_depth_exceeded"
    assert d.purse.state.folded.spend.open == {}


def asked_by(d: Desk, asker: Any, agent: str) -> Any:
    """A handling that another one's ask waits for."""
    number = len(asker.steps or {}) + 50
    decision = Decision.on(d.purse.state, asker.thread, asker)
    decision.add(StepStarted(asker.id, asker.to, number, "ask", ""))
    d.purse.take(decision)
    message = d.begun(agent, asker.thread.id)
    message.ask = asker.steps[number]
    return message


async def test_three_runs_lie_in_each_other_and_no_fourth(desk: Any) -> None:
    d = await desk()
    first = d.begun("ada")
    second = asked_by(d, asked_by(d, first, "tool"), "bob")  # the tool in between has no run of its own
    third = asked_by(d, second, "ada")
    assert (await d.complete(third)).text
    with pytest.raises(CompleteError) as caught:
        await d.complete(asked_by(d, third, "bob"))
    assert error(caught) == (
        "recursion_depth_exceeded",
        "bob would think within 3 runs that wait for it; at most 3 lie in each other.",
    )


async def test_anyone_who_calls_a_model_has_a_run_though_it_is_no_agent(desk: Any) -> None:
    d = await desk()
    message = d.begun("tool")
    for _ in range(3):
        decision = Decision.on(d.purse.state, message.thread, message)
        decision.add(StepStarted(message.id, "tool", 1, "complete", ""))
        d.purse.take(decision)
        message = asked_by(d, message, "tool")
    with pytest.raises(CompleteError) as caught:
        await d.complete(message)
    assert caught.value.code == "recursion_depth_exceeded"


# ── what is left ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_reservation_is_for_the_dearest_model_that_may_answer(desk: Any) -> None:
    cheap, dear = model(fallback=("dear",)), model(price=Price(Decimal(1), Decimal(9)))
    d = await desk(models={"m": (cheap, [says()]), "dear": (dear, [says()])})
    d.reserve(d.begun(), max_tokens=100)
    ((held,),) = d.purse.state.folded.spend.open.values()
    assert (held.event.input_tokens, held.event.output_tokens, held.event.cost_usd) == (6, 100, "0.000906")
    assert held.event.duration == 240_000_000


@pytest.mark.parametrize(
    ("keys", "budget", "reserved", "sent"),
    [
        ({"context_window": 2000}, Spend(), 1994, 1994),
        ({"context_window": 50_000}, Spend(), 24_998, None),
        ({"context_window": 50_000}, Spend(tokens=3000), 2994, 2994),
        ({"context_window": 50_000}, Spend(usd=Decimal("0.003003")), 2000, 2000),
        ({"context_window": 4}, Spend(), 1024, 1024),
    ],
)
async def test_an_answer_of_no_named_length_gets_what_the_context_or_a_budget_leaves(
    desk: Any, keys: dict[str, Any], budget: Spend, reserved: int, sent: int | None
) -> None:
    d = await desk(of=model(**keys), budget=Budget(run=budget))
    call = d.reserve(d.begun())
    held = d.purse.state.folded.spend.reservation(call.message.id, call.step)
    assert held is not None
    assert held.event.output_tokens == reserved
    await d.gateway.call(call, lambda _: None)
    assert d.providers["m"].requests[0].max_tokens == sent


async def test_a_call_has_no_more_seconds_than_its_budget_has_left(desk: Any) -> None:
    d = await desk(fails("hang"), budget=Budget(run=Spend(seconds=7)))
    done = await d.complete(d.begun())
    assert done.outcome.error.code == "upstream_timeout"
    assert d.providers["m"].requests[0].timeout_s == 7
    assert done.called.duration == 7_000_000


async def test_a_model_that_writes_on_where_it_was_told_to_stop_is_cut_off(desk: Any) -> None:
    d = await desk(says("x" * 10_000, tokens=None))
    done = await d.complete(d.begun(), max_tokens=10)
    assert (done.outcome.completion.finish, done.parts[-1]) == ("length", Finish("length"))
    assert len(done.text) <= 10 * 16 + 20


async def test_a_call_that_failed_before_its_answer_began_costs_nothing(desk: Any) -> None:
    d = await desk(fails("rejected"))
    done = await d.complete(d.begun())
    called = done.called
    assert (called.input_tokens, called.output_tokens, called.cost_usd) == (0, 0, "0")
    refused = StepError("upstream_refused", "m: The script says: rejected.", is_final=True)
    assert called.error == done.outcome.error == refused
    assert d.purse.state.folded.spend.tenant.reserved.tokens == 0


async def test_an_answer_that_broke_off_costs_what_had_come_of_it(desk: Any) -> None:
    d = await desk(fails("cut", None, text="x" * 400, after_chars=100))
    called = (await d.complete(d.begun())).called
    assert (called.input_tokens, called.output_tokens, called.attempts) == (6, 25, 3)
