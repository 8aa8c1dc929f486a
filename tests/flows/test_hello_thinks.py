"""The hello organism with a greeter that a model runs: its handler is left out, a model is named, all else stays."""

from __future__ import annotations

import shutil
from pathlib import Path

from organism.testing import running

ROOT = Path(__file__).parents[2]
SCRIPT = """
answers:
  - when: {user: Dan, system: You are a friendly greeter.}
    calls: [{name: shouter, arguments: {message: "Hello, Dan!", original_sender: console}}]
  - when: {tool_result: no_reply}
    text: I greeted Dan.
"""


def thinking_hello(folder: Path) -> Path:
    """organism.yaml with a greeter without handler."""
    for name in ("handlers", "config/agents"):
        shutil.copytree(ROOT / name, folder / name)
    (folder / "script.yaml").write_text(SCRIPT)
    config = (ROOT / "organism.yaml").read_text()
    handler = "    handler: handlers.hello.greet\n"
    models = next(line for line in config.splitlines(keepends=True) if line.startswith("models:"))
    assert handler in config
    config = config.replace(handler, "    model: talker\n")
    path = folder / "organism.yaml"
    path.write_text(config.replace(models, f"{models}  talker: {{provider: scripted, script: script.yaml}}\n"))
    return path


async def test_a_greeter_without_a_handler_greets_by_its_model(tmp_path: Path) -> None:
    async with running(thinking_hello(tmp_path)) as o:
        outcome = await o.inject("greeter", {"name": "Dan"}, wait=True)
        sent = [(event.data["from"], event.data["to"]) for event in await o.events("message_sent")]
    assert sent == [
        ("console", "greeter"),
        ("greeter", "shouter"),
        ("shouter", "response-handler"),
        ("response-handler", "console"),
        ("greeter", "console"),
    ]
    assert outcome.replies == ({"message": "HELLO, DAN!"}, {"text": "I greeted Dan.", "citations": []})
    assert outcome.thread is not None
    assert outcome.thread["status"] == "completed"


async def test_the_greeter_that_ships_keeps_its_handler(tmp_path: Path) -> None:
    async with running(ROOT / "organism.yaml") as o:
        greeter = o.organism.settings.listener("greeter")
        assert greeter is not None
        assert greeter.prompt == "You are a friendly greeter."
        assert greeter.handler_path == "handlers.hello.greet"
