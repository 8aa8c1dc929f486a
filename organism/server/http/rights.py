"""What each route and each WebSocket command needs (S3). The server does not start if one has no line here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from organism.config.settings import Listener
from organism.errors import Forbidden
from organism.model.ids import DEFAULT_TENANT
from organism.model.principal import Object, Principal
from organism.model.tool import ToolArguments

_NOTHING: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class Right:
    """What an operation needs: a ``scope`` (None: no token), which a token may narrow to ``objects`` (field → kind).

    ``in_body``: they come with the body, so the endpoint checks them. ``of_process``: for the tenant ``default`` alone.
    """

    scope: str | None
    objects: Mapping[str, str] = field(default_factory=dict)
    in_body: bool = False
    of_process: bool = False

    def check(self, who: Principal, fields: Mapping[str, Any] = _NOTHING) -> None:
        """Raise ``Forbidden`` unless ``who`` may do it to what ``fields`` name."""
        if self.scope is None:
            return
        if self.of_process and who.tenant != DEFAULT_TENANT:
            raise Forbidden("This concerns the whole process, and is the operator's alone.", param=_AUTHORIZATION)
        named: list[Object] = [(kind, str(fields[name])) for name, kind in self.objects.items() if fields.get(name)]
        if not who.may(self.scope, named):
            narrow = "".join(f", or {f'{self.scope}:{kind}:{name}'!r}" for kind, name in named)
            raise Forbidden(f"This needs a token with the scope {self.scope!r}{narrow}.", param=_AUTHORIZATION)

    def check_early(self, who: Principal, params: Mapping[str, str]) -> None:
        """Raise ``Forbidden`` if that is known before the body is read, which may name an object that is granted."""
        if not self.in_body or self.scope is None or not who.may_some(self.scope):
            self.check(who, params)


_AUTHORIZATION: Final = "headers.authorization"

OPEN: Final = Right(None)
READ: Final = Right("read")
_READ_AGENT: Final = Right("read", {"name": "agent"})
_READ_THREAD: Final = Right("read", {"id": "thread"})
_CONTROL_AGENT: Final = Right("control", {"name": "agent"})
_CONTROL_THREAD: Final = Right("control", {"id": "thread"})
_READ_INDEX: Final = Right("rag:read", {"index_id": "index"})
_WRITE_INDEX: Final = Right("rag:write", {"index_id": "index"})
_CHAT: Final = Right("agents:chat", {"name": "agent"})
_SESSION: Final = Right("agents:chat", {"name": "agent", "sid": "session"})
_OPERATOR: Final = Right("admin", of_process=True)

ROUTES: Final[Mapping[str, Right]] = {
    "GET /healthz": OPEN,
    "GET /readyz": OPEN,
    "GET /errors": OPEN,
    "GET /openapi.json": OPEN,
    "GET /asyncapi.json": OPEN,
    "GET /docs": OPEN,
    "GET /metrics": Right("read", of_process=True),
    "GET /organism": READ,
    "GET /organism/graph": READ,
    "GET /organism/config": _OPERATOR,
    "POST /organism/pause": Right("control"),
    "POST /organism/resume": Right("control"),
    "POST /organism/reload": _OPERATOR,
    "POST /organism/stop": _OPERATOR,
    "GET /agents": READ,
    "GET /agents/{name}": _READ_AGENT,
    "GET /agents/{name}/config": _READ_AGENT,
    "GET /agents/{name}/schema": _READ_AGENT,
    "POST /agents/{name}/pause": _CONTROL_AGENT,
    "POST /agents/{name}/resume": _CONTROL_AGENT,
    "GET /threads": READ,
    "GET /threads/{id}": _READ_THREAD,
    "GET /threads/{id}/messages": _READ_THREAD,
    "GET /threads/{a}/diff/{b}": READ,
    "POST /threads/{id}/fork": Right("inject"),
    "POST /threads/{id}/kill": _CONTROL_THREAD,
    "POST /threads/{id}/pause": _CONTROL_THREAD,
    "POST /threads/{id}/resume": _CONTROL_THREAD,
    "POST /threads/{id}/dead-letters/replay": Right("inject", {"id": "thread"}),
    "POST /threads/{id}/dead-letters/discard": _CONTROL_THREAD,
    "GET /messages": READ,
    "GET /messages/{id}": Right("read", {"id": "message"}),
    "GET /messages/{id}/why": READ,
    "POST /inject": Right("inject", {"to": "agent"}, in_body=True),
    "POST /invoke": Right("agents:chat", {"agent": "agent"}, in_body=True),
    "POST /agents/{name}/invoke": Right("agents:chat", {"name": "agent", "agent": "agent"}),
    "GET /a1/agents": Right("agents:chat"),
    "GET /a1/agents/{name}": _CHAT,
    "POST /a1/agents/{name}/chat": _CHAT,
    "GET /a1/agents/{name}/sessions": _CHAT,
    "POST /a1/agents/{name}/sessions": _CHAT,
    "GET /a1/agents/{name}/sessions/{sid}": _SESSION,
    "DELETE /a1/agents/{name}/sessions/{sid}": _SESSION,
    "GET /a1/agents/{name}/sessions/{sid}/messages": _SESSION,
    "POST /a1/agents/{name}/sessions/{sid}/messages": _SESSION,
    "POST /a1/agents/{name}/sessions/{sid}/compact": _SESSION,
    "POST /a1/agents/{name}/sessions/{sid}/uncompact": _SESSION,
    "GET /a1/agents/{name}/sessions/{sid}/lineage": _SESSION,
    "GET /a1/rag/indices": Right("rag:read"),
    "GET /a1/rag/indices/{index_id}": _READ_INDEX,
    "DELETE /a1/rag/indices/{index_id}": _WRITE_INDEX,
    "GET /a1/rag/indices/{index_id}/embedding": _READ_INDEX,
    "GET /a1/rag/indices/{index_id}/documents": _READ_INDEX,
    "POST /a1/rag/indices/{index_id}/documents": _WRITE_INDEX,
    "POST /a1/rag/indices/{index_id}/documents/append": _WRITE_INDEX,
    "GET /a1/rag/indices/{index_id}/documents/{doc_id}": _READ_INDEX,
    "PATCH /a1/rag/indices/{index_id}/documents/{doc_id}": _WRITE_INDEX,
    "DELETE /a1/rag/indices/{index_id}/documents/{doc_id}": _WRITE_INDEX,
    "POST /a1/rag/indices/{index_id}/query": _READ_INDEX,
    "POST /a1/rag/indices/{index_id}/reembed": _WRITE_INDEX,
    "GET /dead-letters": READ,
    "POST /dead-letters/{id}/replay": Right("inject", {"id": "dead_letter"}),
    "DELETE /dead-letters/{id}": Right("control", {"id": "dead_letter"}),
    "GET /approvals": READ,
    "POST /approvals/{id}/resolve": Right("control", {"id": "approval"}),
    "GET /indeterminate": READ,
    "POST /indeterminate/{id}/resolve": Right("control", {"id": "indeterminate"}),
    "GET /foreign-tools": Right("read", of_process=True),
    "POST /foreign-tools/{name}/accept": Right("control", of_process=True),
    "POST /mcp": Right("tools:execute", {"name": "tool"}, in_body=True),
    "GET /models": Right("agents:chat"),
    "GET /models/{id}": Right("agents:chat"),
    "POST /chat/completions": Right("agents:chat"),
    "POST /embeddings": Right("agents:chat"),
    "GET /tools": Right("tools:execute", {"name": "tool"}, in_body=True),
    "POST /tools/execute": Right("tools:execute", {"name": "tool"}, in_body=True),
    "GET /tenant/config": Right("tenant_config:read"),
    "PUT /tenant/config": Right("tenant_config:write"),
    "GET /billing/usage": READ,
    "GET /usage": READ,
    "GET /usage/threads/{id}": _READ_THREAD,
    "GET /usage/agents/{name}": _READ_AGENT,
    "GET /events": READ,
    "GET /log": READ,
    "POST /ws-ticket": READ,
}
"""By method and path, below /api/v1; what lies below /a1 is named in full."""

_LISTENER: Final = Right("inject", {"name": "agent"})
_TOOL: Final = Right("tools:execute", {"name": "tool"})
TOOLS: Final[Mapping[str, Right]] = {
    **dict.fromkeys(
        (
            *("calculator", "current_datetime", "wikipedia_search", "wikipedia_summary", "http_fetch"),
            *("key_value_get", "key_value_set", "key_value_list", "key_value_delete", "mcp"),
        ),
        _TOOL,
    ),
    **dict.fromkeys(
        ("rag_query", "rag_index_list", "rag_index_describe", "rag_doc_list", "rag_doc_get"), Right("rag:read")
    ),
    **dict.fromkeys(
        ("rag_index_create", "rag_doc_append", "rag_doc_patch", "rag_doc_delete", "rag_index_delete"),
        Right("rag:write"),
    ),
}
"""What each shipped tool needs, besides ``tools:execute`` for the route; ``mcp``: those of MCP servers."""

SOCKET: Final = READ
"""What opens ``/ws``."""

COMMANDS: Final[Mapping[str, Right]] = {
    "subscribe": READ,
    "inject": Right("inject", {"to": "agent"}),
    "kill": Right("control", {"thread_id": "thread"}),
    "pause": Right("control", {"agent": "agent", "thread_id": "thread"}),
    "resume": Right("control", {"agent": "agent", "thread_id": "thread"}),
    "resolve": Right("control", {"approval": "approval"}),
    "auth": READ,
    "ping": READ,
}
"""By the name of the WebSocket command."""


def tool_right(tool: Listener) -> Right:
    """What calling a tool needs besides the route's right. Raises ``LookupError`` for a shipped one without a line."""
    if not tool.is_shipped:
        return _LISTENER
    return right_of(TOOLS, "mcp" if tool.payload_class is ToolArguments else tool.name)


def gone_tool_right(name: str) -> Right:
    """What the recorded answer of a removed tool needs, as far as its name tells."""
    return TOOLS.get(name, _LISTENER)


def right_of(rights: Mapping[str, Right], operation: str) -> Right:
    """The right of an operation. Raises ``LookupError`` if the table has none."""
    if (right := rights.get(operation)) is None:
        raise LookupError(f"{operation!r} has no line in organism/server/http/rights.py; say there what it needs.")
    return right
