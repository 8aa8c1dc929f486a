"""The organism.yaml that ships, as a new user has it, and with a line or a file more; the agents that come along."""

from __future__ import annotations

import gc
import json
import shutil
import sys
from pathlib import Path

import pytest

from organism.events.vocabulary import MessageDead, MessageSent, ModelCalled
from organism.testing import running
from tests.agents.peer.answers import Answer, Called
from tests.agents.peer.steering import Peer
from tests.flows import lawful
from tests.flows.stage import TurnedTime
from tests.flows.thinking import run_of

ROOT = Path(__file__).parents[2]
DRAFT = {"task": "Explain our costs as an AWS architect would, formally and in detail", "purpose": "for the manager"}
LABELS = {"system": "Friend", "audience": "Self", "tone": "formal", "response_depth": "short", "confidence": "low"}
TEXT = (
    "The harbour of Kiel was opened in 1895. It is used by 2,400 ships a year. A seagull stole a roll. "
    "The canal between the Baltic and the North Sea begins at the harbour of Kiel. Many people like ice cream."
)


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    """A copy of what a clone has."""
    for name in ("handlers", "config/agents"):
        shutil.copytree(ROOT / name, tmp_path / name)
    return Path(shutil.copy(ROOT / "organism.yaml", tmp_path))


def serve_by(path: Path, model: str, section: str) -> None:
    """Change a line of ``models``."""
    lines = path.read_text().splitlines()
    (at,) = (at for at, line in enumerate(lines) if line.startswith(f"  {model}: "))
    lines[at] = f"  {model}: {section}"
    path.write_text("\n".join(lines))


async def test_the_prompt_shaper_labels_a_task_with_nothing_configured(shipped: Path) -> None:
    async with running(shipped) as o:
        outcome = await o.inject("prompt-shaper", DRAFT, wait=True)
        (called,) = await o.records(ModelCalled)
    assert outcome.replies == (
        {
            "system": "AWS_Architect",
            "audience": "Manager",
            "tone": "formal",
            "response_depth": "detailed",
            "confidence": "medium",
        },
    )
    assert (called.event.model, called.event.provider) == ("gpt-4.1-mini", "offline")


async def test_the_summarizer_keeps_what_matters_with_nothing_configured(shipped: Path) -> None:
    async with running(shipped) as o:
        outcome = await o.inject("summarizer", {"text": TEXT}, wait=True)
    summary = outcome.replies[0]["text"]
    assert "Kiel" in summary
    assert "ice cream" not in summary
    assert len(summary) < len(TEXT)


async def test_a_model_behind_an_address_is_asked_there_without_a_key(shipped: Path, peer: Peer) -> None:
    serve_by(shipped, "gpt-4.1-mini", f'{{provider: openai, base_url: "{peer.url}", model: tiny}}')
    config = shipped.parent / "config" / "agents" / "A2" / "v1.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "temperature": 0.25}))
    await peer.script(Answer(text=f"```json\n{json.dumps(LABELS)}\n```"))
    async with running(shipped) as o:
        outcome = await o.inject("prompt-shaper", DRAFT, wait=True)
    (request,) = await peer.requests()
    assert outcome.replies == (LABELS,)
    options = {name: request["body"][name] for name in ("model", "temperature", "max_tokens")}
    assert options == {"model": "tiny", "temperature": 0.25, "max_tokens": 256}
    assert set(request["body"]["response_format"]["json_schema"]["schema"]["properties"]) == set(LABELS)
    assert "authorization" not in request["headers"]


async def test_an_agent_calls_its_tools_for_a_model_behind_an_address(shipped: Path, peer: Peer) -> None:
    serve_by(shipped, "claude-opus-4.7", f'{{provider: openai, base_url: "{peer.url}"}}')
    await peer.script(Answer(calls=(Called("calculator", {"expression": "2*21"}),)), Answer(text="It is 42."))
    async with running(shipped) as o:
        outcome = await o.inject("researcher", {"message": "What is 2*21?"}, wait=True)
        asked = [record.event.to for record in await o.records(MessageSent)]
    requests = await peer.requests()
    offered = [tool["function"]["name"] for tool in requests[0]["body"]["tools"]]
    assert outcome.replies[0]["text"] == "It is 42."
    assert asked == ["researcher", "calculator", "researcher", "console"]
    assert offered == ["calculator", "current_datetime", "wikipedia_search", "wikipedia_summary"]
    assert "42" in requests[1]["body"]["messages"][-1]["content"]


