"""Edits of config/tokens.yaml: one entry more or less, every other line as it was; one edit at a time, whole or not.

The naive way loads the document, changes it and writes it anew; a comment then goes where ruamel.yaml has attached it,
away with the entry before it. So lines are put in or taken out; only where entries share a line (``tokens: [{…}]``) the
document is written anew, which keeps the comments, if not their places.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML

from organism.config.faults import Faults
from organism.config.tokens import EVERY_MODEL, TOKENS_FILE, TenantEntry, parse_tokens, read_tokens
from organism.config.yaml import Node, read_yaml
from organism.errors import ConfigInvalid, Conflict, NotFound
from organism.model.principal import Principal

_DASH: Final = "- "
_PRIVATE: Final = 0o600
_HEAD: Final = """\
# Who may use this organism: tenants, and the tokens that open them. `organism token` edits this file; a running server
# takes over an edit within a second. Of a token only the SHA-256 of its text stands here.
tenants: []
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """An entry to be written; see ``config/tokens`` for what its fields mean."""

    tenant: str
    name: str
    sha256: str
    scopes: tuple[str, ...]
    models: tuple[str, ...] = (EVERY_MODEL,)
    tenant_admin: bool = False
    expires: str = ""
    rate: int = 0

    def fields(self) -> dict[str, Any]:
        """What stands in the file: what is not given is left out."""
        always = {"name": self.name, "sha256": self.sha256, "scopes": list(self.scopes), "models": list(self.models)}
        given = {"tenant_admin": self.tenant_admin, "expires": self.expires, "rate": self.rate}
        return always | {key: value for key, value in given.items() if value}

    def lines(self, indent: int) -> list[str]:
        """The entry as lines, its dash so far from the left; JSON is YAML, and always quoted where it must be."""
        written = [f"{key}: {json.dumps(value)}" for key, value in self.fields().items()]
        return [" " * indent + (_DASH if at == 0 else "  ") + line for at, line in enumerate(written)]


def added(text: str, token: NewToken) -> str:
    """The text with the entry, and with its tenant's if it is new. Raises ``Conflict`` or ``ConfigInvalid``."""
    before = parse_tokens(text)
    tokens = _tokens_of(before, token.tenant)
    if any(each.name == token.name for each in tokens):
        raise Conflict(
            f"The tenant {token.tenant!r} has a token named {token.name!r}; revoke it or choose another name."
        )
    entry = token.fields()

    def by_document(root: Any) -> None:
        tenant = next((each for each in root["tenants"] if each["id"] == token.tenant), None)
        if tenant is None:
            root["tenants"] = [*root["tenants"], {"id": token.tenant, "tokens": [entry]}]
        else:
            tenant["tokens"] = [*(tenant.get("tokens") or []), entry]

    whole = _rewritten(text, by_document)
    return _by_lines(lambda: _with_entry(text, token), parse_tokens(whole)) or whole


def removed(text: str, tenant_id: str, name: str) -> str:
    """The text without the entry. Raises ``NotFound`` if there is none, ``ConfigInvalid`` if the text is not valid."""
    before = parse_tokens(text)
    names = [each.name for each in _tokens_of(before, tenant_id)]
    if name not in names:
        raise NotFound(f"The tenant {tenant_id!r} has no token named {name!r}.")
    at = names.index(name)

    def by_document(root: Any) -> None:
        tenant = next(each for each in root["tenants"] if each["id"] == tenant_id)
        del tenant["tokens"][at]

    whole = _rewritten(text, by_document)
    return _by_lines(lambda: _without_entry(text, tenant_id, at), parse_tokens(whole)) or whole


def _tokens_of(tenants: tuple[TenantEntry, ...], tenant_id: str) -> tuple[Principal, ...]:
    return next((each.tokens for each in tenants if each.id == tenant_id), ())


def _rewritten(text: str, change: Callable[[Any], None]) -> str:
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 10_000
    yaml.indent(mapping=2, sequence=4, offset=2)
    root = yaml.load(text)
    change(root)
    written = io.StringIO()
    yaml.dump(root, written)
    return written.getvalue()


def _by_lines(edit: Callable[[], str | None], wanted: tuple[TenantEntry, ...]) -> str | None:
    """The text as edited by lines, if it says exactly what was wanted."""
    text = edit()
    try:
        return text if text is not None and parse_tokens(text) == wanted else None
    except ConfigInvalid:
        return None


def _with_entry(text: str, token: NewToken) -> str | None:
    lines = text.splitlines()
    entries = _entries(text, token.tenant)
    if entries:
        return _replaced(lines, _last_line(entries[-1]), 0, token.lines(_indent(lines, entries[-1])))
    tenants = [node for _, node in _tenants(text)]
    if not tenants or any(tenant_id == token.tenant for tenant_id, _ in _tenants(text)):
        return None
    indent = _indent(lines, tenants[-1])
    head = [" " * indent + f"- id: {json.dumps(token.tenant)}", " " * indent + "  tokens:"]
    return _replaced(lines, _last_line(tenants[-1]), 0, [*head, *token.lines(indent + 4)])


def _without_entry(text: str, tenant_id: str, at: int) -> str | None:
    lines = text.splitlines()
    entries = _entries(text, tenant_id)
    first = entries[at].line
    rest = [] if len(entries) > 1 else [" " * _indent(lines, entries[at]) + "[]"]
    return _replaced(lines, first - 1, _last_line(entries[at]) - first + 1, rest)


def _tenants(text: str) -> list[tuple[str, Node]]:
    root = read_yaml(text, Faults(TOKENS_FILE.name))
    tenants = dict(root.items())["tenants"] if root is not None else Node((), 1)
    return [(str(dict(node.items())["id"].value), node) for _, node in tenants.items()]


def _entries(text: str, tenant_id: str) -> list[Node]:
    """The nodes of a tenant's tokens."""
    tenant = next((node for each, node in _tenants(text) if each == tenant_id), None)
    tokens = dict(tenant.items()).get("tokens") if tenant is not None else None
    return [node for _, node in tokens.items()] if tokens is not None else []


def _last_line(node: Node) -> int:
    return max(each.line for each in _all(node))


def _all(node: Node) -> Iterator[Node]:
    yield node
    for _, inner in node.items():  # noqa: PERF102 - a node is no dict
        yield from _all(inner)


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
    """One edit at a time: of two at once the later would undo the earlier."""
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
