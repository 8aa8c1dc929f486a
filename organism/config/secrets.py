"""The live secrets of this installation: what its environment and its organism.yaml hold of tokens and keys (S30)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from organism.config.settings import Settings
from organism.model.redact import NAMED

KEY_NAMES: Final = ("api_key_env", "token_env")
"""The fields that name the variable of a key."""
_VARIABLE: Final = re.compile(r"(?i)(token|secret|password|passwd|passphrase|credentials?|cookie|api_?key|_key)s?$")


def live_secrets(settings: Settings, environment: Mapping[str, str]) -> frozenset[str]:
    """The values of variables and fields that are named as secrets are, and the credentials in addresses.

    A variable that an ``api_key_env`` or a ``token_env`` names is one, whatever it is called.
    """
    sections = (settings.embeddings, settings.tools.section)
    variables = {name for section in sections for key in KEY_NAMES for name in _named(section, key)}
    variables |= {model.api_key_env for model in settings.models.values() if model.api_key_env is not None}
    held = {value.strip() for name, value in environment.items() if name in variables or _VARIABLE.search(name)}
    return frozenset(held.union(*map(_secrets, sections)) - {""})


def _named(value: Any, name: str) -> Iterator[str]:
    for key, inner in _fields(value):
        if key == name and isinstance(inner, str):
            yield inner
        yield from _named(inner, name)


def _secrets(value: Any) -> Iterator[str]:
    for key, inner in _fields(value):
        if isinstance(inner, str):
            yield from (inner,) if NAMED.search(key) else _credentials(inner)
        yield from _secrets(inner)


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((str(key), inner) for key, inner in value.items())
    elif isinstance(value, list | tuple):
        yield from (("", inner) for inner in value)


def _credentials(text: str) -> Iterator[str]:
    """The password of an address, or its user if there is no more."""
    try:
        address = urlsplit(text)
    except ValueError:
        return
    if address.netloc and (secret := address.password or address.username):
        yield secret
