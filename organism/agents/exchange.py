"""The exchange: what the gateways of one process share, and what they ask of the tokens' file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from organism.agents.attempts import Pace
from organism.agents.gateway import Gateway, TenantRules
from organism.agents.providers.table import connected
from organism.agents.roster import Roster, Served
from organism.config.settings import Budget, Model
from organism.config.tokens import TenantEntry, budget_of_tenant, holder
from organism.model.principal import Principal
from organism.model.redact import Redactor


class Exchange:
    """Connects tenants with models.

    ``chance`` gives a number in [0, 1), ``entries`` the tokens' file as it is now.
    """

    def __init__(
        self,
        redactor: Redactor,
        chance: Callable[[], float],
        entries: Callable[[], Sequence[TenantEntry]],
        environment: Mapping[str, str],
    ) -> None:
        self._redactor = redactor
        self._chance = chance
        self._entries = entries
        self._roster = Roster(partial(connected, environment=environment))

    def prepared(self, models: Mapping[str, Model]) -> dict[str, Served]:
        """What serves these models; nothing has changed yet. Raises ``ConfigInvalid``."""
        return self._roster.prepared(models)

    async def take(self, served: dict[str, Served]) -> None:
        """From now on these are the models."""
        await self._roster.take(served)

    async def close(self) -> None:
        """Let go of all connections."""
        await self._roster.close()

    def gateway(self, tenant: str, now: Callable[[], int]) -> Gateway:
        """The tenant's gateway. ``now`` gives its log's time in µs."""
        rules = TenantRules(partial(self._principal, tenant, now), partial(self._budget, tenant))
        return Gateway(self._roster, self._redactor, Pace(now, self._chance), rules)

    def _principal(self, tenant: str, now: Callable[[], int], name: str) -> Principal | None:
        return holder(self._entries(), tenant, name, now() / 1e6)

    def _budget(self, tenant: str) -> Budget:
        return budget_of_tenant(self._entries(), tenant)
