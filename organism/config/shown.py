"""Which parts of the configuration are shown, and which are secret (S30).

Shown are the keys that the records of the configuration declare (``load`` refuses any other): of a secret only the name
of its variable, and of an address no part that may carry a credential.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypedDict
from urllib.parse import urlsplit, urlunsplit

from msgspec import Meta

from organism.config.settings import Limits, Listener, Model, Retry, Settings, Taint
from organism.config.tools import McpServer, Tools
from organism.model import words
from organism.model.redact import NAMED

_IN_FORCE: Final = (
    "max_concurrent", "timeout_s", "max_payload_bytes", "broadcast", "blocking", "confirm", "approval",
    "brings_outside_text",
)  # fmt: skip


class OrganismSection(TypedDict):
    """The section `organism`."""

    name: Annotated[str, Meta(examples=["hello-world"])]
    imports: Annotated[list[str], Meta(examples=[["handlers"]])]
    charter: Annotated[
        str | bool,
        Meta(description="The file that every prompt begins with; true: the usual one, false: none.", examples=[True]),
    ]


class Section(TypedDict, total=False):
    """A listener's section of organism.yaml, or the file of a conversational agent: the keys that stand there."""

    name: words.AgentName
    payload_class: Annotated[str, Meta(examples=["handlers.hello.Greeting"])]
    handler: Annotated[str, Meta(examples=["handlers.hello.greet"])]
    description: Annotated[str, Meta(examples=["Greets whoever is named"])]
    agent: bool
    peers: list[words.AgentName]
    prompt: Annotated[str, Meta(description="Its text for `admin` alone, else `sha256:…`.", examples=["Greet."])]
    prompt_ref: Annotated[str, Meta(examples=["greeter"])]
    model: Annotated[str, Meta(examples=["default"])]
    tools: list[Annotated[str, Meta(examples=["calculate"])]]
    budget: words.Object
    max_concurrent: Annotated[int, Meta(examples=[5])]
    timeout_s: Annotated[float, Meta(examples=[30.0])]
    max_payload_bytes: Annotated[int, Meta(examples=[262144])]
    broadcast: bool
    blocking: bool
    confirm: bool
    approval: bool
    brings_outside_text: bool
    invoke: list[Literal["batch", "stream", "force"]]
    system_prompt: Annotated[str, Meta(description="As `prompt`, in an agent's file.", examples=["Be exact."])]
    max_tokens: Annotated[int, Meta(examples=[512])]
    temperature: Annotated[float, Meta(examples=[0.3])]
    rag_index: Annotated[str, Meta(examples=["berlin-info"])]
    rag_top_k: Annotated[int, Meta(examples=[5])]
    taint: Taint
    group: Annotated[str, Meta(examples=["Front office"])]


class Configuration(TypedDict):
    """organism.yaml as it is in force, defaults filled in, without anything secret."""

    organism: OrganismSection
    limits: Limits
    retry: Retry
    models: words.Object
    embeddings: words.Object
    tools: words.Object
    fx: words.Object
    listeners: list[Section]


def shown_settings(settings: Settings) -> dict[str, Any]:
    """organism.yaml as it is in force, prompts and defaults included: it is for the operator."""
    return {
        "organism": {
            "name": settings.name,
            "imports": list(settings.imports),
            "charter": settings.charter.written,
        },
        "limits": {key: value for key, value in asdict(settings.limits).items() if value is not None},
        "retry": asdict(settings.retry),
        "models": {name: _model(model, settings.folder) for name, model in settings.models.items()},
        "embeddings": {name: _embedding(section) for name, section in settings.embeddings.items()},
        "tools": _tools(settings.tools),
        "fx": dict(settings.fx),
        "listeners": [
            _in_force(listener) for listener in settings.listeners if not (listener.is_shipped or _is_file(listener))
        ],
    }


