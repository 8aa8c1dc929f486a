"""What a call may spend is decided before it is made: budgets hold, whatever runs at once or dies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from organism.config.settings import Budget, Spend
from organism.events.record import Record
from organism.events.vocabulary import BudgetReserved, BudgetSettled, Event, ModelCalled
from organism.model.completion import CompleteError
from organism.pump.recover import dump, load
from organism.pump.rules import Rules
from organism.pump.spending import DAY_US, Account, Amount
from organism.pump.state import FoldedState
from tests.pump.purse import PRICE, Purse, most, rules_of

DAY = {"tokens": 3000, "usd": 0.003, "calls": 12, "seconds": 100}
RUN = {"tokens": 1500, "usd": 0.002, "calls": 5, "seconds": 45}
TENANT = Budget(run=most(tokens=1400), day=most(tokens=4000, usd=Decimal("0.004"), calls=15, seconds=120))
THREAD = 2000
AGENTS = ("ada", "bob")


@pytest.fixture(scope="module")
def rules() -> Iterator[Rules]:
    """Two agents with budgets for a run and a day, in threads that are bounded too."""
    with TemporaryDirectory() as folder:
        budget = {"budget": {"run": RUN, "day": DAY}}
        yield rules_of(Path(folder), dict.fromkeys(AGENTS, budget), limits={"max_tokens_per_thread": THREAD})


@pytest.fixture
def free(tmp_path: Path) -> Callable[..., Purse]:
    """Makes a purse with one agent, whose budget and thread's bound a test says."""

    def make(budget: dict[str, Any] | None = None, thread: int = 1_000_000, tenant: Budget | None = None) -> Purse:
        keys = {"budget": budget} if budget else {}
        return Purse(rules_of(tmp_path, {"ada": keys}, limits={"max_tokens_per_thread": thread}), tenant)

    return make


def refused(purse: Purse, *call: Any, **need: Any) -> str:
    """Why the call is not made."""
    before = purse.state.folded.spend.tenant
    with pytest.raises(CompleteError) as error:
        purse.reserve(purse.call(*call), **need)
    assert error.value.code == "budget_exhausted"
    assert purse.state.folded.spend.tenant == before
    return error.value.message


def test_what_is_reserved_is_gone_until_it_is_settled(free: Callable[..., Purse]) -> None:
    purse = free({"run": {"tokens": 300}})
    message = purse.begun("t", "ada")
    first = purse.call(message, 1)
    purse.reserve(first)
    said = refused(purse, message, 2)
    assert said == (
        "This run may use 300 tokens (`budget.run` of ada); "
        "200 is spent or held for calls under way, and this one may need 200 more."
    )
    purse.settle(first, 50, 40)
    purse.reserve(purse.call(message, 2))
    assert purse.state.folded.spend.run(message.id) == Account(
        Amount(90, Decimal("0.000085"), 1, 0), Amount(200, Decimal("0.0002"), 1, 10_000_000)
    )


@pytest.mark.parametrize(
    ("bound", "part"),
    [
        ({"tokens": 399}, "399 tokens"),
        ({"usd": 0.000399}, "0.000399 USD"),
        ({"calls": 1}, "1 calls"),
        ({"seconds": 10}, "10 s of calls"),
    ],
)
@pytest.mark.parametrize("span", ["run", "day"])
def test_each_dimension_of_an_agent_s_budget_holds(
    free: Callable[..., Purse], bound: dict[str, Any], part: str, span: str
) -> None:
    purse = free({span: bound})
    message = purse.begun("t", "ada")
    purse.reserve(purse.call(message, 1))
    assert part in refused(purse, message, 2)
    assert f"`budget.{span}` of ada" in refused(purse, message, 2)


def test_a_run_has_a_budget_of_its_own_and_a_day_has_one_for_all(free: Callable[..., Purse]) -> None:
    purse = free({"run": {"calls": 1}, "day": {"calls": 2}})
    one, other, third = (purse.begun(name, "ada") for name in ("t", "u", "v"))
    purse.reserve(purse.call(one, 1))
    assert "budget.run" in refused(purse, one, 2)
    purse.reserve(purse.call(other, 1))
    assert refused(purse, third, 1).startswith("ada today may use 2 calls")


