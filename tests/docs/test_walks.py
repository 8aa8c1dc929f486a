"""The walks through the docs are run as they stand, and print what the pages say."""

from __future__ import annotations

import asyncio
import re
from asyncio.subprocess import PIPE
from pathlib import Path

from tests.server.served import TOKEN, Served, served

DOCS = Path(__file__).parents[2] / "docs"


async def ran(server: Served, folder: Path, script: str) -> str:
    """What a shell prints in the folder of the server."""
    (folder / "data").mkdir()
    (folder / "data" / "token").write_text(TOKEN)
    script = script.replace("http://127.0.0.1:8080", server.url)
    process = await asyncio.create_subprocess_exec("bash", "-eo", "pipefail", "-c", script, cwd=folder, stdout=PIPE)
    out, _ = await process.communicate()
    assert process.returncode == 0, out
    return out.decode()


def blocks(text: str, kind: str) -> str:
    """All fenced blocks of a kind."""
    return "\n".join(re.findall(rf"^```{kind}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


async def test_the_walk_through_sessions_is_run_as_it_stands(tmp_path: Path) -> None:
    walk = (DOCS / "sessions.md").read_text().split("\n## ")[1]
    script = blocks(walk, "bash")
    (quoted,) = re.findall(r"prints what the agent remembers:\n\n```\n(.*)\n```", walk)
    async with served() as server:
        lines = (await ran(server, tmp_path, script)).splitlines()
    keep_last_n, source, successor, went_on, length = lines[-5:]
    assert lines[-6] == quoted
    assert (keep_last_n, source, went_on, length) == ("2", '"db"', successor, "1")


async def test_the_walk_through_the_library_is_run_as_it_stands(tmp_path: Path) -> None:
    page = (DOCS / "library.md").read_text()
    async with served() as server:
        out = await ran(server, tmp_path, blocks(page, "bash"))
    printed = re.findall(r"^```bash\n.*?^```$\n\n```\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert out == "".join(printed)
