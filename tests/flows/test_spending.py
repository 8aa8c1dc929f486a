"""Money in a running organism: no number of calls at once, no death and no kill overruns a budget."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from organism.errors import ConfigInvalid
from organism.events.record import Actor
from organism.events.vocabulary import BudgetReserved, BudgetSettled, SessionBudget, SessionSettings
from organism.model.commands import Inject
from organism.testing import Running
from tests.flows.spender import SOURCE, most_used, says, script, scripted, tenants, token
from tests.flows.stage import BEGIN_NS, TurnedTime, folded_again, folded_live, open_gate, play
from tests.flows.talking import begun, said
from tests.flows.world import MakeWorld
from tests.log.engines import turn

ASKED = "Say it." + "." * 33  # 40 characters: 10 tokens, and 4 for the message
NEED = 14 + 100
DAY = 10_000


async def reply_of(o: Running, text: str = ASKED, **more: Any) -> str:
    """What the handler answers."""
    outcome = await o.inject("ada", {"text": text}, wait=True, **more)
    said: str = outcome.replies[0]["text"]
    return said


async def test_sixty_four_calls_at_once_at_ninety_per_cent_of_a_budget_never_overrun_it(world: MakeWorld) -> None:
    agent = {"handler": "think", "model": "m", "max_concurrent": 64, "budget": {"day": {"tokens": DAY}}}
    source = SOURCE.replace("TRACE.append(payload.text)", "TRACE.append(payload.text)\n    await gate(payload.text)")
    made = scripted(
        world,
        says("Dear.", 8900, 100, times=1),
        says("Cheap.", 14, 86),
        source=source,
        listeners={"ada": agent},
        limits={"max_concurrent_handlers": 64},
    )
    async with made.running() as o:
        open_gate(o, "First")
        assert await reply_of(o, "First") == "Dear."
        answers_to_come = asyncio.gather(*(reply_of(o) for _ in range(64)))
        while len(play(o)["TRACE"]) < 65:
            await turn()
        open_gate(o, ASKED)
        answers = await answers_to_come
        records = await o.records(BudgetReserved, BudgetSettled)
        assert await folded_again(o.log) == await folded_live(o)
    most, at_once = most_used(records)
    assert most <= DAY
    assert at_once == (DAY - 9000) // NEED
    refused = [each for each in answers if each.startswith("budget_exhausted: ada today may use 10000 tokens")]
    assert len(refused) + answers.count("Cheap.") == 64
    assert answers.count("Cheap.") == at_once


async def test_what_was_spent_before_a_restart_counts_after_it(world: MakeWorld) -> None:
    agent = {"handler": "think", "model": "m", "budget": {"day": {"calls": 2}}}
    made = scripted(world, says("Here."), listeners={"ada": agent})
    async with made.running() as o:
        assert await reply_of(o) == "Here."
        await o.crash()
    async with made.running() as o:
        assert await reply_of(o) == "Here."
    async with made.running() as o:  # from the snapshot that a stop leaves
        assert (await reply_of(o)).startswith("budget_exhausted: ada today may use 2 calls")


async def test_tenants_have_budgets_of_their_own_and_spend_their_own(world: MakeWorld) -> None:
    made = scripted(world, says("Here.", 14, 86))
    tenants(made, acme={"defaults": {"budget": {"day": {"calls": 1}, "run": {"tokens": 5000}}}}, globex={})
    async with made.running() as o:
        acme, globex = (o.organism.tenants[name] for name in ("acme", "globex"))
        for tenant in (acme, acme, globex, globex):
            done = await tenant.do(Inject(to="ada", json={"text": ASKED}))
            assert await tenant.ended(getattr(done, "thread_id", ""), 10)
        assert acme.pump.state.folded.spend.tenant.spent.calls == 1
        assert globex.pump.state.folded.spend.tenant.spent.calls == 2
        assert o.pump.state.folded.spend.tenant.spent.calls == 0


async def test_the_rights_of_a_chain_are_found_again_after_a_restart(world: MakeWorld) -> None:
    source = """
    from organism import CompleteError

    async def first(payload: Ask, metadata: HandlerMetadata):
        await gate("first")
        return HandlerResponse(Ask(payload.text), to="ada")

    async def think(payload: Ask, metadata: HandlerMetadata):
        try:
            said = await metadata.complete([{"role": "user", "content": payload.text}])
        except CompleteError as error:
            return HandlerResponse(Told(f"{error.code}: {error.message}"), to="console")
        return HandlerResponse(Told(said.text), to="console")
    """
    listeners = {"first": {"peers": ["ada"]}, "ada": {"handler": "think", "model": "m", "peers": ["console"]}}
    made = scripted(world, says("Here."), source=source, listeners=listeners)
    tenants(made, default={"tokens": [token("ann"), token("bob", models=["other"])]})
    async with made.running() as o:
        injections = [
            Inject(to="first", json={"text": "x"}, actor=Actor(principal=who)) for who in ("ann", "bob", "eve")
        ]
        threads = [await o.do(each) for each in injections]
        await o.crash()
    async with made.running() as o:
        open_gate(o, "first")
        said = []
        for thread in threads:
            assert await o.tenant.ended(getattr(thread, "thread_id", ""), 10)
            said.append((await o.replies(getattr(thread, "thread_id", "")))[0]["text"])
    assert said == [
        "Here.",
        "model_not_in_allowlist: The token 'bob', from whose injection this follows, may not use 'm'.",
        "model_not_in_allowlist: This follows from an injection by the token 'eve', which is not valid any more.",
    ]


async def test_a_reload_changes_all_models_or_none(world: MakeWorld) -> None:
    made = scripted(world, says("Before."))
    async with made.running() as o:
        assert await reply_of(o) == "Before."
        script(made, says("After."))
        made.top["models"]["bad"] = {"provider": "scripted", "script": "bad.yaml"}
        made.write(SOURCE)
        (made.folder / "bad.yaml").write_text("answers: 7")
        with pytest.raises(ConfigInvalid):
            await o.organism.reload()
        assert await reply_of(o) == "Before."
        script(made, says("Bad."), name="bad.yaml")
        await o.organism.reload()
        assert await reply_of(o) == "After."
        del made.top["models"]["m"]
        made.write(SOURCE, {"ada": {"handler": "think", "model": "bad"}})
        await o.organism.reload()
        assert await reply_of(o) == "Bad."


async def test_a_chain_ends_with_its_token_by_the_logs_time(world: MakeWorld) -> None:
    source = """
    from organism import CompleteError

    async def think(payload: Ask, metadata: HandlerMetadata):
        try:
            said = await metadata.complete([{"role": "user", "content": payload.text}])
        except CompleteError as error:
            return HandlerResponse(Told(error.message), to="console")
        return HandlerResponse(Told(said.text), to="console")
    """
    listeners = {"ada": {"handler": "think", "model": "m", "peers": ["console"]}}
    made = scripted(world, says("Here."), source=source, listeners=listeners)
    end = datetime.fromtimestamp(BEGIN_NS / 1e9 + 100, UTC)
    tenants(made, default={"tokens": [{**token("ann"), "expires": end.isoformat()}]})
    time = TurnedTime()
    async with made.running(on_disk=False, parts=time.parts()) as o:
        time.wall_ns -= 10**15  # as a clock that is set right does
        time.monotonic_ns += 101 * 10**9
        injected = await o.do(Inject(to="ada", json={"text": "x"}, actor=Actor(principal="ann")))
        assert await o.tenant.ended(getattr(injected, "thread_id", ""), 10)
        [said] = await o.replies(getattr(injected, "thread_id", ""))
    assert "not valid any more" in said["text"]


async def test_a_session_has_a_budget_of_a_turn_and_of_a_day_which_outlives_a_restart(world: MakeWorld) -> None:
    made = scripted(world, says("Here."), listeners={"ada": {"handler": "think", "model": "m"}})
    budgets: list[SessionBudget] = [{"day": {"calls": 2, "usd": "9"}}, {"run": {"tokens": 20}}]
    async with made.running() as o:
        day, run = [await begun(o, agent="ada", settings=SessionSettings(budget=budget)) for budget in budgets]
        free = await begun(o, agent="ada")
        answers = {session: [await answered(o, session)] for session in (day, run, free)}
        await o.crash()
    async with made.running() as o:
        for _ in range(2):
            for session, heard in answers.items():
                heard.append(await answered(o, session))
        assert await folded_again(o.log) == await folded_live(o)
    assert [each.partition("(")[0] for each in answers[day]] == [
        "Here.",
        "Here.",
        "budget_exhausted: The session today may use 2 calls ",
    ]
    assert {each.partition("(")[0] for each in answers[run]} == {"budget_exhausted: This turn may use 20 tokens "}
    assert answers[free] == ["Here."] * 3


async def answered(o: Running, session: str) -> str:
    """What the handler answers in a session."""
    turn = await said(o, session, ASKED, agent="ada")
    (reply,) = await o.replies(turn["id"])
    text: str = reply["text"]
    return text
