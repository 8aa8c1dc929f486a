"""Every route has a verb, or a reason to have none."""

from __future__ import annotations

from typing import Any

from structlog.testing import capture_logs
from typer.main import get_command

from organism.cli.app import make_app
from organism.server.api import library, sessions
from organism.server.app import FOR_CLIENTS, RESOURCES, ROUTES
from organism.server.surfaces import chat
from tests.cli.command import organism
from tests.server.served import TOKEN, Served

LINES = {
    "GET /errors": "errors",
    "GET /organism": "status",
    "GET /organism/config": "config",
    "GET /organism/graph": "graph",
    "POST /organism/pause": "pause --all",
    "POST /organism/resume": "resume --all",
    "POST /organism/reload": "reload",
    "POST /organism/stop": "stop",
    "GET /agents": "agents",
    "GET /agents/{name}": "agents greeter",
    "GET /agents/{name}/config": "agents greeter --config",
    "GET /agents/{name}/schema": "agents greeter --schema",
    "POST /agents/{name}/pause": "pause greeter",
    "POST /agents/{name}/resume": "resume greeter",
    "GET /threads": "threads",
    "GET /threads/{id}": "threads T",
    "GET /threads/{id}/messages": "messages --thread T",
    "POST /threads/{id}/kill": "kill T",
    "POST /threads/{id}/pause": "pause --thread T",
    "POST /threads/{id}/resume": "resume --thread T",
    "POST /threads/{id}/dead-letters/replay": "dead-letters replay --thread T",
    "POST /threads/{id}/dead-letters/discard": "dead-letters discard --thread T",
    "GET /messages": "messages",
    "GET /messages/{id}": "messages M",
    "GET /messages/{id}/why": "messages M --why",
    "POST /inject": 'inject greeter {"name":"Dan"}',
    "GET /dead-letters": "dead-letters list",
    "POST /dead-letters/{id}/replay": "dead-letters replay M",
    "DELETE /dead-letters/{id}": "dead-letters discard M",
    "GET /approvals": "approvals list",
    "POST /approvals/{id}/resolve": "approvals resolve A approve",
    "GET /indeterminate": "indeterminate list",
    "POST /indeterminate/{id}/resolve": "indeterminate resolve M:1 redo",
    "GET /foreign-tools": "tools accept",
    "POST /foreign-tools/{name}/accept": "tools accept play__add",
    "GET /tools": "tools list",
    "POST /tools/execute": 'tools run calculator {"expression":"2*21"}',
    "GET /billing/usage": "usage --by hour",
    "GET /tenant/config": "tenant",
    "PUT /tenant/config": "tenant on_busy=steer",
    "GET /log": "log events",
    "GET /find": "find Dan",
    "GET /usage": "usage",
    "GET /usage/threads/{id}": "usage --thread T",
    "GET /usage/agents/{name}": "usage --agent greeter",
    "GET /a1/rag/indices": "rag list",
    "DELETE /a1/rag/indices/{index_id}": "rag rm nothing",
    "GET /a1/rag/indices/{index_id}/documents": "rag docs nothing",
    "GET /a1/rag/indices/{index_id}/documents/{doc_id}": "rag docs nothing D",
    "DELETE /a1/rag/indices/{index_id}/documents/{doc_id}": "rag rm nothing D",
    "POST /a1/rag/indices/{index_id}/files": "rag add files LICENSE",
    "POST /a1/rag/indices/{index_id}/query": "rag query nothing hello",
    "POST /a1/rag/indices/{index_id}/reembed": "rag reembed nothing builtin",
    "POST /a1/agents/{name}/chat": "chat nobody hello",
    "POST /a1/agents/{name}/sessions/{sid}/messages": "chat nobody hello --session S",
    "GET /a1/agents/{name}/sessions/{sid}/messages": "chat nobody --session S",
}
"""A command line for each route. What it names need not be there: that it asks for it is the point."""

