"""What a start and a verb import: a large package only if they use it, for its import takes longer than their work."""

from __future__ import annotations

from pathlib import Path

from tests.cli.command import in_a_process

SERVER = {"organism.bootstrap", "organism.agents.gateway", "organism.server", "numpy", "lxml"}
CLIENTS = {"httpx2", "openai", "anthropic"}


async def imported(*arguments: str | Path) -> set[str]:
    """The modules that a verb imports; Python names them on standard error."""
    ran = await in_a_process(*arguments, PYTHONPROFILEIMPORTTIME="1")
    return {line.rpartition("|")[2].strip() for line in ran.err.splitlines() if line.startswith("import time:")}


async def test_a_verb_that_asks_a_server_imports_no_server() -> None:
    modules = await imported("log", "events", "--url", "http://127.0.0.1:9")
    assert "httpx2" in modules
    assert not modules & SERVER


async def test_a_verb_that_reads_a_log_imports_no_http_client_and_no_server(tmp_path: Path) -> None:
    modules = await imported("log", "verify", "--data", tmp_path)
    assert "organism.log.offline" in modules
    assert not modules & (CLIENTS | SERVER)
