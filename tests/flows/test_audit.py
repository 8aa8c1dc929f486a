"""The audit files: a line for each model call, tool call and act, once, whatever dies; no prompts and no secrets."""

from __future__ import annotations

import asyncio
from itertools import repeat
from typing import Any

import orjson
import pytest

from organism.bootstrap import Parts
from organism.cli.log import audit as rebuild
from organism.cli.options import Offline
from organism.events.record import Actor
from organism.events.vocabulary import ThreadCompleted
from organism.model.commands import (
    ChangeTenantConfig,
    Inject,
    Injected,
    KillThread,
    PauseAgent,
    ReplayDeadLetter,
    ResumeAgent,
)
from organism.testing import Running
from tests.flows.spender import tenants
from tests.flows.world import MakeWorld, World

ANN = Actor("default", "ann", "req-1", "operator")


def made_of(world: MakeWorld, **top: Any) -> World:
    """An agent that calls a tool, then answers."""
    listeners = {"ada": {"handler": None, "agent": True, "model": "m", "prompt": "Be brief.", "tools": ["calculator"]}}
    return world("", listeners, models={"m": {"provider": "offline"}}, **top)


def files(made: World) -> dict[str, bytes]:
    """What each file holds."""
    return {path.name: path.read_bytes() for path in sorted((made.data / "audit").glob("*"))}


def lines(made: World) -> list[dict[str, Any]]:
    """All lines, the oldest first."""
    return [orjson.loads(line) for text in files(made).values() for line in text.splitlines()]


async def asked(o: Running, text: str = "What is 6*7?", actor: Actor = ANN, **more: Any) -> str:
    """One turn, to its end; gives its thread."""
    done = await o.do(Inject(to="ada", json={"message": text}, actor=actor, **more))
    assert isinstance(done, Injected)
    await o.until(ThreadCompleted, done.thread_id)
    return done.thread_id


async def test_each_call_of_a_model_of_a_tool_and_of_a_token_has_its_line(world: MakeWorld) -> None:
    made = made_of(world)
    async with made.running() as o:
        thread = await asked(o, caller_request="req-outer")
        await o.do(PauseAgent(agent="ada", actor=ANN))
    found = lines(made)
    assert [(line["event"], line["fields"].get("action") or line["fields"].get("tool")) for line in found] == [
        ("call", "message_sent"), ("model_call", None), ("tool_call", "calculator"), ("model_call", None),
        ("call", "agent_paused"),
    ]  # fmt: skip
    assert {line["tenant"] for line in found} == {"default"}
    assert found[0]["fields"]["parent_request_id"] == "req-outer"
    assert found[0]["fields"]["request_id"] == "req-1"
    for line in found[1:4]:
        fields = line["fields"]
        assert (fields["parent_request_id"], fields["thread_id"], fields["user"], fields["principal"]) == (
            "req-1", thread, "ann", "operator",
        )  # fmt: skip
    assert {path.stat().st_mode & 0o777 for path in (made.data / "audit").glob("*")} == {0o600}
    assert (made.data / "audit").stat().st_mode & 0o777 == 0o700


async def test_after_a_restart_it_goes_on_with_no_line_missing_or_twice(world: MakeWorld) -> None:
    made = made_of(world)
    for number in range(4):
        async with made.running() as o:
            await asked(o, actor=Actor("default", None, f"req-{number}", "operator"))
            if number % 2:
                await o.crash()
    async with made.running():
        pass
    assert_whole(made, turns=4)


def assert_whole(made: World, turns: int) -> None:
    positions = [line["position"] for line in lines(made)]
    assert positions == sorted(set(positions))
    assert [line["event"] for line in lines(made)] == ["call", "model_call", "tool_call", "model_call"] * turns


async def test_whatever_part_of_the_file_a_crash_has_left_the_rest_is_written_again(world: MakeWorld) -> None:
    made = made_of(world)
    async with made.running() as o:
        await asked(o)
        await o.do(KillThread(thread_id=await asked(o), actor=ANN))
    [path] = (made.data / "audit").glob("*")
    whole = path.read_bytes()
    cuts = [0, *(whole.replace(b"\n", b"\0", number).find(b"\n") + 1 for number in range(whole.count(b"\n")))]
    for cut in (*cuts, *(cut + 7 for cut in cuts), len(whole) - 1):
        path.write_bytes(whole[:cut])
        async with made.running():
            pass
        assert path.read_bytes() == whole, cut


