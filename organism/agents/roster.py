"""The roster: the models of the configuration in force, each with what serves it in this process.

All tenants share it: a model's lanes and its rate are those of the process, its provider keeps nothing of a call.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager

from organism.agents.lanes import Lanes
from organism.agents.provider import Provider
from organism.agents.rate import Rate
from organism.config.settings import Model

Make = Callable[[str, Model], Provider]
"""Makes the provider of a model of that name. Raises ``ConfigInvalid`` if it cannot."""


class Served:
    """One model: what the configuration says of it, and its provider."""

    __slots__ = ("_in_use", "_is_retired", "lanes", "model", "name", "provider", "rate")

    def __init__(self, name: str, model: Model, provider: Provider) -> None:
        self.name = name
        self.model = model
        self.provider = provider
        self.lanes = Lanes(model.max_concurrent)
        self.rate = Rate(model.rate_limit_tpm)
        self._in_use = 0
        self._is_retired = False

    def inherit(self, before: Served) -> None:
        """Take over who waits and what was taken of the rate from the same model of the configuration before."""
        self.lanes, self.rate = before.lanes, before.rate
        self.lanes.resize(self.model.max_concurrent)
        self.rate.resize(self.model.rate_limit_tpm)

    @asynccontextmanager
    async def used(self) -> AsyncIterator[Provider]:
        """The provider, which stays open meanwhile; and one of the model's lanes."""
        self._in_use += 1
        try:
            async with self.lanes.one():
                yield self.provider
        finally:
            self._in_use -= 1
            if self._is_retired and not self._in_use:
                await self.provider.close()

    async def retire(self) -> None:
        """Nothing new is asked of it: it is closed as soon as the calls under way have ended."""
        if not self._is_retired:
            self._is_retired = True
            if not self._in_use:
                await self.provider.close()


class Roster:
    """The models by name."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self._served: dict[str, Served] = {}

    def prepared(self, models: Mapping[str, Model]) -> dict[str, Served]:
        """What serves these models; nothing has changed yet. Raises ``ConfigInvalid``."""
        return {name: Served(name, model, self._make(name, model)) for name, model in models.items()}

    async def take(self, served: dict[str, Served]) -> None:
        """From now on these are the models; calls under way end with those that they began with."""
        before, self._served = self._served, served
        for name in before.keys() & served.keys():
            served[name].inherit(before[name])
        for each in before.values():
            await each.retire()

    async def close(self) -> None:
        """Let go of all connections."""
        await self.take({})

    def way(self, name: str) -> tuple[Served, ...]:
        """The model and those that are asked in its place, in turn; empty if there is no such model."""
        return tuple(self._served[each] for each in dict.fromkeys(self._names(name)))

    def _names(self, name: str) -> Iterator[str]:
        if name in self._served:
            yield name
            for other in self._served[name].model.fallback:
                yield from self._names(other)