def shown_section(listener: Listener, *, with_prompt: bool) -> dict[str, Any]:
    """A listener's section, or an agent's file, as it was written; in place of a prompt's text its SHA-256 (S23)."""
    section = dict(listener.section)
    for key in ("prompt", "system_prompt"):
        if key in section:
            section[key] = shown_prompt(section[key], is_plain=with_prompt)
    return section


def shown_prompt(text: str, *, is_plain: bool) -> str:
    """A prompt's text, or in its place its SHA-256 (S23)."""
    return text if is_plain else f"sha256:{sha256(text.encode()).hexdigest()}"


def _is_file(listener: Listener) -> bool:
    """Whether its section is the file of an agent: no section of organism.yaml has that key."""
    return "system_prompt" in listener.section


def _in_force(listener: Listener) -> dict[str, Any]:
    """The section with what the limits and the defaults add to it."""
    lists = {"peers": list(listener.peers), "invoke": list(listener.invoke)}
    named = {"agent": listener.is_agent, "payload_class": listener.payload_class_path, **lists}
    return {**listener.section, **named, **{key: getattr(listener, key) for key in _IN_FORCE}}


def _model(model: Model, folder: Path) -> dict[str, Any]:
    """Its section with the defaults; its key is named by its variable, never shown."""
    section = {key: value for key, value in asdict(model).items() if value is not None}
    section["price"] = {key: float(amount) for key, amount in section["price"].items()}
    section["fallback"] = list(model.fallback)
    if model.script is not None:
        section["script"] = os.path.relpath(model.script, folder)
    return section


def _embedding(section: Mapping[str, Any]) -> dict[str, Any]:
    return {**section, **({"base_url": _address(section["base_url"])} if "base_url" in section else {})}


def _address(url: str) -> str:
    """Scheme, host, port and path: user, password and query may be credentials."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _tools(tools: Tools) -> dict[str, Any]:
    """What the shipped tools may reach; what is not set is not shown."""
    shown = {"wikipedia": asdict(tools.wikipedia)}
    if tools.http_fetch is not None:
        shown["http_fetch"] = {**asdict(tools.http_fetch), "hosts": list(tools.http_fetch.hosts)}
    if tools.mcp:
        shown["mcp"] = {name: _mcp_server(server) for name, server in tools.mcp.items()}
    return shown


def _mcp_server(server: McpServer) -> dict[str, Any]:
    """Of its variables the names alone: their values may be keys, and its arguments too."""
    way = {"command": list(server.command[:1])} if server.command else {"url": _address(server.url)}
    rest = {"inherit": list(server.inherit), "token_env": server.token_env, "tools": list(server.tools)}
    return {**way, **{key: value for key, value in rest.items() if value}, "timeout_s": server.timeout_s}


# ── live secrets ─────────────────────────────────────────────────────────────────────────────────────────────────────

KEY_NAMES: Final = ("api_key_env", "token_env")
"""The fields that name the variable of a key."""
_VARIABLE: Final = re.compile(r"(?i)(token|secret|password|passwd|passphrase|credentials?|cookie|api_?key|_key)s?$")


def live_secrets(settings: Settings, environment: Mapping[str, str]) -> frozenset[str]:
    """The values of variables and fields that are named as secrets are, or by a key of ours, and of addresses."""
    fields = [*_texts(settings.embeddings), *_texts(settings.tools.section)]
    variables = {text for key, text in fields if key in KEY_NAMES}
    variables |= {model.api_key_env for model in settings.models.values() if model.api_key_env is not None}
    secrets = {value.strip() for name, value in environment.items() if name in variables or _VARIABLE.search(name)}
    secrets.update(secret for key, text in fields for secret in ([text] if NAMED.search(key) else _credentials(text)))
    return frozenset(secrets - {""})


def _texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text within, with its key; in a list it has none."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _texts(inner, str(name))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


def _credentials(text: str) -> Iterator[str]:
    """The password of an address, or its user if there is no more."""
    try:
        address = urlsplit(text)
    except ValueError:
        return
    if address.netloc and (secret := address.password or address.username):
        yield secret
