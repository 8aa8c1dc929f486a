"""The real command: what it prints, how it is found, and how it stops."""

from __future__ import annotations

import asyncio
import re
import resource
import signal
import stat
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import httpx2
import orjson
import pytest

from tests.cli.command import in_a_process, organism, start_process
from tests.e2e.serving import serving
from tests.flows.world import World
from tests.server.served import LISTENERS, Frames

pytestmark = pytest.mark.e2e

SLOW = """
async def slow(payload: Ask, metadata: HandlerMetadata):
    await asyncio.sleep(float(payload.text))
    return HandlerResponse.respond(Told("done"))
"""

CHOOSY = """
@dataclass
class Choosy:
    text: str

    def __post_init__(self):
        PASS

async def greet(payload: Choosy, metadata: HandlerMetadata):
    return None
"""

ENDLESS = """
import time

WAIT_S = 3600

async def swallows(payload: Ask, metadata: HandlerMetadata):
    print("swallows runs", flush=True)
    while True:
        try:
            await asyncio.sleep(WAIT_S)
        except asyncio.CancelledError:
            continue

async def holds_a_thread(payload: Ask, metadata: HandlerMetadata):
    print("holds-a-thread runs", flush=True)
    await asyncio.to_thread(time.sleep, WAIT_S)

def holds_its_thread(payload: Ask, metadata: HandlerMetadata):
    print("holds-its-thread runs", flush=True)
    time.sleep(WAIT_S)

async def blocks(payload: Ask, metadata: HandlerMetadata):
    print("blocks runs", flush=True)
    while True:
        pass
"""


async def shell(line: str) -> str:
    """The output of a shell's line."""
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", line, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    out, _ = await process.communicate()
    return out.decode()


async def test_the_printed_line_sends_the_first_message(tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as server:
        line = re.search(r"curl .*", server.said)
        assert line
        said = orjson.loads(await shell(line[0]))
        assert set(said) == {"thread_id", "message_id", "position"}
        async with server.client() as client:
            status = (await client.post("/inject", json={"to": "greeter", "payload": {"name": "D"}, "wait": 20})).json()
        assert status["replies"][0]["payload"] == {"message": "HELLO, D!"}
        assert "token=" not in server.said, "the ready link is for terminals"


@pytest.mark.parametrize(
    ("source", "first_step"),
    [
        ("raise ValueError('expected two words')", '{"to":"greeter","payload":{"text":"text"}}'),
        ("raise SystemExit(3)", '{"to":"greeter","payload":{"text":"text"}}'),
        ("", "a first listener in "),
    ],
)
async def test_a_start_does_not_hang_on_the_example_that_it_prints(
    tmp_path: Path, source: str, first_step: str
) -> None:
    listeners = {"greeter": {"payload_class": "Choosy", "handler": "greet"}} if source else {}
    world = World(tmp_path, CHOOSY.replace("PASS", source or "pass"), listeners)
    async with serving(world.data, config=world.config) as server, server.client() as client:
        assert first_step in server.said
        assert (await client.post("/organism/reload")).status_code == httpx2.codes.OK
        assert (await client.get("/organism")).json()["status"] == "running"


async def test_secrets_are_readable_by_their_owner_only_and_never_printed(tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as server:
        for name in ("token", "server.key"):
            assert stat.S_IMODE((server.data / name).stat().st_mode) == 0o600
            assert (server.data / name).read_text().strip() not in server.said


async def test_a_stop_gives_running_handlers_their_grace_refuses_new_work_and_exits_0(tmp_path: Path) -> None:
    world = World(tmp_path, SLOW, {"slow": {}})
    async with serving(tmp_path / "data", config=world.config) as server, server.client() as client:
        async with server.socket() as socket:
            frames = Frames(socket)
            await frames.until("connected")
            thread = (await client.post("/inject", json={"to": "slow", "payload": {"text": "1.5"}})).json()["thread_id"]
            await frames.until("agent_state", state="processing")
            server.process.send_signal(signal.SIGTERM)
            refused = await refusal(client)
            await frames.until("thread_updated", thread_id=thread, status="completed")
            await frames.until("organism_state", status="stopping")
            await socket.wait_closed()
            assert socket.close_code in {1001, 1012}
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "stopping")
        assert await asyncio.wait_for(server.process.wait(), 20) == 0
        assert not (server.data / "server.json").exists()


@pytest.mark.parametrize(
    ("actors", "signals", "code"),
    [
        (("swallows", "holds-a-thread", "holds-its-thread"), (signal.SIGTERM,), 0),
        (("blocks",), (signal.SIGTERM,), 0),
        (("blocks",), (signal.SIGINT, signal.SIGTERM), 128 + signal.SIGTERM),
    ],
    ids=["it swallows its cancellation or holds a thread", "it blocks the loop", "it blocks the loop, a second signal"],
)
async def test_no_handler_keeps_the_process_from_ending_and_nothing_accepted_is_lost(
    tmp_path: Path, actors: tuple[str, ...], signals: tuple[signal.Signals, ...], code: int
) -> None:
    listeners = {"swallows": {}, "holds-a-thread": {}, "holds-its-thread": {"blocking": True}, "blocks": {}}
    world = World(tmp_path, ENDLESS, listeners)
    async with serving(tmp_path / "data", config=world.config) as server, server.client() as client:
        injections = [
            asyncio.ensure_future(client.post("/inject", json={"to": name, "payload": {}})) for name in actors
        ]
        for name in actors:
            await server.until_said(f"{name} runs")
        for number in signals:
            server.process.send_signal(number)
        assert await asyncio.wait_for(server.process.wait(), 25) == code
        await asyncio.gather(*injections, return_exceptions=True)  # one that blocks the loop may keep back the answer
    world.write(ENDLESS.replace("while True", "while False").replace("WAIT_S = 3600", "WAIT_S = 0"))
    async with serving(tmp_path / "data", config=world.config) as server, server.client() as client:
        threads = (await client.get("/threads")).json()["threads"]
        assert len(threads) == len(actors)
        for thread in threads:
            await server.until_completed(thread["id"])
            ended = (await client.get(f"/threads/{thread['id']}")).json()
            assert (ended["status"], ended["message_count"]) == ("completed", 1)
    assert (await organism("log", "verify", "--data", tmp_path / "data")).code == 0


async def refusal(client: httpx2.AsyncClient) -> httpx2.Response:
    """The first answer that is no acknowledgement."""
    while True:
        answer = await client.post("/inject", json={"to": "slow", "payload": {"text": "0"}})
        if answer.status_code != 202:
            return answer


@pytest.mark.parametrize("free_bytes", [0, 16_384])
async def test_a_start_on_a_full_disk_says_so_and_the_next_one_serves(tmp_path: Path, free_bytes: int) -> None:
    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (free_bytes, free_bytes))

    process = await start_process("serve", "--data", tmp_path / "data", "--port", "0", preexec_fn=full)
    out, said = await process.communicate()
    assert (process.returncode, out) == (1, b"")
    assert re.fullmatch(r"error: .+\nnext: Make room on the disk of .+\n", said.decode()), said.decode()
    async with serving(tmp_path / "data") as server:
        assert "serves at" in server.said


