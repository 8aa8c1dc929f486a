"""The examples of docs/agents.md are files that run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from organism.agents.providers.offline import Offline
from organism.agents.providers.scripted import Scripted
from organism.model.completion import ModelRequest, TextDelta, ToolCall
from organism.testing import running

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "agents.md"
SECTION = re.compile(r"^## An agent, a tool and a test\n(.*?)^## ", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"^```(?:yaml|python)\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A folder with the files of the page."""
    section = SECTION.search(PAGE.read_text())
    assert section is not None
    files = FILE.findall(section[1])
    assert len(files) == section[1].count("```") // 2
    for name, text in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "handlers" / "__init__.py").touch()
    return tmp_path


def test_the_test_of_the_page_passes(written: Path) -> None:
    options = ["-q", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto", "--rootdir", str(written)]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "tests"], cwd=written, capture_output=True, check=False, text=True
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "2 passed" in run.stdout


async def test_the_agent_that_needs_nothing_answers(written: Path) -> None:
    async with running(written / "more" / "organism.yaml") as o:
        outcome = await o.inject("front-desk", {"message": "What is 2*21?"}, wait=True)
    assert "42" in outcome.replies[0]["text"]


async def test_the_script_of_the_page_is_read_and_answers_as_it_says(tmp_path: Path) -> None:
    _, _, section = PAGE.read_text().partition("### A model from a script")
    script = re.search(r"^```yaml\n(answers:.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert script is not None
    (tmp_path / "answers.yaml").write_text(script[1])
    model = Scripted.read(tmp_path / "answers.yaml")
    request = ModelRequest("small", ({"role": "user", "content": "So what is 2*21?"},))
    parts = [part async for part in model.stream(request)]
    assert [part.name for part in parts if isinstance(part, ToolCall)] == ["calculator"]


async def test_the_offline_model_answers_as_the_page_says() -> None:
    said, answer = (
        ("Mein Lieblingssport ist Tennis.", "Welcher Sport ist mein Liebling?"),
        "„Mein Lieblingssport ist Tennis.“",
    )
    page = " ".join(PAGE.read_text().split())
    assert [text for text in (*said, answer) if text not in page] == []
    request = ModelRequest("offline", tuple({"role": "user", "content": text} for text in said))
    parts = [part async for part in Offline().stream(request)]
    assert "".join(part.text for part in parts if isinstance(part, TextDelta)) == answer