REASONS = {
    "GET /healthz": "for probes; any answer at all says that the server is up",
    "GET /readyz": "a probe's; `organism doctor` asks it in passing",
    "POST /threads/kill": "for boards; `organism kill` ends one",
    "POST /threads/pause": "for boards; `organism pause --thread` pauses one",
    "POST /threads/resume": "for boards; `organism resume --thread` resumes one",
    "POST /dead-letters/replay": "`organism dead-letters replay --group`, which has groups only when there are some",
    "POST /dead-letters/discard": "`organism dead-letters discard --group`, the same",
    "GET /messages/{id}/run": "for boards; `organism tail` shows runs as they go",
    "POST /invoke": "for programs; `organism chat` talks with agents",
    "POST /agents/{name}/invoke": "the same",
    "GET /a1/agents": "for programs; `organism agents` lists them",
    "GET /a1/agents/{name}": "for programs; `organism agents NAME --config` shows it",
    "POST /a1/agents/{name}/sessions": "`organism chat NAME` begins one with the first message",
    "GET /a1/sessions": "for the programs of users; operators see `organism threads`",
    "GET /a1/agents/{name}/sessions": "for the programs of users; operators see `organism threads`",
    "GET /a1/agents/{name}/sessions/{sid}": "for the programs of users",
    "DELETE /a1/agents/{name}/sessions/{sid}": "for the programs of users",
    "GET /a1/agents/{name}/sessions/{sid}/lineage": "for the programs of users",
    "POST /a1/agents/{name}/sessions/{sid}/compact": "/compact in a conversation of `organism chat`",
    "POST /a1/agents/{name}/sessions/{sid}/uncompact": "for the programs of users",
    "GET /a1/rag/indices/{index_id}/embedding": "`organism rag add` shows it while it waits",
    "GET /a1/rag/indices/{index_id}": "for programs; `organism rag list` shows the same",
    "POST /a1/rag/indices/{index_id}/documents": "for programs; `organism rag add` sends files",
    "POST /a1/rag/indices/{index_id}/documents/append": "for programs; `organism rag add` sends files",
    "PATCH /a1/rag/indices/{index_id}/documents/{doc_id}": "for programs; `organism rag add` takes changed files",
    "GET /events": "the twin of /ws, which `organism tail` watches",
    "POST /ws-ticket": "for a page, which can send no header with its handshake",
    "GET /organism/snapshot": "for boards; `organism status`, `agents` and `threads` show parts of it",
    "GET /organism/activity": "for boards, which draw it",
    "GET /me": "for programs that are handed a token",
    "GET /openapi.json": "a document for programs",
    "GET /asyncapi.json": "a document for programs",
    "GET /docs": "a page for browsers",
    "GET /metrics": "for Prometheus, in its own format",
    "GET /models/{id}": "for programs that speak OpenAI's API",
    "GET /models": "for programs that speak OpenAI's API; `organism config` shows the models to operators",
    "POST /embeddings": "for programs that speak OpenAI's API",
    "POST /chat/completions": "for programs that speak OpenAI's API; `organism chat` talks with agents",
    "POST /mcp": "for programs that speak MCP; `organism mcp` offers the same to those that run it",
}


def operations() -> list[str]:
    """Every route as ``METHOD /path``, below /api/v1 or /v1, or as it is below /a1."""
    below_a1 = (*sessions.ROUTES, *chat.ROUTES, *library.ROUTES)
    return [f"{route.method} {route.path}" for route in (*RESOURCES, *FOR_CLIENTS, *below_a1)]


def test_every_route_has_a_verb_or_a_reason_to_have_none() -> None:
    assert [operation for operation in operations() if operation not in LINES and operation not in REASONS] == []


def test_every_listed_route_exists() -> None:
    assert [operation for operation in LINES if operation not in operations()] == []
    served = {route.operation for route in ROUTES}
    assert [operation for operation in REASONS if operation not in served] == []


async def test_each_verb_asks_for_its_route(hello: Served) -> None:
    for operation, words in sorted(LINES.items(), key=lambda line: line[1] == "stop"):
        with capture_logs() as logged:
            ended = await organism(*words.split(), ORGANISM_URL=hello.url, ORGANISM_TOKEN=TOKEN)
        method, path = operation.split(" ")
        routes = [entry["route"] for entry in logged if entry["event"] == "request" and entry["method"] == method]
        assert not {f"/api/v1{path}", f"/v1{path}", path}.isdisjoint(routes), operation
        assert ended.code in {0, 5}, ended


def test_each_verb_has_json() -> None:
    missing = [
        words
        for words, command in leaves(get_command(make_app()), ())
        if words != ("serve",) and "--json" not in [name for option in command.params for name in option.opts]
    ]
    assert missing == []


def leaves(command: Any, words: tuple[str, ...]) -> list[tuple[tuple[str, ...], Any]]:
    """Every verb below a command, with its words."""
    if not hasattr(command, "commands"):
        return [(words, command)]
    return [leaf for name, below in command.commands.items() for leaf in leaves(below, (*words, name))]
