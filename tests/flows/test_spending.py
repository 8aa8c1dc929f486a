"""Money in a running organism: no number of calls at once, no death and no kill overruns a budget."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from organism.errors import ConfigInvalid
from organism.model.commands import Inject, KillThread
from organism.model.events import Actor
from organism.testing import Running
from tests.agents.turning import turn
from tests.flows.spender import HANGS, SOURCE, most_used, says, script, scripted, tenants, token
from tests.flows.stage import BEGIN_NS, TurnedTime, folded_anew, folded_live, open_gate, play
from tests.flows.world import MakeWorld

ASKED = "Say it." + "." * 33  # 40 characters: 10 tokens, and 4 for the message
NEED = 14 + 100
DAY = 10_000


async def told(o: Running, text: str = ASKED, **more: Any) -> str:
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
        assert await told(o, "First") == "Dear."
        answers_to_come = asyncio.gather(*(told(o) for _ in range(64)))
        while len(play(o)["TRACE"]) < 65:
            await turn()
        open_gate(o, ASKED)
        answers = await answers_to_come
        events = await o.events("budget_reserved", "budget_settled")
        assert await folded_anew(o.log) == await folded_live(o)
    most, at_once = most_used(events)
    assert most <= DAY
    assert at_once == (DAY - 9000) // NEED
    refused = [each for each in answers if each.startswith("budget_exhausted: ada today may use 10000 tokens")]
    assert len(refused) + answers.count("Cheap.") == 64
    assert answers.count("Cheap.") == at_once


async def test_a_call_found_begun_after_a_death_is_made_again_and_its_first_reservation_is_spent(
    world: MakeWorld,
) -> None:
    made = scripted(world, HANGS)
    async with made.running() as o:
        injected = await o.inject("ada", {"text": ASKED})
        await o.until("budget_reserved")
        await o.crash()
    script(made, says("Here.", 14, 6))
    async with made.running() as o:
        assert await o.tenant.ended(injected.thread_id, 10)
        replies = await o.replies(injected.thread_id)
        events = await o.events("budget_reserved", "model_called", "budget_settled")
        assert await folded_anew(o.log) == await folded_live(o)
        assert o.pump.state.routing.spend.tenant.spent.tokens == NEED + 20
    assert replies == ({"text": "Here."},)
    kinds = [(event.type, event.data.get("error", {}).get("code")) for event in events]
    assert kinds == [
        ("budget_reserved", None),
        ("model_called", "lost"),
        ("budget_settled", None),
        ("budget_reserved", None),
        ("model_called", None),
        ("budget_settled", None),
    ]
    assert [event.data["tokens"] for event in events if event.type == "budget_settled"] == [NEED, 20]


async def test_what_was_spent_before_a_restart_counts_after_it(world: MakeWorld) -> None:
    agent = {"handler": "think", "model": "m", "budget": {"day": {"calls": 2}}}
    made = scripted(world, says("Here."), listeners={"ada": agent})
    async with made.running() as o:
        assert await told(o) == "Here."
        await o.crash()
    async with made.running() as o:
        assert await told(o) == "Here."
    async with made.running() as o:  # from the snapshot that a stop leaves
        assert (await told(o)).startswith("budget_exhausted: ada today may use 2 calls")


async def test_a_kill_settles_what_is_reserved_as_spent(world: MakeWorld) -> None:
    async with scripted(world, HANGS).running() as o:
        injected = await o.inject("ada", {"text": ASKED})
        await o.until("budget_reserved")
        await o.do(KillThread(thread_id=injected.thread_id))
        events = await o.events(thread=injected.thread_id)
        assert await folded_anew(o.log) == await folded_live(o)
    kinds = [event.type for event in events]
    assert kinds[-1] == "thread_killed"
    assert kinds.count("budget_settled") == 1
    settled = next(event for event in events if event.type == "budget_settled")
    assert settled.data["tokens"] == NEED


async def test_a_thread_that_ended_comes_back_with_what_it_has_used(world: MakeWorld) -> None:
    async with scripted(world, says("Here.", 14, 86), limits={"max_tokens_per_thread": 250}).running() as o:
        first = await o.inject("ada", {"text": ASKED}, wait=True)
        again = await o.inject("ada", {"text": ASKED}, thread_id=first.thread_id, wait=True)
        reopened = (await o.events("thread_reopened"))[0]
        last = await o.inject("ada", {"text": ASKED}, thread_id=first.thread_id, wait=True)
    assert again.replies[-1]["text"] == "Here."
    assert reopened.data["tokens"] == 100
    assert last.replies[-1]["text"].startswith("budget_exhausted: This thread may use 250 tokens")


async def test_tenants_have_budgets_of_their_own_and_spend_their_own(world: MakeWorld) -> None:
    made = scripted(world, says("Here.", 14, 86))
    tenants(made, acme={"defaults": {"budget": {"day": {"calls": 1}, "run": {"tokens": 5000}}}}, globex={})
    async with made.running() as o:
        acme, globex = (o.organism.tenants[name] for name in ("acme", "globex"))
        for tenant in (acme, acme, globex, globex):
            done = await tenant.do(Inject(to="ada", json={"text": ASKED}))
            assert await tenant.ended(getattr(done, "thread_id", ""), 10)
        assert acme.pump.state.routing.spend.tenant.spent.calls == 1
        assert globex.pump.state.routing.spend.tenant.spent.calls == 2
        assert o.pump.state.routing.spend.tenant.spent.calls == 0


async def test_a_tenant_s_faulty_budget_is_told_with_its_line(world: MakeWorld) -> None:
    made = scripted(world, says("Here."))
    tenants(made, acme={"defaults": {"budget": {"day": {"call": 1}}}})
    with pytest.raises(ConfigInvalid) as caught:
        async with made.running():
            pass
    assert [fault.message for fault in caught.value.details] == ["unknown key `call`; did you mean `calls`?"]


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
        assert await told(o) == "Before."
        script(made, says("After."))
        made.top["models"]["bad"] = {"provider": "scripted", "script": "bad.yaml"}
        made.write(SOURCE)
        (made.folder / "bad.yaml").write_text("answers: 7")
        with pytest.raises(ConfigInvalid):
            await o.organism.reload()
        assert await told(o) == "Before."
        script(made, says("Bad."), name="bad.yaml")
        await o.organism.reload()
        assert await told(o) == "After."
        del made.top["models"]["m"]
        made.write(SOURCE, {"ada": {"handler": "think", "model": "bad"}})
        await o.organism.reload()
        assert await told(o) == "Bad."


async def test_a_handler_never_hears_of_attempts_that_a_later_one_makes_good(world: MakeWorld) -> None:
    async with scripted(world, {"fault": "unavailable", "times": 2}, says("Third.")).running() as o:
        assert await told(o) == "Third."
        (called,) = await o.events("model_called")
    assert called.data["attempts"] == 3


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
