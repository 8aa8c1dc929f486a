"""From the section ``budget`` of a listener or an agent to what it means."""

from __future__ import annotations

from decimal import Decimal

from organism.config.sections import BudgetSection, SpendSection
from organism.config.settings import Budget, Spend


def budget_of(section: BudgetSection) -> Budget:
    """The budget that was checked."""
    return Budget(run=_spend(section.run), day=_spend(section.day))


def money(amount: float) -> Decimal:
    """An amount exactly as it was written: 0.1 is a tenth."""
    return Decimal(repr(amount))


def _spend(section: SpendSection) -> Spend:
    return Spend(
        tokens=section.tokens if section.tokens >= 0 else None,
        usd=money(section.usd) if section.usd >= 0 else None,
        calls=section.calls if section.calls >= 0 else None,
        seconds=section.seconds if section.seconds >= 0 else None,
    )
