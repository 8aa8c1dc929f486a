"""The hello organism with tenants: a config/tokens.yaml, and the tokens that fit it."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from tests.server.served import HELLO

Wanted = Mapping[str, Mapping[str, Sequence[str] | Mapping[str, Any]]]
"""Tenants, each with its tokens: a name and its scopes, or the fields of its entry."""


def token(tenant: str, name: str) -> str:
    """The token of that name; the same each time."""
    return f"org_{name}_{hashlib.sha256(f'{tenant} {name}'.encode()).hexdigest()}"


def digest(tenant: str, name: str) -> str:
    """What the file has of it."""
    return hashlib.sha256(token(tenant, name).encode()).hexdigest()


def bearer(tenant: str, name: str) -> dict[str, str]:
    """The header that carries it."""
    return {"Authorization": f"Bearer {token(tenant, name)}"}


def write_tokens(folder: Path, wanted: Wanted) -> Path:
    """Write config/tokens.yaml below ``folder``, whole at once, as an editor would."""
    tenants = [
        {"id": tenant, "tokens": [_entry(tenant, name, given) for name, given in tokens.items()]}
        for tenant, tokens in wanted.items()
    ]
    path = folder / "config" / "tokens.yaml"
    path.parent.mkdir(exist_ok=True)
    draft = path.with_suffix(".new")
    draft.write_bytes(orjson.dumps({"tenants": tenants}))  # JSON is YAML
    draft.replace(path)
    return path


def hello_with(folder: Path, wanted: Wanted) -> Path:
    """An organism.yaml of the hello organism and a file of these tokens next to it."""
    write_tokens(folder, wanted)
    shutil.copytree(HELLO.parent / "config/agents", folder / "config/agents")
    return Path(shutil.copy(HELLO, folder / "organism.yaml"))


def _entry(tenant: str, name: str, given: Sequence[str] | Mapping[str, Any]) -> dict[str, Any]:
    fields = dict(given) if isinstance(given, Mapping) else {"scopes": list(given)}
    return {"name": name, "sha256": digest(tenant, name), **fields}
