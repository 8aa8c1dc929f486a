"""The examples of docs/agents.md are files that run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

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
