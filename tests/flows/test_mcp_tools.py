"""Tools of MCP servers in a running organism: a server in a process of its own, asked by the real client."""

from __future__ import annotations

import asyncio
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

from organism.bootstrap import Parts
from organism.errors import ConfigInvalid, InvalidPayload
from organism.events.record import Record
from organism.events.vocabulary import ApprovalRequested, MessageRetried, MessageSent, OrganismReloaded, StepStarted
from organism.model.commands import HOST_PROGRAM, PauseAgent, ResolveApproval, ResolveIndeterminate, ResumeAgent
from organism.pump.rules import tool_spec
from organism.testing import Running, running
from organism.views.foreign_tools import FOREIGN_TOOLS
from organism.views.views import Query
from tests.flows.thinking import Thinking, agent, call, calls, run_of, says, thinking
from tests.flows.world import MakeWorld, World

SERVER = Path(__file__).parents[1] / "tools" / "mcp" / "server.py"
ROUGH = SERVER.with_name("rough.py")
SOURCE = """
from organism.model.tool import ToolArguments, ToolOutput

async def clerk(payload: Ask, metadata: HandlerMetadata):
    answer = await metadata.ask("play__add", ToolArguments(payload.text))
    return HandlerResponse.respond(Told(answer.text if isinstance(answer, ToolOutput) else answer.message))
"""
LISTENERS: dict[str, dict[str, Any]] = {"clerk": {"tools": ["play__add"]}}


def made(world: MakeWorld, folder: Path, **server: Any) -> World:
    """A world with the server ``play``."""
    command = [sys.executable, "-S", str(SERVER), str(folder / "diary")]
    return world(SOURCE, LISTENERS, tools={"mcp": {"play": {"command": command, **server}}})


def diary(folder: Path) -> list[str]:
    """What the server noted of its calls."""
    return [line for line in (folder / "diary").read_text().splitlines() if not line.startswith("begun")]


async def listed(o: Running) -> dict[str, dict[str, Any]]:
    """The agents of the API, by name."""
    page = await o.views.rows("agents", Query(order_by="ordinal"))
    return {row["name"]: row for row in orjson.loads(page.rows)}


async def test_the_tools_of_a_server_are_listeners_with_their_own_schema_and_it_ends_with_us(
    world: MakeWorld, tmp_path: Path
) -> None:
    async with made(world, tmp_path).running() as o:
        agents = await listed(o)
        assert list(agents) == ["clerk", "play__add", "play__put", "play__write.file", "play__wait"]
        assert agents["play__add"]["payload_class"] == "organism.model.tool.ToolArguments"
        listener = o.organism.settings.listener("play__add")
        assert listener is not None
        assert listener.brings_outside_text
        spec = tool_spec(listener, o.organism.codec)
        assert (spec.name, spec.description) == ("play__add", "Adds two numbers.")
        assert spec.parameters["required"] == ["a", "b"]
    begun, folder, pid = (tmp_path / "diary").read_text().split()
    assert (begun, folder) == ("begun", tmp_path.name)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


async def test_a_call_is_a_message_like_any_other(world: MakeWorld, tmp_path: Path) -> None:
    async with made(world, tmp_path).running() as o:
        done = await o.inject("clerk", {"text": '{"a": 1, "b": 41}'}, wait=True)
        assert done.replies == ({"text": "42"},)
        sent = [record.event.type for record in await o.records(MessageSent, thread=done.thread_id)]
        assert sent == ["Ask", "ToolArguments", "ToolOutput", "Told"]
        answered = await o.inject("play__add", {"json": '{"a": 2, "b": 2}'}, wait=True)
        assert answered.replies == ({"text": "4", "json": '{"result":4}', "truncated": False},)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("{", "The arguments cannot be taken: this is not JSON (line 1, column 2): "),
        ("[1]", "The arguments are a JSON object; list came."),
        ('{"a": "one", "b": 2}', 'The arguments do not fit: /a: expected a whole number, came "one" (text).'),
        ("{}", "The arguments do not fit: /a: is missing; /b: is missing."),
    ],
)
async def test_arguments_are_held_against_the_tool_s_own_schema_before_it_is_called(
    world: MakeWorld, tmp_path: Path, arguments: str, message: str
) -> None:
    async with made(world, tmp_path).running() as o:
        done = await o.inject("play__add", {"json": arguments}, wait=True)
        assert done.replies[0]["code"] == "invalid_field"
        assert done.replies[0]["message"].startswith(message)
        assert diary(tmp_path) == []


