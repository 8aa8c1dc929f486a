"""What of the configuration is shown: by an allow-list, so that a key nobody thought of is gone, not masked (S30).

Each section has the list of the keys that are shown. What is not listed stays here: keys of foreign making (those of
``tools``), and the parts of an address that may carry a credential.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from organism.config.settings import Listener, Settings

SPEND: Final = ("tokens", "usd", "calls", "seconds")
LISTENER: Final = (
    "name", "payload_class", "handler", "description", "agent", "peers", "prompt", "prompt_ref", "model", "tools",
    "budget", "max_concurrent", "timeout_s", "max_payload_bytes", "broadcast", "blocking", "confirm", "approval",
    "invoke",
)  # fmt: skip
MODEL: Final = (
    "provider", "model", "base_url", "api_key_env", "context_window", "price", "max_concurrent", "rate_limit_tpm",
    "fallback",
)  # fmt: skip
EMBEDDING: Final = ("provider", "model", "base_url", "api_key_env", "dim", "batch", "default")
PRICE: Final = ("input_usd_per_million", "output_usd_per_million")
BUDGET: Final = ("run", "day")


def shown_settings(settings: Settings) -> dict[str, Any]:
    """organism.yaml as it is in force, key by key, what was left out with its default.

    Prompts are in it: it is for the operator.
    """
    return {
        "organism": {"name": settings.name, "imports": list(settings.imports)},
        "limits": asdict(settings.limits),
        "retry": asdict(settings.retry),
        "models": {name: _service(section, MODEL) for name, section in settings.models.items()},
        "embeddings": {name: _service(section, EMBEDDING) for name, section in settings.embeddings.items()},
        "tools": {name: {} for name in settings.tools},
        "fx": dict(settings.fx),
        "listeners": [_in_force(listener) for listener in settings.listeners],
    }


def shown_section(listener: Listener, *, with_prompt: bool) -> dict[str, Any]:
    """A listener's section as it was written; without its prompt's text there is the SHA-256 of it (S23)."""
    section = _listed(listener.section, LISTENER)
    if "budget" in section:
        section["budget"] = _budget(section["budget"])
    if "prompt" in section and not with_prompt:
        section["prompt"] = f"sha256:{sha256(section['prompt'].encode()).hexdigest()}"
    return section


def _in_force(listener: Listener) -> dict[str, Any]:
    """The section with what the limits and the defaults add to it."""
    effective = {
        "agent": listener.is_agent,
        "peers": list(listener.peers),
        "payload_class": listener.payload_class_path,
        "max_concurrent": listener.max_concurrent,
        "timeout_s": listener.timeout_s,
        "max_payload_bytes": listener.max_payload_bytes,
        "broadcast": listener.broadcast,
        "blocking": listener.blocking,
        "confirm": listener.confirm,
        "approval": listener.approval,
        "invoke": list(listener.invoke),
    }
    return _listed({**shown_section(listener, with_prompt=True), **effective}, LISTENER)


def _listed(section: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: section[key] for key in keys if key in section}


def _budget(budget: Mapping[str, Any]) -> dict[str, Any]:
    return {span: _listed(spend, SPEND) for span, spend in _listed(budget, BUDGET).items()}


def _service(section: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    """A model or an embedding: its key is named by its variable, never shown."""
    shown = _listed(section, keys)
    if "base_url" in shown:
        shown["base_url"] = _address(shown["base_url"])
    if "price" in shown:
        shown["price"] = _listed(shown["price"], PRICE)
    return shown


def _address(url: str) -> str:
    """Scheme, host, port and path: user, password and query may be credentials."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