async def test_a_call_that_does_several_things_has_one_line_also_after_a_crash_behind_it(world: MakeWorld) -> None:
    source = "async def broken(payload: Ask, metadata: HandlerMetadata):\n    raise ValueError(payload.text)"
    made = world(source, {"broken": {"handler": "broken"}}, retry={"attempts": 1})
    async with made.running() as o:
        failed = await o.inject("broken", {"text": "no"}, wait=True)
        await o.do(ReplayDeadLetter(message_id=failed.message_id, actor=ANN))
        await o.tenant.ended(failed.thread_id, 10)
    [path] = (made.data / "audit").glob("*")
    once = path.read_bytes()
    async with made.running():
        pass
    assert path.read_bytes() == once
    [line] = [orjson.loads(line) for line in once.splitlines()]
    assert (line["fields"]["action"], line["fields"]["dead_letter"]) == ("message_replayed", failed.message_id)


async def test_what_a_tenant_has_said_of_prompts_still_holds_after_a_restart(world: MakeWorld) -> None:
    made = made_of(world)
    async with made.running() as o:
        await o.do(ChangeTenantConfig(changes={"audit_prompts": True}, actor=ANN))
        await asked(o)
    async with made.running() as o:
        await asked(o)
    assert sum("prompt" in line["fields"] for line in lines(made)) == 8


async def test_it_can_be_made_again_from_the_log_byte_for_byte(world: MakeWorld) -> None:
    made = made_of(world)
    async with made.running() as o:
        await asked(o)
        await o.do(ChangeTenantConfig(changes={"audit_prompts": True}, actor=ANN))
        await asked(o)
        await o.do(ChangeTenantConfig(changes={"audit_prompts": None}, actor=ANN))
        await asked(o)
    before = files(made)
    for path in (made.data / "audit").glob("*"):
        path.write_text("{}\n")
    await asyncio.to_thread(rebuild, Offline(data=made.data, config=made.config))
    assert files(made) == before


@pytest.mark.parametrize("where", ["nowhere", "yaml", "db"])
async def test_a_prompts_text_stands_in_it_only_where_the_tenant_says_so(world: MakeWorld, where: str) -> None:
    made = made_of(world)
    tenants(made, default={"defaults": {"audit_prompts": where == "yaml"}})
    async with made.running() as o:
        if where == "db":
            await o.do(ChangeTenantConfig(changes={"audit_prompts": True}, actor=ANN))
        await asked(o, "A secret garden: what is 6*7?")
    texts = b"".join(files(made).values())
    assert (b"garden" in texts) is (where != "nowhere")
    prompts = [line["fields"]["prompt"] for line in lines(made) if "prompt" in line["fields"]]
    asked_for = {"message": "A secret garden: what is 6*7?", "history": []}
    assert prompts == ([] if where == "nowhere" else [asked_for] * 2)  # of the injection, and of the model's call


@pytest.mark.parametrize("moves_a_cursor", ["\u2028", "\x7f"])
async def test_no_secret_and_no_line_of_a_clients_own_gets_into_it(world: MakeWorld, moves_a_cursor: str) -> None:
    made = made_of(world)
    tenants(made, default={"defaults": {"audit_prompts": True}})
    forged = '\n{"tenant":"default","log":"x","position":99999,"event":"call"}\n' + moves_a_cursor
    key = "sk-" + "a" * 40
    async with made.running() as o:
        await asked(o, f"{key} {forged} what is 6*7?", Actor("default", None, key, "operator"))
    texts = b"".join(files(made).values())
    assert key.encode() not in texts
    assert texts.replace(b"\n", b"").decode("ascii").isprintable()
    assert_whole(made, 1)


async def test_each_tenants_lines_name_it_and_go_on_for_themselves(world: MakeWorld) -> None:
    made = made_of(world)
    tenants(made, acme={})
    for _ in range(2):
        async with made.running() as o:
            await asked(o)
            await o.organism.tenants["acme"].do(PauseAgent(agent="ada", actor=ANN))
            await o.organism.tenants["acme"].do(ResumeAgent(agent="ada", actor=ANN))
    found = [(line["tenant"], line["event"]) for line in lines(made)]
    assert found.count(("acme", "call")) == 4
    assert sum(tenant == "default" for tenant, _ in found) == 8


async def test_a_day_has_its_own_file(world: MakeWorld) -> None:
    made = made_of(world)
    for day in range(3):
        noon = repeat(1_768_176_000_000_000_000 + day * 86_400 * 10**9)
        async with made.running(parts=Parts(wall_ns=noon.__next__)) as o:
            await asked(o)
    assert list(files(made)) == [f"audit.jsonl.2026-01-1{day}" for day in (2, 3, 4)]
    assert_whole(made, 3)


async def test_a_disk_that_takes_nothing_stops_nobody_and_nothing_is_lost(world: MakeWorld) -> None:
    made = made_of(world)
    async with made.running() as o:
        await asked(o)
        while len(lines(made)) < 4:
            await asyncio.to_thread(lines, made)
        [path] = (made.data / "audit").glob("*")
        hidden = path.rename(made.folder / "hidden")
        path.mkdir()
        await asked(o)
        path.rmdir()
        hidden.rename(path)
    async with made.running():
        pass
    assert_whole(made, 2)