async def test_calls_are_unsafe_unless_annotated_and_carry_a_key_that_stays(world: MakeWorld, tmp_path: Path) -> None:
    async with made(world, tmp_path).running() as o:
        kinds, keys = {}, {}
        for tool, arguments in (("add", '{"a":1,"b":1}'), ("put", '{"text":"x"}'), ("write.file", '{"text":"x"}')):
            done = await o.inject(f"play__{tool}", {"json": arguments}, wait=True)
            started = await o.records(StepStarted, thread=done.thread_id)
            kinds[tool] = [record.event.effect for record in started]
            keys[tool] = f"{done.message_id}/call"
        assert kinds == {"add": [], "put": ["idempotent"], "write.file": ["unsafe"]}
        assert diary(tmp_path)[1] == f"put x {keys['put']}"


async def test_a_process_gets_its_own_variables_and_those_that_are_named(
    world: MakeWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_HOST", "the-secret-of-the-host")
    async with made(world, tmp_path, env={"PLAYER": "dan"}).running() as o:
        done = await o.inject("play__write.file", {"json": '{"text":"x"}'}, wait=True)
        assert done.replies[0]["text"] == "wrote x as dan with nothing"
    async with made(world, tmp_path, inherit=["SECRET_OF_HOST"]).running(on_disk=False) as o:
        done = await o.inject("play__write.file", {"json": '{"text":"x"}'}, wait=True)
        assert done.replies[0]["text"].startswith("wrote x as nobody with ")
        assert not done.replies[0]["text"].endswith("nothing")


async def test_what_a_tool_says_of_its_own_failure_is_its_answer(world: MakeWorld, tmp_path: Path) -> None:
    async with made(world, tmp_path).running() as o:
        done = await o.inject("play__write.file", {"json": '{"text":"raise"}'}, wait=True)
        assert done.replies[0]["code"] == "upstream_error"
        assert done.replies[0]["message"].startswith("Error executing tool write.file")
        assert done.thread is not None
        assert done.thread["status"] == "completed"


async def test_a_call_in_which_the_server_was_lost_waits_for_a_person_and_is_not_repeated(
    world: MakeWorld, tmp_path: Path
) -> None:
    async with made(world, tmp_path).running() as o:
        sent = await o.inject("play__write.file", {"json": '{"text":"die"}'})
        await o.until(MessageRetried)
        page = await o.views.rows("indeterminate", Query(order_by="position"))
        (waiting,) = orjson.loads(page.rows)
        assert (waiting["agent"], waiting["key"]) == ("play__write.file", "call")
        result = {"text": "it was written", "json": "", "truncated": False}
        await o.do(ResolveIndeterminate(id=waiting["id"], outcome="done", result=result))
        assert await o.tenant.ended(sent.thread_id, 10)
        assert await o.replies(sent.thread_id) == (result,)
        assert diary(tmp_path) == ["write die"]


async def test_what_a_person_says_has_failed_is_reported_to_the_caller(world: MakeWorld, tmp_path: Path) -> None:
    async with made(world, tmp_path).running() as o:
        sent = await o.inject("play__write.file", {"json": '{"text":"die"}'})
        await o.until(MessageRetried)
        await o.do(ResolveIndeterminate(id=f"{sent.message_id}:1", outcome="fail"))
        assert await o.tenant.ended(sent.thread_id, 10)
        assert (await o.replies(sent.thread_id))[0]["message"] == "An operator said that this call failed."


async def test_only_the_tools_that_are_wanted_are_there(world: MakeWorld, tmp_path: Path) -> None:
    async with made(world, tmp_path, tools=["add"]).running() as o:
        assert list(await listed(o)) == ["clerk", "play__add"]


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ({"command": ["/there/is/no/such/program"]}, "No such file or directory"),
        ({"command": [sys.executable, "-c", "import sys; sys.exit('the disk is missing')"]}, "the disk is missing"),
        ({"url": "http://127.0.0.1:1/mcp"}, "cannot be reached"),
    ],
)
async def test_a_server_that_is_not_there_keeps_nothing_from_starting_and_is_reported_to_who_calls(
    world: MakeWorld, tmp_path: Path, server: dict[str, Any], why: str
) -> None:
    async with world(SOURCE, LISTENERS, tools={"mcp": {"play": server}}).running() as o:
        assert list(await listed(o)) == ["clerk", "play__add"]
        done = await o.inject("clerk", {"text": "{}"}, wait=True)
        assert done.replies[0]["text"].startswith("The MCP server play cannot be reached: ")
        assert why in done.replies[0]["text"]


