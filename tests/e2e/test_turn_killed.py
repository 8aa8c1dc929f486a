"""A turn of an agent whose server is killed in the middle of a tool: it ends, nothing is asked or paid twice."""

from __future__ import annotations

import asyncio
import os
import signal
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.serving import Process, serving

pytestmark = pytest.mark.e2e

CONFIG = """
organism: {name: desk, imports: [actors]}
models:
  talker: {provider: scripted, script: script.yaml, price: {input_usd_per_million: 2, output_usd_per_million: 10}}
listeners:
  - name: note
    description: Notes a word
    payload_class: actors.desk.Note
    handler: actors.desk.note
  - name: wait
    description: Notes a word, then waits at the gate
    payload_class: actors.desk.Wait
    handler: actors.desk.wait
  - name: thinker
    description: Thinks
    model: talker
    prompt: Be brief.
    tools: [note, wait]
"""
ACTORS = """
import asyncio
from dataclasses import dataclass
from pathlib import Path

from organism import HandlerMetadata, HandlerResponse

HERE = Path(__file__).parent.parent

@dataclass
class Note:
    word: str

@dataclass
class Wait:
    word: str

@dataclass
class Noted:
    text: str

def keep(word):
    with (HERE / "noted.txt").open("a") as file:
        file.write(word + "\\n")

async def note(payload: Note, metadata: HandlerMetadata):
    keep(payload.word)
    return HandlerResponse.respond(Noted(payload.word))

async def wait(payload: Wait, metadata: HandlerMetadata):
    keep(payload.word)
    return HandlerResponse.respond(Noted(await asyncio.to_thread((HERE / "gate").read_text)))
"""
SCRIPT = """
answers:
  - when: {round: 0}
    text: First.
    usage: {input_tokens: 1000, output_tokens: 100}
    calls: [{name: note, arguments: {word: one}}, {name: note, arguments: {word: two}}]
  - when: {round: 1}
    text: Second.
    usage: {input_tokens: 2000, output_tokens: 100}
    calls: [{name: wait, arguments: {word: gate}}]
  - when: {round: 2}
    text: Done.
    usage: {input_tokens: 3000, output_tokens: 100}
"""
COST = Decimal(6000 * 2 + 300 * 10) / 1_000_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An organism with an agent, and a gate that opens for who writes to it."""
    (tmp_path / "actors").mkdir()
    (tmp_path / "actors" / "__init__.py").touch()
    (tmp_path / "actors" / "desk.py").write_text(ACTORS)
    (tmp_path / "script.yaml").write_text(SCRIPT)
    (tmp_path / "organism.yaml").write_text(CONFIG)
    os.mkfifo(tmp_path / "gate")
    return tmp_path


async def at_gate(folder: Path) -> int:
    """Wait until the tool stands at the gate; gives the gate, to write to."""
    return await asyncio.to_thread(os.open, folder / "gate", os.O_WRONLY)


async def events(server: Process, kind: str) -> list[dict[str, Any]]:
    """What the log has of this kind."""
    async with server.client() as client:
        answer = await client.get("/log", params={"type": kind, "limit": 500, "content": "true"})
        found: list[dict[str, Any]] = answer.json()["events"]
        return found


async def test_a_turn_that_is_killed_in_a_tool_ends_and_is_asked_and_paid_for_once(folder: Path) -> None:
    data = folder / "data"
    async with serving(data, config=folder / "organism.yaml") as server:
        async with server.client() as client:
            injected = await client.post("/inject", json={"to": "thinker", "payload": {"message": "Go."}})
        assert injected.status_code == 202
        gate = await at_gate(folder)
        assert len(await events(server, "model_called")) == 2
        await server.end(signal.SIGKILL)
        os.close(gate)
    async with serving(data, config=folder / "organism.yaml") as server:
        gate = await at_gate(folder)
        os.write(gate, b"open")
        os.close(gate)
        thread = injected.json()["thread_id"]
        await server.until_completed(thread)
        async with server.client() as client:
            replies = (await client.get(f"/threads/{thread}/messages")).json()["messages"]
        called = await events(server, "model_called")
        results = await events(server, "run_tool_result")
        done = await events(server, "run_done")
    assert replies[-1]["payload"]["text"] == "Done."
    assert (folder / "noted.txt").read_text().split() == ["one", "two", "gate", "gate"]
    assert [event["data"]["input_tokens"] for event in called] == [1000, 2000, 3000]
    assert sum(Decimal(event["data"]["cost_usd"]) for event in called) == COST
    assert [event["content"]["output"] for event in results] == [
        '{"text":"one"}',
        '{"text":"two"}',
        '{"text":"open"}',
    ]
    assert [event["data"]["stopReason"] for event in done] == ["stop"]