def test_a_thread_has_its_bound_over_all_its_agents_and_lives(free: Callable[..., Purse]) -> None:
    purse = free(thread=500)
    message = purse.begun("t", "ada")
    call = purse.call(message, 1)
    purse.reserve(call)
    purse.settle(call, 150, 150)
    purse.end(message)
    assert "t" not in purse.state.folded.threads
    again = purse.begun("t", "ada")
    assert "`limits.max_tokens_per_thread`" in refused(purse, again, 1, input_tokens=101)
    purse.reserve(purse.call(again, 1))
    other = purse.begun("u", "ada")
    purse.reserve(purse.call(other, 1), input_tokens=300)


def test_a_thread_that_was_forgotten_comes_back_with_what_it_has_used(free: Callable[..., Purse]) -> None:
    purse = free(thread=500)
    for number in range(200):
        message = purse.begun(f"t{number}", "ada")
        call = purse.call(message, 1)
        purse.reserve(call)
        purse.settle(call, 150, 150)
        purse.end(message)
    assert "t0" not in purse.state.folded.spend.threads
    assert "300 is spent" in refused(purse, purse.begun("t0", "ada"), 1, input_tokens=101)


def test_a_tenant_s_budgets_bound_every_agent_of_it(free: Callable[..., Purse]) -> None:
    purse = free(tenant=Budget(run=most(calls=1), day=most(usd=Decimal("0.0003"))))
    message = purse.begun("t", "ada")
    purse.reserve(purse.call(message, 1))
    assert "`budget.run` of the tenant" in refused(purse, message, 2)
    assert "The tenant today may use 0.0003 USD" in refused(purse, purse.begun("u", "ada"), 1)


