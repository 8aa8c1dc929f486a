"""The models of the configuration in force, with their providers and limits; all tenants share them."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Final

from anyio import CapacityLimiter

from organism.agents.providers import Provider
from organism.agents.providers.anthropic import AnthropicProvider
from organism.agents.providers.local import local
from organism.agents.providers.offline import Offline
from organism.agents.providers.openai import OpenAIProvider
from organism.agents.providers.scripted import Scripted
from organism.config.settings import Model, ProviderName
from organism.model.rate import TokenBucket

MINUTE_US: Final = 60_000_000

PROVIDERS: Final[Mapping[ProviderName, Callable[[Model, str | None], Provider]]] = {
    "openai": lambda model, key: OpenAIProvider(model.base_url, key, model.api_key_env),
    "anthropic": lambda model, key: AnthropicProvider(model.base_url, key, model.api_key_env),
    "offline": lambda _model, _key: Offline(),
    "local": lambda model, _key: local(model.context_window),
    "scripted": lambda model, _key: Scripted.read(model.script or Path()),
}
"""How to make each provider from a model's section and its key."""
SDKS: Final[Mapping[str, str]] = {"openai": "openai", "anthropic": "anthropic", "local": "openai"}
"""The vendor's package that a provider asks its server by."""


def import_sdks(providers: Iterable[str]) -> None:
    """Import what these providers need. It takes a second each, which else the first call waits for."""
    for package in sorted({SDKS[each] for each in providers if each in SDKS}):
        with suppress(ImportError):  # the first call says what is missing
            import_module(package)


def connected(_name: str, model: Model, environment: Mapping[str, str]) -> Provider:
    """The provider of a model. A missing key is an error of the first call."""
    key = environment.get(model.api_key_env) if model.api_key_env is not None else None
    return PROVIDERS[model.provider](model, key)


class ServedModel:
    """One model: its configuration and its provider."""

    __slots__ = ("_in_use", "_is_retired", "_limiter", "model", "name", "provider", "rate")

    def __init__(self, name: str, model: Model, provider: Provider) -> None:
        self.name = name
        self.model = model
        self.provider = provider
        self.rate = TokenBucket(model.rate_limit_tpm, MINUTE_US)
        self._limiter = CapacityLimiter(model.max_concurrent or math.inf)
        self._in_use = 0
        self._is_retired = False

    def inherit(self, before: ServedModel) -> None:
        """Take over the waiting calls and the used rate of the same model in the previous configuration."""
        self._limiter, self.rate = before._limiter, before.rate
        self._limiter.total_tokens = self.model.max_concurrent or math.inf
        self.rate.resize(self.model.rate_limit_tpm)

    @asynccontextmanager
    async def used(self) -> AsyncIterator[Provider]:
        """The provider, as soon as ``max_concurrent`` allows another call; it stays open until the call ends."""
        self._in_use += 1
        try:
            async with self._limiter:
                yield self.provider
        finally:
            self._in_use -= 1
            if self._is_retired and not self._in_use:
                await self.provider.close()

    async def retire(self) -> None:
        """Close the provider when its last call has ended."""
        if not self._is_retired:
            self._is_retired = True
            if not self._in_use:
                await self.provider.close()


class ModelRegistry:
    """``make`` gives the provider of a model of that name, or raises ``ConfigInvalid``."""

    def __init__(self, make: Callable[[str, Model], Provider]) -> None:
        self._make = make
        self._served: dict[str, ServedModel] = {}

    def prepared(self, models: Mapping[str, Model]) -> dict[str, ServedModel]:
        """The served models of a configuration that is not in force yet. Raises ``ConfigInvalid``."""
        return {name: ServedModel(name, model, self._make(name, model)) for name, model in models.items()}

    async def take(self, served: dict[str, ServedModel]) -> None:
        """Serve these models from now on; running calls keep the provider that they began with."""
        before, self._served = self._served, served
        for name in before.keys() & served.keys():
            served[name].inherit(before[name])
        for each in before.values():
            await each.retire()

    async def close(self) -> None:
        await self.take({})

    def chain(self, name: str) -> tuple[ServedModel, ...]:
        """The model and its fallbacks, in order; empty if there is no such model."""
        return tuple(self._served[each] for each in dict.fromkeys(self._names(name)))

    def _names(self, name: str) -> Iterator[str]:
        if name in self._served:
            yield name
            for other in self._served[name].model.fallback:
                yield from self._names(other)
