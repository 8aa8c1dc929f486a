"""The verbs as people and scripts run them, against a real server."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import orjson
import pytest

from tests.cli.command import Ran, names, organism
from tests.flows.spender import says, scripted
from tests.flows.world import World
from tests.server.served import LISTENERS, TOKEN, Frames, Served, served


async def ask(server: Served, *arguments: str | Path, stdin: str = "") -> Ran:
    """Run a verb against the server, with its token."""
    return await organism(*arguments, stdin=stdin, ORGANISM_URL=server.url, ORGANISM_TOKEN=TOKEN)


async def test_inject_sends_and_shows_the_replies(hello: Served) -> None:
    ran = await ask(hello, "inject", "greeter", '{"name":"Dan"}', "--wait", "10")
    assert ran.code == 0, ran.err
    assert "response-handler → console ShoutedResponse" in ran.out
    assert "completed" in ran.out


@pytest.mark.parametrize("more", [(), ("--json",)])
async def test_inject_with_wait_exits_as_its_thread_ends(needy: Served, more: tuple[str, ...]) -> None:
    ended = [
        await ask(needy, "inject", "worker", f'{{"text":"{text}"}}', "--wait", "10", *more) for text in ("", "bad")
    ]
    assert [ran.code for ran in ended] == [0, 1]
    assert "no good" in ended[1].out + ended[1].err
    assert (await ask(needy, "inject", "worker", '{"text":"ask"}', "--wait", "0.1", *more)).code == 0


async def test_inject_reads_a_file_or_standard_input_and_prints_json(hello: Served, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text('{"name":"File"}')
    of_file = await ask(hello, "inject", "greeter", f"@{tmp_path / 'p.json'}", "--wait", "10", "--json")
    of_input = await ask(hello, "inject", "greeter", "--json", stdin="<Greeting><name>Pipe</name></Greeting>")
    assert of_file.json["replies"][0]["payload"]["message"] == "HELLO, FILE!"
    assert set(of_input.json) == {"thread_id", "message_id", "position"}


async def test_the_same_key_sends_once(hello: Served) -> None:
    ran = [await ask(hello, "inject", "greeter", '{"name":"D"}', "--key", "k", "--json") for _ in range(2)]
    assert ran[0].json == ran[1].json


async def test_agents_and_threads_are_tables_or_json(hello: Served) -> None:
    thread = (await hello.inject())["thread_id"]
    table, json = await ask(hello, "agents"), await ask(hello, "agents", "--json")
    assert table.out.splitlines()[0].startswith("AGENT")
    assert [agent["name"] for agent in json.json] == LISTENERS
    threads = await ask(hello, "threads", "--status", "completed")
    assert thread in threads.out
    assert (await ask(hello, "threads", "--status", "killed", "--json")).json == []


async def test_pause_resume_and_kill_show_the_new_state(hello: Served) -> None:
    assert (await ask(hello, "pause", "shouter")).out == "shouter paused\n"
    thread = (await hello.inject(wait=None))["thread_id"]
    assert (await ask(hello, "pause", "--thread", thread, "--json")).json["paused"] is True
    assert (await ask(hello, "resume", "--thread", thread)).out == f"{thread} active\n"
    assert (await ask(hello, "kill", thread)).out == f"{thread} killed\n"
    assert (await ask(hello, "pause", "--all", "--json")).json["status"] == "paused"
    assert (await ask(hello, "resume", "--all")).out == "hello-world running\n"


async def test_reload_and_stop_report_what_they_did(hello: Served) -> None:
    assert (await ask(hello, "reload")).out == "loaded; no listener was added, removed or updated\n"
    assert (await ask(hello, "stop", "--json")).json["status"] == "stopping"


async def test_no_server_is_exit_3() -> None:
    ran = await organism("agents", "--url", "http://127.0.0.1:1")
    assert ran.code == 3
    assert "organism serve" in ran.err


async def test_a_refused_token_is_exit_4(hello: Served) -> None:
    ran = await organism("agents", "--url", hello.url, "--token", "wrong")
    watched = await organism("tail", "--url", hello.url, "--token", "wrong")
    assert (ran.code, watched.code) == (4, 4)


async def test_status_agent_thread_and_message_are_shown_in_full(hello: Served) -> None:
    sent = await hello.inject()
    status = await ask(hello, "status")
    assert "organism  hello-world" in status.out
    assert (await ask(hello, "status", "--json")).json["total_messages"] == 4
    agent = (await ask(hello, "agents", "greeter")).out
    assert "peers        shouter" in agent
    thread = (await ask(hello, "threads", sent["thread_id"])).out
    assert 'console → greeter Greeting {"name":"Dan"}' in thread
    message = (await ask(hello, "messages", sent["message_id"], "--xml")).out
    assert "<name>Dan</name>" in message
    assert (await ask(hello, "messages", sent["message_id"], "--json")).json["payload"] == {"name": "Dan"}


async def test_a_graph_shows_who_may_write_to_whom_and_no_replies(tmp_path: Path) -> None:
    asking = """
