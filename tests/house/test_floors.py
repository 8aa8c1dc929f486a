"""Each import contract bites: shown an empty copy of the house with a wrong import for each, it finds them all."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.tree import ROOT, read_repository

WRONG = (
    ("floors", "organism/log/memory.py", "from organism.pump import pump"),
    ("floors", "organism/tenants.py", "from organism import bootstrap"),
    ("floors", "organism/testing.py", "from organism import cli"),
    ("floors", "organism/events/vocabulary.py", "from organism.model import ids"),
    ("floors", "organism/codec/seal.py", "if TYPE_CHECKING:\n    from organism.log import sqlite"),
    ("floors", "organism/unheard_of.py", ""),
    ("cycles", "organism/pump/shards.py", "from organism.pump import pump"),
    ("folds", "organism/views/approvals.py", "from organism.views import threads"),
    ("server", "organism/server/push/frames.py", "from organism.server.ws import socket"),
    ("routes", "organism/server/api/agents.py", "from organism.server.api import threads"),
    ("turns", "organism/server/turns/run_result.py", "from organism.server.turns import answer"),
    ("costs", "organism/server/surfaces/chat.py", "from organism.server.turns import costs"),
    ("handlers", "handlers/hello.py", "import handlers.summarizer"),
    ("front-door", "handlers/hello.py", "from organism.model import ids"),
    ("no-handler", "organism/bootstrap.py", "from handlers import hello"),
    ("xml", "organism/server/json.py", "from lxml import etree"),
    ("xml", "organism/pump/decide/inject.py", "import xml.etree.ElementTree"),
    ("sqlite", "organism/pump/pump.py", "import sqlite3"),
    ("sqlite", "organism/codec/xml.py", "import aiosqlite"),
    ("connections", "organism/server/api/threads.py", "from organism.sqlite import driver"),
    ("patterns", "organism/codec/xml.py", "import re2"),
    ("vectors", "organism/rag/embed.py", "import hnswlib"),
    ("http", "organism/pump/pump.py", "from starlette.responses import Response"),
    ("http", "organism/bootstrap.py", "import uvicorn"),
    ("terminal", "organism/server/app.py", "import typer"),
    ("yaml", "organism/bootstrap.py", "import ruamel.yaml"),
    ("providers", "organism/rag/embed.py", "import openai"),
    ("prompts", "organism/agents/agent_prompt.py", "from organism.agents import llm_client"),
    ("prompts", "organism/agents/agent_factory.py", "from organism.agents import llm_client"),
    ("prompts", "organism/agents/agent_prompt.py", "from organism.agents.providers import openai"),
    ("client", "organism/agents/llm_client.py", "from organism.agents import agent_prompt"),
    ("client", "organism/agents/providers/openai.py", "from organism.agents import agent_prompt"),
    ("mcp", "organism/server/app.py", "import mcp"),
    ("mcp", "organism/bootstrap.py", "import mcp"),
    ("decisions", "organism/pump/rules.py", "import asyncio"),
    ("decisions", "organism/views/threads.py", "import structlog"),
    ("vocabulary", "organism/model/ids.py", "import orjson"),
    ("vocabulary", "organism/events/stored.py", "import orjson"),
)


def _write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    (file.parent / "__init__.py").touch()
    with file.open("a") as module:
        module.write(f"{text}\n")


def _findings(root: Path) -> dict[str, str]:
    """What import-linter finds, by the name of the broken contract."""
    run = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-logo", "--no-cache", "--config", ROOT / ".importlinter"],
        cwd=root,
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        check=False,
        text=True,
    )
    assert "Contracts: " in run.stdout, run.stdout + run.stderr
    names = re.findall(r"^(.+) BROKEN", run.stdout, re.MULTILINE)
    _, _, details = run.stdout.partition("Broken contracts\n")
    parts = re.split(r"^(.+)\n-{10,}\n", details, flags=re.MULTILINE)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert set(names) == set(found)
    return found


def _sentences() -> dict[str, str]:
    contracts = (ROOT / ".importlinter").read_text()
    return dict(re.findall(r"^\[importlinter:contract:(.+)\]\nname = (.+)$", contracts, re.MULTILINE))


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is found in a house with every wrong import."""
    root = tmp_path_factory.mktemp("house")
    for source in read_repository():
        if source.path.startswith(("organism/", "handlers/")) and source.path.endswith(".py"):
            _write(root, source.path, "")
    _write(root, "organism/pump/pump.py", "from organism.pump import shards")  # the other half of the cycle
    for _, path, line in WRONG:
        _write(root, path, line)
    return _findings(root)


@pytest.mark.parametrize(("contract", "path", "line"), WRONG)
def test_one_wrong_import_breaks_its_contract(findings: dict[str, str], contract: str, path: str, line: str) -> None:
    importer = Path(path).stem
    imported = re.search(r"(?:from (\S+) )?import (\S+)", line)
    found = findings[_sentences()[contract]]
    if imported is None:
        assert f"- organism.{importer}\n" in found
        return
    module = ".".join(filter(None, imported.groups()))
    name = module.rpartition(".")[2] if module.startswith(("organism", "handlers")) else module.partition(".")[0]
    assert re.search(rf"\b{importer} -> \S*\b{name}\b", found), found


def test_each_contract_is_tried() -> None:
    assert {contract for contract, _, _ in WRONG} == set(_sentences())