async def test_a_key_that_is_missing_is_reported_by_its_variable(
    shipped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    serve_by(shipped, "gpt-4.1-mini", "{provider: openai, api_key_env: OPENAI_API_KEY}")
    async with running(shipped) as o:
        outcome = await o.inject("prompt-shaper", DRAFT, wait=True)
        (dead,) = await o.records(MessageDead)
    assert outcome.replies == ()
    assert "set the variable OPENAI_API_KEY" in dead.event.reason


async def test_a_new_agent_is_a_new_file_and_an_edit_of_one_is_served_after_a_reload(shipped: Path) -> None:
    folder = shipped.parent / "config" / "agents"
    clerk = (folder / "concise-de.yaml").read_text().replace("concise-de", "clerk")
    async with running(shipped) as o:
        (folder / "clerk.yaml").write_text(f"{clerk}tools: [calculator]\n")
        added = await o.organism.reload()
        outcome = await o.inject("clerk", {"message": "What is 2*21?"}, wait=True)
        (folder / "clerk.yaml").unlink()
        removed = await o.organism.reload()
    assert (added.added, removed.removed) == (("clerk",), ("clerk",))
    assert "42" in outcome.replies[0]["text"]


async def test_a_new_version_of_a_prompt_is_a_new_file_and_the_old_one_stays(shipped: Path) -> None:
    folder = shipped.parent / "config" / "agents" / "A2"
    first = json.loads((folder / "v1.json").read_text())
    only_tone = {"required": ["tone"], "properties": {"tone": first["output_schema"]["properties"]["tone"]}}
    second = {
        **first,
        "version": "v2",
        "output_schema": {"type": "object", **only_tone},
        "enums": {"tone": first["enums"]["tone"]},
        "defaults": {},
    }
    with shipped.open("a") as config:
        config.write("\n  - {name: toner, description: Finds a tone, prompt_ref: A2@v2}\n")
        config.write("  - {name: labeller, description: Labels, prompt_ref: A2@v1}\n")
    (folder / "v2.json").write_text(json.dumps(second))
    async with running(shipped) as o:
        found = [await o.inject(name, {"message": "Be formal."}, wait=True) for name in ("toner", "labeller")]
    assert [json.loads(each.replies[0]["text"])["tone"] for each in found] == ["formal", "formal"]
    assert [len(json.loads(each.replies[0]["text"])) for each in found] == [1, 5]
    assert json.loads((folder / "v1.json").read_text()) == first


async def test_one_injection_is_a_thread_of_four_messages(tmp_path: Path) -> None:
    async with running(ROOT / "organism.yaml", tmp_path) as o:
        outcome = await o.inject("greeter", {"name": "Dan"}, wait=True)
        sent = [record.event for record in await o.records(MessageSent, thread=outcome.thread_id)]
    assert [(each.sender, each.to) for each in sent] == [
        ("console", "greeter"),
        ("greeter", "shouter"),
        ("shouter", "response-handler"),
        ("response-handler", "console"),
    ]
    assert outcome.thread is not None
    assert outcome.thread["status"] == "completed"
    assert outcome.thread["participants"] == ["console", "greeter", "shouter", "response-handler"]
    assert outcome.thread["message_count"] == 4
    assert outcome.replies[0]["message"] == "HELLO, DAN!"


async def test_the_log_outlives_a_restart_byte_for_byte(tmp_path: Path) -> None:
    async with running(ROOT / "organism.yaml", tmp_path) as o:
        outcome = await o.inject("greeter", {"name": "Dan"}, wait=True)
        before = await o.views.row("threads", outcome.thread_id)
        head = o.log.head
    async with running(ROOT / "organism.yaml", tmp_path) as o:
        assert await o.views.row("threads", outcome.thread_id) == before
        assert o.log.head > head
        again = await o.inject("greeter", {"name": "Ann"}, wait=True)
    assert again.replies[0]["message"] == "HELLO, ANN!"


async def test_every_message_is_ended_once(tmp_path: Path) -> None:
    async with running(ROOT / "organism.yaml", tmp_path) as o:
        for name in ("a", "b", "c"):
            await o.inject("greeter", {"name": name}, wait=True)
        records = await o.records()
    assert [record.type for record in records].count("message_sent") == 12
    lawful.every_message_ends_once(records)


PLAIN = "organism: {name: plain}\nlisteners: []\n"


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """An organism.yaml without agents of its own."""
    path = tmp_path / "organism.yaml"
    path.write_text(PLAIN)
    return path


async def test_the_researcher_calculates_and_tells_the_day_by_its_tools(plain: Path) -> None:
    """The clock of the tests stands on a Friday."""
    question = "What is 17 % of 2,340, and what day is it in Tokyo?"
    async with running(plain, None, TurnedTime().parts()) as o:
        outcome = await o.inject("researcher", {"message": question}, wait=True)
        run = await run_of(o, outcome.message_id)
        called = await o.records(ModelCalled)
    asked = [(data["name"], data["input"]) for kind, data in run if kind == "tool_call"]
    assert sorted(name for name, _ in asked) == ["calculator", "current_datetime"]
    assert ("current_datetime", {"zone": "Asia/Tokyo"}) in asked
    assert [data["isError"] for kind, data in run if kind == "tool_result"] == [False, False]
    assert run[-1] == ("done", {"stopReason": "stop"})
    assert "397.8" in outcome.replies[0]["text"]
    assert "Friday" in outcome.replies[0]["text"]
    assert {(record.event.model, record.event.provider) for record in called} == {("claude-opus-4.7", "offline")}


@pytest.mark.parametrize(
    ("name", "message"), [("concise-de", "Wie spät ist es?"), ("berlin-tour", "Was sehe ich am Alexanderplatz?")]
)
async def test_each_other_agent_answers_in_words(plain: Path, name: str, message: str) -> None:
    async with running(plain) as o:
        outcome = await o.inject(name, {"message": message}, wait=True)
        run = await run_of(o, outcome.message_id)
    assert outcome.replies[0]["text"]
    assert run[-1] == ("done", {"stopReason": "stop"})


@pytest.mark.parametrize(
    ("name", "message", "answer", "note"),
    [
        ("berlin-rag", "Der Fernsehturm ist 368 m hoch. Wie hoch ist der Fernsehturm?", "368", "index `berlin-info`"),
        ("researcher-rag", "What is 2*21?", "42", "index `matrix-rag-idx`"),
    ],
)
async def test_an_agent_whose_index_is_not_there_answers_and_says_so(
    plain: Path, name: str, message: str, answer: str, note: str
) -> None:
    async with running(plain) as o:
        outcome = await o.inject(name, {"message": message}, wait=True)
        run = await run_of(o, outcome.message_id)
    text = outcome.replies[0]["text"]
    assert answer in text
    assert f"The {note} is not there yet" in text
    assert [data["text"] for kind, data in run if kind == "message"] == [text]
    assert run[-1] == ("done", {"stopReason": "stop"})


async def test_a_message_leaves_nothing_to_the_collector_of_cycles(tmp_path: Path) -> None:
    async with running(ROOT / "organism.yaml", tmp_path) as o:
        await o.inject("greeter", {"name": "Ann"}, wait=True)
        gc.collect()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            await o.inject("greeter", {"name": "Dan"}, wait=True)
            gc.collect()
            left = [type(found) for found in gc.garbage]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
    assert [kind.__qualname__ for kind in left if kind.__module__.startswith("organism")] == []


async def test_an_organism_leaves_the_interpreter_of_its_host_as_it_is() -> None:
    before = (gc.get_freeze_count(), gc.get_threshold(), sys.getswitchinterval())
    gc.set_threshold(700, 10, 10)
    sys.setswitchinterval(0.005)
    try:
        async with running(ROOT / "organism.yaml"):
            assert (gc.get_freeze_count(), gc.get_threshold()) == (before[0], (700, 10, 10))
            assert sys.getswitchinterval() == pytest.approx(0.005)
    finally:
        gc.set_threshold(*before[1])
        sys.setswitchinterval(before[2])
