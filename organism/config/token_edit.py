"""Adds and removes entries of config/tokens.yaml: other lines stay, edits are serialized and atomic.

ruamel.yaml would take a comment away with the entry before it, so lines are put in or taken out; only where entries
share a line (``tokens: [{…}]``) is the document written again as a whole.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML

from organism.config.faults import Faults
from organism.config.tokens import TOKENS_FILE, TokenSection, parse_tokens, read_tokens
from organism.config.yaml import Node, read_yaml
from organism.errors import ConfigInvalid, Conflict, NotFound

_PRIVATE: Final = 0o600
_HEAD: Final = """\
# Who may use this organism: tenants, and the tokens that open them. `organism token` edits this file; a running server
# takes over an edit within a second. Of a token only the SHA-256 of its text stands here.
tenants: []
"""


def added(text: str, tenant_id: str, token: TokenSection) -> str:
    """The text with the entry, and with its tenant's if it is new. Raises ``Conflict`` or ``ConfigInvalid``."""
    if token.name in _names_of(text, tenant_id):
        raise Conflict(f"The tenant {tenant_id!r} has a token named {token.name!r}; revoke it or choose another name.")
    entry = {key: value for key, value in json.loads(json.dumps(asdict(token))).items() if value}
    whole = _rewritten(text, tenant_id, lambda tokens: [*tokens, entry])
    return _better(_with_entry(text, tenant_id, entry), whole)


def removed(text: str, tenant_id: str, name: str) -> str:
    """The text without the entry. Raises ``NotFound`` if there is none, ``ConfigInvalid`` if the text is not valid."""
    names = _names_of(text, tenant_id)
    if name not in names:
        raise NotFound(f"The tenant {tenant_id!r} has no token named {name!r}.")
    at = names.index(name)
    whole = _rewritten(text, tenant_id, lambda tokens: [*tokens[:at], *tokens[at + 1 :]])
    return _better(_without_entry(text, tenant_id, at), whole)


def _names_of(text: str, tenant_id: str) -> list[str]:
    return [token.name for tenant in parse_tokens(text) if tenant.id == tenant_id for token in tenant.tokens]


def _rewritten(text: str, tenant_id: str, change: Callable[[list[Any]], list[Any]]) -> str:
    """The document with other tokens of the tenant, which is added if there is none."""
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 10_000
    yaml.indent(mapping=2, sequence=4, offset=2)
    root = yaml.load(text)
    tenant = next((each for each in root["tenants"] if each["id"] == tenant_id), None)
    if tenant is None:
        tenant = {"id": tenant_id}
        root["tenants"] = [*root["tenants"], tenant]
    tenant["tokens"] = change(list(tenant.get("tokens") or []))
    written = io.StringIO()
    yaml.dump(root, written)
    return written.getvalue()


def _better(by_lines: str | None, whole: str) -> str:
    """The text as edited by lines, if it says exactly what the document written as a whole says."""
    wanted = parse_tokens(whole)
    with suppress(ConfigInvalid):
        if by_lines is not None and parse_tokens(by_lines) == wanted:
            return by_lines
    return whole


def _with_entry(text: str, tenant_id: str, entry: Mapping[str, Any]) -> str | None:
    lines, tenants = text.splitlines(), _tenants(text)
    entries = _entries(tenants, tenant_id)
    if entries:
        return _replaced(lines, _last_line(entries[-1]), 0, _written(entry, _indent(lines, entries[-1])))
    if not tenants or tenant_id in tenants:
        return None
    last = list(tenants.values())[-1]
    indent = _indent(lines, last)
    head = [" " * indent + f"- id: {json.dumps(tenant_id)}", " " * indent + "  tokens:"]
    return _replaced(lines, _last_line(last), 0, [*head, *_written(entry, indent + 4)])


def _written(entry: Mapping[str, Any], indent: int) -> list[str]:
    """The entry as lines, its dash so far from the left; JSON is YAML, and always quoted where it must be."""
    lines = [f"{key}: {json.dumps(value)}" for key, value in entry.items()]
    return [" " * indent + ("- " if at == 0 else "  ") + line for at, line in enumerate(lines)]


def _without_entry(text: str, tenant_id: str, at: int) -> str:
    lines, entries = text.splitlines(), _entries(_tenants(text), tenant_id)
    first = entries[at].line
    rest = [] if len(entries) > 1 else [" " * _indent(lines, entries[at]) + "[]"]
    return _replaced(lines, first - 1, _last_line(entries[at]) - first + 1, rest)


def _tenants(text: str) -> dict[str, Node]:
    root = read_yaml(text, Faults(TOKENS_FILE.name)) or Node({}, 1)
    return {str(node.nearest(("id",)).value): node for _, node in root.nearest(("tenants",)).items()}


def _entries(tenants: Mapping[str, Node], tenant_id: str) -> list[Node]:
    """The nodes of a tenant's tokens."""
    tokens = dict(tenants[tenant_id].items()).get("tokens") if tenant_id in tenants else None
    return [node for _, node in tokens.items()] if tokens is not None else []


def _last_line(node: Node) -> int:
    return max([node.line, *map(_last_line, dict(node.items()).values())])


def _indent(lines: list[str], node: Node) -> int:
    line = lines[node.line - 1]
    return len(line) - len(line.lstrip(" "))


def _replaced(lines: list[str], at: int, count: int, new: list[str]) -> str:
    """The text with ``count`` lines after the first ``at`` replaced by the new ones."""
    return "\n".join([*lines[:at], *new, *lines[at + count :]]) + "\n"


# ── the file on the disk ─────────────────────────────────────────────────────────────────────────────────────────────


def edit_tokens(path: Path, edit: Callable[[str], str]) -> None:
    """Write ``edit(text)`` in place of the text. Raises ``ConfigInvalid``, or what ``edit`` raises: no change."""
    with _alone(path.parent):
        read_tokens(path)
        _put(path, edit(path.read_text("utf-8-sig") if path.exists() else _HEAD))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One edit at a time: of two at once, the later would undo the earlier."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _put(path: Path, text: str) -> None:
    """Put the whole text in the file's place, on the disk; where a link leads there, the link stays."""
    path = path.resolve()
    mode = path.stat().st_mode & 0o777 if path.exists() else _PRIVATE
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
