"""The providers by the names that organism.yaml gives them, and how each is made of a model's section."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from organism.agents.provider import Provider
from organism.agents.providers.anthropic import AnthropicProvider
from organism.agents.providers.local import local
from organism.agents.providers.offline.model import Offline
from organism.agents.providers.openai import OpenAIProvider
from organism.agents.providers.scripted import Scripted
from organism.config.settings import Model
from organism.errors import ConfigInvalid

Maker = Callable[[Model, str | None], Provider]
"""Makes a provider of the model's section and its key, if it has one. Raises ``ConfigInvalid``."""

PROVIDERS: Final[Mapping[str, Maker]] = {
    "openai": lambda model, key: OpenAIProvider(model.base_url, key, model.api_key_env),
    "anthropic": lambda model, key: AnthropicProvider(model.base_url, key, model.api_key_env),
    "offline": lambda _model, _key: Offline(),
    "local": lambda model, _key: local(model.context_window),
    "scripted": lambda model, _key: Scripted.read(model.script or Path()),
}


def connected(name: str, model: Model, environment: Mapping[str, str]) -> Provider:
    """The provider of the model of that name; its key comes from the environment. Raises ``ConfigInvalid``.

    A missing key is an error of the first call: an organism starts without what it does not use.
    """
    maker = PROVIDERS.get(model.provider)
    if maker is None:
        known = ", ".join(PROVIDERS)
        raise ConfigInvalid(f"models.{name}: the provider `{model.provider}` is not there; there are {known}.")
    key = environment.get(model.api_key_env) if model.api_key_env is not None else None
    return maker(model, key)