def test_a_day_ends_at_midnight_of_utc_but_what_is_held_stays_held(free: Callable[..., Purse]) -> None:
    purse = free({"day": {"tokens": 400}})
    purse.at = (purse.at // DAY_US + 1) * DAY_US - 1
    message = purse.begun("t", "ada")
    first, second = purse.call(message, 1), purse.call(message, 2)
    purse.reserve(first)
    purse.settle(first, 100, 100)
    purse.reserve(second)
    refused(purse, message, 3)
    purse.at += 1
    refused(purse, message, 3, input_tokens=150)
    purse.reserve(purse.call(message, 3))
    purse.settle(second, 60, 60)
    assert purse.state.folded.spend.agent_on("ada", purse.at).used.tokens == 320
    assert purse.state.folded.spend.agent_on("ada", purse.at + DAY_US).used.tokens == 200


def test_an_answer_without_a_length_gets_what_is_left(free: Callable[..., Purse]) -> None:
    purse = free({"run": {"tokens": 400, "seconds": 8}, "day": {"usd": 0.0002}})
    message = purse.begun("t", "ada")
    need = purse.reserve(purse.call(message, 1), output_tokens=8000, is_asked=False)
    assert (need.output_tokens, need.seconds) == (100, 8)  # 0.0002 USD less the prompt's 0.00005
    assert "needs" not in refused(purse, message, 2, is_asked=False)


def test_an_answer_that_would_be_cut_to_nothing_is_not_begun(free: Callable[..., Purse]) -> None:
    purse = free({"run": {"tokens": 115}})
    message = purse.begun("t", "ada")
    assert "may need 116 more" in refused(purse, message, 1, output_tokens=8000, is_asked=False)
    assert purse.reserve(purse.call(message, 1), output_tokens=3, is_asked=False).output_tokens == 3


def test_what_costs_nothing_needs_no_money(free: Callable[..., Purse]) -> None:
    purse = free({"run": {"usd": 0}})
    message = purse.begun("t", "ada")
    refused(purse, message, 1)
    purse.reserve(purse.call(message, 1), price=type(PRICE)())


@pytest.mark.parametrize("bound", [{"tokens": 0}, {"calls": 0}, {"seconds": 0}])
def test_a_budget_of_nothing_forbids_all_calls(free: Callable[..., Purse], bound: dict[str, Any]) -> None:
    purse = free({"run": bound})
    refused(purse, purse.begun("t", "ada"), 1, is_asked=False)


def test_a_call_that_used_more_than_it_was_reserved_is_spent_as_it_was(free: Callable[..., Purse]) -> None:
    purse = free({"run": {"tokens": 400}})
    message = purse.begun("t", "ada")
    call = purse.call(message, 1)
    purse.reserve(call)
    purse.settle(call, 300, 150)
    assert "450 is spent" in refused(purse, message, 2, is_asked=False)


def test_a_lost_call_is_spent_to_the_full_and_reported_as_lost(free: Callable[..., Purse]) -> None:
    purse = free()
    message = purse.begun("t", "ada")
    purse.reserve(purse.call(message, 4))
    called, settled = purse.lose(message, 4).records
    assert isinstance(called.event, ModelCalled)
    assert called.event.error is not None
    assert called.event.error.code == "lost"
    assert (called.event.input_tokens, called.event.output_tokens, called.event.cost_usd) == (100, 100, "0.0002")
    assert settled.thread == "t"
    assert settled.event == BudgetSettled(message.id, "ada", 4, tokens=200, cost_usd="0.0002", duration=10_000_000)
    assert purse.lose(message, 4).records == []
    assert purse.settle(purse.call(message, 4), 1, 1).records == []


def test_a_call_made_again_after_a_death_spends_its_first_reservation(free: Callable[..., Purse]) -> None:
    purse = free({"run": {"calls": 2}})
    message = purse.begun("t", "ada")
    call = purse.call(message, 1)
    purse.reserve(call)
    purse.restart(load(dump(purse.state.folded)))
    message = purse.state.folded.messages[message.id]
    purse.reserve(purse.call(message, 1))
    assert [type(record.event) for record in purse.records[-3:]] == [ModelCalled, BudgetSettled, BudgetReserved]
    assert "2 calls" in refused(purse, message, 2)


def test_who_has_ended_is_forgotten_and_who_has_not_is_kept(free: Callable[..., Purse]) -> None:
    purse = free()
    held = purse.begun("held", "ada")
    purse.reserve(purse.call(held, 1))
    for number in range(500):
        message = purse.begun(f"t{number}", "ada")
        call = purse.call(message, 1)
        purse.reserve(call)
        purse.settle(call, 1, 1)
        purse.end(message)
    spend = purse.state.folded.spend
    assert len(spend.runs) + len(spend.threads) <= spend.room == 256
    assert spend.run(held.id).reserved.tokens == 200
    assert spend.tenant.spent.calls == 500


MOVES = st.lists(
    st.tuples(
        st.sampled_from(["reserve"] * 4 + ["settle"] * 3 + ["lose", "end", "midnight", "snapshot", "fold"]),
        st.integers(0, 5),
        st.integers(1, 900),
        st.integers(0, 900),
        st.sampled_from([True, False]),
    ),
    max_size=60,
)


@given(MOVES)
def test_whatever_happens_no_budget_is_overrun_and_a_restart_knows_what_was_spent(
    rules: Rules, moves: list[tuple[str, int, int, int, bool]]
) -> None:
    play = Play(Purse(rules, TENANT))
    for move, *numbers in moves:
        getattr(play, move)(*numbers)
        play.check()


class Play:
    """Six handlings of two agents in three threads, whose calls are reserved, settled, lost."""

    def __init__(self, purse: Purse) -> None:
        self.purse = purse
        self.seats = [self._begun(seat) for seat in range(6)]
        self.steps = 0

    def _begun(self, seat: int) -> str:
        return self.purse.begun(f"thread-{seat // 2}", AGENTS[seat % 2]).id

    def _held(self, seat: int) -> list[int]:
        return [each.event.step for each in self.purse.state.folded.spend.open.get(self.seats[seat], ())]

    def reserve(self, seat: int, prompt: int, answer: int, is_asked: Any) -> None:
        self.steps += 1
        call = self.purse.call(self.purse.state.folded.messages[self.seats[seat]], self.steps)
        with suppress(CompleteError):
            self.purse.reserve(call, input_tokens=prompt, output_tokens=answer, is_asked=is_asked)

    def settle(self, seat: int, prompt: int, answer: int, *_: object) -> None:
        for step in self._held(seat)[:1]:
            message = self.purse.state.folded.messages[self.seats[seat]]
            held = self.purse.state.folded.spend.reservation(message.id, step)
            assert held is not None
            used = min(prompt, held.event.input_tokens), min(answer, held.event.output_tokens)
            self.purse.settle(self.purse.call(message, step), *used, us=prompt * 1000)

    def lose(self, seat: int, *_: object) -> None:
        for step in self._held(seat)[:1]:
            self.purse.lose(self.purse.state.folded.messages[self.seats[seat]], step)

    def end(self, seat: int, *_: object) -> None:
        self.purse.end(self.purse.state.folded.messages[self.seats[seat]])
        self.seats[seat] = self._begun(seat)

    def midnight(self, *_: object) -> None:
        self.purse.at += DAY_US

    def snapshot(self, *_: object) -> None:
        kept = dump(self.purse.state.folded)
        self.purse.restart(load(kept))
        assert dump(self.purse.state.folded) == kept

    def fold(self, *_: object) -> None:
        folded = FoldedState()
        for record in self.purse.records:
            folded.apply(record)
        assert spending(folded) == spending(self.purse.state.folded)
        self.purse.restart(folded)

    def check(self) -> None:
        """Recount every account from the events alone, and hold it against its budget."""
        day, run = budget_of(DAY), budget_of(RUN)
        bounds = {"run": [run, TENANT.run], "thread": [most(tokens=THREAD)], "agent": [day], "tenant": [TENANT.day]}
        for (kind, *_), used in recounted(self.purse.records).items():
            for bound in bounds[kind]:
                assert bound.tokens is None or used.tokens <= bound.tokens
                assert bound.usd is None or used.usd <= bound.usd
                assert bound.calls is None or used.calls <= bound.calls
                assert bound.seconds is None or used.duration <= bound.seconds * 1_000_000


def budget_of(said: dict[str, Any]) -> Spend:
    """A budget as the configuration gives it."""
    return Spend(**{**said, "usd": Decimal(repr(said["usd"]))})


def spending(folded: FoldedState) -> Any:
    """What a state knows of spending."""
    return orjson.loads(dump(folded))["state"]["spend"]


def recounted(records: list[Record[Event]]) -> dict[tuple[Any, ...], Amount]:
    """What each run and thread, and each day of an agent and the tenant, has spent; what is held is the last day's."""
    totals: dict[tuple[Any, ...], Amount] = defaultdict(Amount)
    held: dict[tuple[str, int], tuple[BudgetReserved, str | None]] = {}
    today = max((record.at // DAY_US for record in records), default=0)
    for record in records:
        event = record.event
        if isinstance(event, BudgetReserved):
            held[event.message, event.step] = event, record.thread
        elif isinstance(event, BudgetSettled):
            del held[event.message, event.step]
            count(totals, event, record.thread, record.at // DAY_US)
    for reserved, thread in held.values():
        count(totals, reserved, thread, today)
    return totals


def count(
    totals: dict[tuple[Any, ...], Amount], event: BudgetReserved | BudgetSettled, thread: str | None, day: int
) -> None:
    amount = Amount(event.tokens, Decimal(event.cost_usd), 1, event.duration)
    for key in (("run", event.message), ("thread", thread), ("agent", event.agent, day), ("tenant", day)):
        totals[key] = totals[key].plus(amount)