async def boss(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(await metadata.ask("helper", Ask(payload.text)))
async def helper(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told("done"))
"""
    listeners = {"boss": {"peers": ["*"], "group": "office"}, "helper": {}}
    async with served(World(tmp_path, asking, listeners).config) as server:
        await server.inject("boss", {"text": "x"})
        lines = (await ask(server, "graph")).out.splitlines()
    rows = {line.split()[0]: line.split(maxsplit=3)[2:] for line in lines}
    assert rows["boss"] == ["office", "anyone, helper, console"]
    assert rows["helper"] == ["-", "-"]


async def test_what_is_worked_on_and_waits_for_a_person_is_shown(needy: Served) -> None:
    async with needy.socket("?events=approval") as socket:
        sent = await needy.inject("worker", {"text": "ask"}, wait=None)
        await Frames(socket).until("approval")
    [approval] = (await ask(needy, "approvals", "list", "--json")).json
    agent, thread = await ask(needy, "agents", "worker"), await ask(needy, "threads", sent["thread_id"])
    for shown in (agent.out, thread.out):
        assert f"worker  {sent['message_id']}  1 " in shown
        assert f"person {approval['id']} since" in shown
    assert f"organism approvals list --thread {sent['thread_id']}" in thread.out
    listed = await ask(needy, "threads", "--waiting")
    assert listed.out.splitlines()[1].split()[-2:] == ["1", "ask"]
    assert "organism threads THREAD" in listed.err
    await ask(needy, "approvals", "resolve", approval["id"], "reject")
    assert (await ask(needy, "threads", "--waiting")).out == "there are no such threads\n"


async def test_who_paused_is_shown(hello: Served) -> None:
    await ask(hello, "pause", "shouter")
    thread = (await hello.inject(wait=None))["thread_id"]
    await ask(hello, "pause", "--thread", thread)
    await ask(hello, "pause", "--all")
    for words in (["status"], ["agents", "shouter"], ["threads", thread]):
        [line] = [line for line in (await ask(hello, *words)).out.splitlines() if line.startswith("paused")]
        assert line.endswith(" by operator")


async def test_a_message_says_what_became_of_it(needy: Served) -> None:
    sent = await needy.inject("worker", {"text": "bad"})
    shown = (await ask(needy, "messages", sent["message_id"])).out
    assert "state      failed" in shown
    assert "failed after" in shown
    assert "no good" in shown


async def test_the_newest_messages_come_in_their_order_and_why_leads_to_the_injection(hello: Served) -> None:
    await hello.inject()
    newest = (await ask(hello, "messages", "--limit", "2", "--json")).json
    assert [message["to"] for message in newest] == ["response-handler", "console"]
    why = (await ask(hello, "messages", newest[-1]["id"], "--why", "--json")).json
    assert [message["to"] for message in why] == ["console", "response-handler", "shouter", "greeter"]
    said = await ask(hello, "messages", "--text", "Dan!", "--limit", "1")
    assert "1 of 3; --limit shows more" in said.err


async def test_find_shows_each_kind_and_where_the_text_is(hello: Served) -> None:
    sent = await hello.inject(payload={"name": "Shouters"})
    ran = await ask(hello, "find", "shouter")
    kinds = [line.split()[0] for line in ran.out.splitlines()]
    assert kinds == ["KIND", "agent", "thread", *["message"] * 4]
    assert f"{sent['message_id']}  console → greeter Shouters" in ran.out
    by_id = await ask(hello, "find", sent["message_id"][-8:])
    assert f"{sent['message_id']}  console → greeter Greeting" in by_id.out
    assert (await ask(hello, "find", "nobody")).out == "nothing was found\n"
    cut = await ask(hello, "find", "shouter", "--limit", "1")
    assert (cut.code, "organism messages --text" in cut.err) == (0, True)
    assert (await ask(hello, "find", "shouter", "--json")).json["complete"] is True


async def test_a_list_is_read_page_by_page(hello: Served) -> None:
    await asyncio.gather(*(hello.inject() for _ in range(126)))  # 504 messages, more than a page
    everything = (await ask(hello, "messages", "--limit", "1000", "--json")).json
    assert len({message["id"] for message in everything}) == len(everything) == 504
    newest = (await ask(hello, "messages", "--limit", "502", "--json")).json
    assert newest == everything[-502:]


async def test_events_are_printed_one_per_line(hello: Served) -> None:
    sent = await hello.inject()
    ran = await ask(hello, "log", "events", "--type", "message_sent", "--content", "--limit", "3", "--json")
    events = [orjson.loads(line) for line in ran.out.splitlines()]
    assert [event["type"] for event in events] == ["message_sent"] * 3
    assert (events[0]["position"], events[0]["content"]) == (sent["position"], {"name": "Dan"})


async def test_the_newest_events_come_page_by_page(hello: Served) -> None:
    for _ in range(40):
        await hello.inject()
    ran = await ask(hello, "log", "events", "--newest", "--limit", "501", "--json")
    positions = [orjson.loads(line)["position"] for line in ran.out.splitlines()]
    assert positions == list(range(hello.log.head, hello.log.head - 501, -1))
    ran = await ask(hello, "log", "events", "--type", "thread_created,thread_completed", "--newest", "--limit", "1")
    assert "thread_completed" in ran.out


async def test_a_schema_is_xsd_for_people_and_json_schema_for_programs(hello: Served) -> None:
    assert (await ask(hello, "agents", "greeter", "--schema")).out.startswith("<xs:schema")
    assert (await ask(hello, "agents", "greeter", "--schema", "--json")).json["title"] == "Greeting"
    assert (await ask(hello, "agents", "--schema")).code == 2


ENDINGS = {
    "threads thr-none": 5,
    "messages msg-none": 5,
    "agents nobody": 5,
    "pause nobody": 5,
    "kill thr-none": 5,
    "inject nobody {}": 5,
    "errors no_such_code": 5,
    "threads --status odd": 1,
    "messages --since yesterday": 1,
    "log events --type odd": 1,
    "messages --why": 2,
    "agents greeter --schema --config": 2,
    "threads --limit none": 2,
    "inject greeter @/no/such/file": 2,
    "inject greeter nope": 2,
    'inject greeter {"nme":"Dan"}': 1,
    "tail --since 99999": 1,
    "chat nobody hello": 5,
    "usage --thread t --agent greeter": 2,
    "pause": 2,
    "pause a --all": 2,
    "dance": 2,
}


async def test_each_failure_has_its_exit_code_and_says_why(hello: Served) -> None:
    for words, code in ENDINGS.items():
        ran = await ask(hello, *words.split())
        assert (ran.code, ran.out) == (code, ""), words
        assert "next: " in ran.err or code == 2, words
        assert "Traceback" not in ran.err, words


async def test_a_conflict_with_the_state_is_exit_6(hello: Served) -> None:
    await ask(hello, "pause", "--all")
    thread = (await hello.inject(wait=None))["thread_id"]
    await ask(hello, "kill", thread)
    ran = await ask(hello, "inject", "greeter", '{"name":"D"}', "--thread", thread)
    assert (ran.code, ran.out) == (6, "")
    assert "begin a new thread" in ran.err


async def test_a_refusal_for_now_is_exit_7(hello: Served) -> None:
    hello.organism.tenants["default"].operator.stopping = True
    ran = await ask(hello, "inject", "greeter", '{"name":"D"}')
    assert ran.code == 7
    assert "stopping" in ran.err


async def test_usage_shows_who_called_what_for_how_much(tmp_path: Path) -> None:
    made = scripted(partial(World, tmp_path), says("Here.", 20, 5), fx={"eur_per_usd": 0.9})
    async with served(made.config) as server:
        assert (await ask(server, "usage")).out == "no model was called yet\n"
        thread = (await server.inject("ada", {"text": "Hi"}))["thread_id"]
        everything = (await ask(server, "usage")).out.splitlines()
        assert everything[0].split() == ["AGENT", "CALLS", "FAILED", "TOKENS", "USD", "LAST"]
        assert [line.split()[:5] for line in everything[1:]] == [
            ["ada", "1", "-", "25", "0.00003"],
            ["all", "1", "-", "25", "0.00003"],
        ]
        one = (await ask(server, "usage", "--thread", thread)).out
        assert "tokens  25 (20 in, 5 out)" in one
        assert "cost    0.00003 USD, 0.000027 EUR" in one
        assert "models  m: 1 for 0.00003 USD" in one
        assert (await ask(server, "usage", "--agent", "ada", "--json")).json["agent"] == "ada"
        assert (await ask(server, "usage", "--at", "1")).out == "no model was called yet\n"


async def test_bench_measures_the_disk_that_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    ran = await organism("bench", "--seconds", "0.1", "--dir", tmp_path, "--json")
    assert (ran.err, ran.json["fsync_ms"] > 0, names(tmp_path)) == ("", True, [])
    assert [load["in_flight"] for load in ran.json["loads"]] == [1, 64]
    assert all(load["messages_per_second"] > 0 and load["p50_ms"] <= load["p99_ms"] for load in ran.json["loads"])
    table = await organism("bench", "--seconds", "0.1", "--dir", tmp_path)
    assert table.out.startswith("THREADS AT ONCE  MESSAGES/S")
    missing = await organism("bench", "--dir", tmp_path / "none")
    assert (missing.code, missing.out, "--dir" in missing.err) == (1, "", True)


@pytest.mark.parametrize("status", ["200 OK", "404 Not Found", "502 Bad Gateway"])
async def test_something_else_at_the_address_is_exit_3(status: str) -> None:
    async def page(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 6\r\nConnection: close\r\n\r\n<html>".encode())
        writer.close()

    async with await asyncio.start_server(page, "127.0.0.1", 0) as other:
        url = f"http://127.0.0.1:{other.sockets[0].getsockname()[1]}"
        for verb in ("agents", "tail"):
            ran = await organism(verb, "--url", url)
            assert (ran.code, ran.out) == (3, "")
            assert "not as an organism does" in ran.err


async def test_a_refused_payload_is_shown_with_each_fault_once_and_the_next_step(hello: Served) -> None:
    lone = await ask(hello, "inject", "greeter", '{"name":5}')
    both = await ask(hello, "inject", "greeter", '{"nme":"Dan"}')
    assert (lone.code, lone.err.count("expected text, came int 5")) == (1, 1)
    assert [line.strip() for line in both.err.splitlines() if line.startswith("  ")] == [
        "/payload/nme: this field is not known; known are name",
        "/payload/name: this field is missing",
    ]
    assert "`organism agents NAME --schema`" in both.err