async def test_a_server_that_comes_later_is_asked_and_called(world: MakeWorld, tmp_path: Path) -> None:
    program = tmp_path / "later.py"
    command = [sys.executable, str(program), str(tmp_path / "diary")]
    play = world(SOURCE, LISTENERS, tools={"mcp": {"play": {"command": command}}})
    async with play.running() as o:
        assert list(await listed(o)) == ["clerk", "play__add"]
        program.write_text(SERVER.read_text())
        reloaded = await o.until(OrganismReloaded)
        assert reloaded.event.added == ("play__put", "play__write.file", "play__wait")
        assert reloaded.event.updated == ("play__add",)
        done = await o.inject("clerk", {"text": '{"a":1,"b":1}'}, wait=True)
        assert done.replies == ({"text": "2"},)


async def test_a_start_waits_for_no_server_and_its_tools_are_there_when_it_answers(
    world: MakeWorld, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    servers = {
        "play": {"command": [sys.executable, "-S", str(SERVER), str(tmp_path / "diary"), str(gate)]},
        "mute": {"command": ["/bin/sleep", "600"]},
    }
    play = world(SOURCE, LISTENERS, tools={"mcp": servers})
    async with play.running(parts=Parts(mcp_seconds=0)) as o:
        assert list(await listed(o)) == ["clerk", "play__add"], "those that are named"
        assert list(o.organism.awaited_servers) == ["play", "mute"]
        assert list((await o.organism.reload()).added) == []
        called = await o.inject("clerk", {"text": '{"a":1,"b":1}'})
        await asyncio.to_thread(gate.write_text, "go on")
        await o.until(OrganismReloaded, added=("play__put", "play__write.file", "play__wait"))
        assert list(o.organism.awaited_servers) == ["mute"]
        assert await o.tenant.ended(called.thread_id, 30)
        assert await o.replies(called.thread_id) == ({"text": "2"},)
        assert (tmp_path / "diary").read_text().count("begun") == 1


async def test_a_message_to_a_tool_whose_server_is_awaited_waits_for_it(world: MakeWorld, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    async with made(world, tmp_path).running() as o:
        await o.do(PauseAgent(agent="play__put"))
        sent = await o.inject("play__put", {"json": '{"text":"x"}'})
        await o.crash()
    command = [sys.executable, "-S", str(SERVER), str(tmp_path / "diary"), str(gate)]
    play = world(SOURCE, LISTENERS, tools={"mcp": {"play": {"command": command}}})
    async with play.running(parts=Parts(mcp_seconds=0)) as o:
        assert "play__put" in await listed(o), "nobody names it, but it was there"
        await o.do(ResumeAgent(agent="play__put"))
        await asyncio.to_thread(gate.write_text, "go on")
        assert await o.tenant.ended(sent.thread_id, 30)
        assert (await o.thread(sent.thread_id))["status"] == "completed"


async def test_a_reload_leaves_the_servers_that_are_gone_and_a_bad_one_changes_nothing(
    world: MakeWorld, tmp_path: Path
) -> None:
    play = made(world, tmp_path)
    async with play.running() as o:
        config = orjson.loads(play.config.read_bytes())
        broken = {**config, "listeners": [{**config["listeners"][0], "tools": ["play__nothing"]}]}
        play.config.write_bytes(orjson.dumps(broken))
        with pytest.raises(ConfigInvalid) as refused:
            await o.organism.reload()
        assert refused.value.details[0].message == "there is no tool `play__nothing`; did you mean `play__put`?"
        assert (await o.inject("clerk", {"text": '{"a":1,"b":1}'}, wait=True)).replies == ({"text": "2"},)
        del config["tools"]
        config["listeners"][0]["tools"] = []
        play.config.write_bytes(orjson.dumps(config))
        changes = await o.organism.reload()
        assert list(changes.removed) == ["play__add", "play__put", "play__write.file", "play__wait"]


async def test_an_agent_s_model_calls_a_tool_by_its_own_arguments_and_hears_what_is_wrong_with_them(
    world: MakeWorld, tmp_path: Path
) -> None:
    play = thinker(world, tmp_path)
    wrong, right = call("play__add", a="one", b=1), call("play__add", a=40, b=2)
    play.script(calls(wrong), calls(right), says("It is 42."))
    async with play.running() as o:
        done = await o.inject("thinker", {"message": "What is 40 + 2?"}, wait=True)
        assert done.replies == ({"text": "It is 42.", "citations": []},)
        offered = play.models.options[0]["tools"][0]
        assert (offered.name, offered.parameters["required"]) == ("play__add", ["a", "b"])
        run = await run_of(o, done.message_id)
        results = [data["output"] for kind, data in run if kind == "tool_result"]
        assert '/a: expected a whole number, came "one" (text)' in str(results[0]).replace("\\", "")
        assert '"42"' in str(results[1]).replace("\\", "")
        assert diary(tmp_path) == ["add 40 2"]


async def test_a_reload_follows_a_server_that_has_other_tools_now(world: MakeWorld, tmp_path: Path) -> None:
    command = [sys.executable, "-S", str(ROUGH), str(tmp_path / "diary")]
    async with world("", {}, tools={"mcp": {"rough": {"command": command}}}).running() as o:
        assert list(await listed(o)) == ["rough__do", "rough__promised"]
        await o.inject("rough__do", {"json": '{"do": "grow"}'}, wait=True)
        assert list((await o.organism.reload()).added) == ["rough__grown"]
        off = await o.inject("rough__grown", {"json": '{"do": "this"}'}, wait=True)
        assert off.replies[0]["code"] == "forbidden"
        grown = await o.views.private_row(FOREIGN_TOOLS, "rough__grown")
        assert grown is not None
        await o.organism.accept_tool("rough__grown", grown.offered, HOST_PROGRAM)
        done = await o.inject("rough__grown", {"json": '{"do": "this"}'}, wait=True)
        assert done.replies[0]["text"] == "did this"
        await o.inject("rough__do", {"json": '{"do": "shrink"}'}, wait=True)
        refused = await o.inject("rough__grown", {"json": '{"do": "this"}'}, wait=True)
        assert refused.replies[0]["message"] == "The MCP server rough refused the call: Unknown tool: grown"
        assert list((await o.organism.reload()).removed) == ["rough__grown"]


async def test_a_tool_of_a_server_may_demand_consent(world: MakeWorld, tmp_path: Path) -> None:
    play = made(world, tmp_path)
    config = orjson.loads(play.config.read_bytes())
    config["listeners"].append({"name": "play__write.file", "approval": True})
    play.config.write_bytes(orjson.dumps(config))
    async with play.running() as o:
        await o.inject("play__write.file", {"json": '{"text":"x"}'})
        question = await o.until(ApprovalRequested, agent="play__write.file")
        assert question.event.type == "ToolArguments"
        assert diary(tmp_path) == []


async def test_without_the_extra_it_is_said_how_to_install_it(
    world: MakeWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "organism.tools.mcp.servers", None)
    with pytest.raises(ConfigInvalid, match=r"pip install 'organism\[mcp\]'"):
        async with running(made(world, tmp_path).config):
            pass


async def asked_about(o: Running, world: Thinking, name: str, **arguments: Any) -> Record[ApprovalRequested]:
    """What a person is asked about once the thinker has read what a tool of a server says, and calls another."""
    world.script(calls(call("play__add", a=1, b=1)), calls(call(name, **arguments)), says("Over."))
    await o.inject("thinker", {"message": "Act."})
    return await o.until(ApprovalRequested)


def thinker(world: MakeWorld, folder: Path) -> Thinking:
    """A thinker with all tools of the server."""
    command = [sys.executable, "-S", str(SERVER), str(folder / "diary")]
    play = thinking(world, {"thinker": agent(tools=["play__add", "play__put", "play__write.file"])})
    play.world.top["tools"] = {"mcp": {"play": {"command": command}}}
    play.world.write("")
    return play


@pytest.mark.parametrize("name", ["play__put", "play__write.file"])
async def test_in_a_tainted_run_a_tool_that_is_not_annotated_as_read_only_needs_a_person(
    world: MakeWorld, tmp_path: Path, name: str
) -> None:
    play = thinker(world, tmp_path)
    async with play.running(on_disk=False) as o:
        asked = await asked_about(o, play, name, text="x")
        assert asked.event.agent == name
        assert diary(tmp_path) == ["add 1 1"]


async def test_one_that_is_annotated_as_read_only_needs_nobody(world: MakeWorld, tmp_path: Path) -> None:
    play = thinker(world, tmp_path)
    play.script(calls(call("play__add", a=1, b=1)), calls(call("play__add", a=2, b=2)), says("Over."))
    async with play.running(on_disk=False) as o:
        await o.inject("thinker", {"message": "Add."}, wait=True)
        assert diary(tmp_path) == ["add 1 1", "add 2 2"]


async def test_edits_of_an_approval_are_held_to_the_schema_of_the_servers_tool(
    world: MakeWorld, tmp_path: Path
) -> None:
    play = thinker(world, tmp_path)
    async with play.running(on_disk=False) as o:
        asked = await asked_about(o, play, "play__write.file", text="x")
        resolve = partial(ResolveApproval, approval=asked.event.approval, decision="approve")
        with pytest.raises(InvalidPayload, match="/text: is missing"):
            await o.do(resolve(edits={"json": '{"word": 1}'}))
        await o.do(resolve(edits={"json": '{"text": "y"}'}))
        assert await o.tenant.ended(asked.thread or "", 10)
        assert diary(tmp_path) == ["add 1 1", "write y"]