async def test_a_taken_port_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as server:
        taken = await in_a_process("serve", "--data", tmp_path / "other", "--port", server.url.rsplit(":", 1)[1])
    assert (taken.code, "is taken" in taken.err, (tmp_path / "other").exists()) == (1, True, False)


async def test_the_local_server_is_found_by_its_data_directory(tmp_path: Path) -> None:
    async with serving(tmp_path / "data") as server:
        assert len((await organism("agents", "--data", server.data, "--json")).json) == len(LISTENERS)
        assert (await organism("log", "verify", "--data", server.data, "--json")).json["damage"] == []
        assert (await organism("stop", "--data", server.data)).code == 0
        assert await asyncio.wait_for(server.process.wait(), 20) == 0


async def test_a_token_from_the_environment_is_accepted_and_not_stored(tmp_path: Path) -> None:
    async with serving(tmp_path / "data", ORGANISM_TOKEN="mine") as server:
        assert "$ORGANISM_TOKEN" in server.said
        assert not (server.data / "token").exists()
        assert (await organism("agents", "--data", server.data, ORGANISM_TOKEN="mine")).code == 0


async def test_a_new_user_asks_an_agent_with_nothing_configured(tmp_path: Path) -> None:
    question = "what is 17 % of 2,340, and what day is it in Tokyo?"
    async with serving(tmp_path / "data") as server:
        before = datetime.now(ZoneInfo("Asia/Tokyo"))
        asked = await organism("chat", "researcher", question, "--data", server.data)
        days = {f"{each:%A}" for each in (before, datetime.now(ZoneInfo("Asia/Tokyo")))}
        labels = await organism(
            "inject", "prompt-shaper", '{"task":"Write a Python function"}', "--wait", "20", "--data", server.data
        )
    assert asked.code == 0
    assert "397.8" in asked.out
    assert any(day in asked.out for day in days)
    assert 'PromptLabels {"system":"Python_Programmer"' in labels.out
