"""What waits for a person: rows of which read models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from organism.views.views import Counted, Where

WAITING: Final[Mapping[str, tuple[Where, ...]]] = {
    "approvals": (Where("status", "=", "pending"),),
    "dead_letters": (Where("hangs_on", "=", ""),),
    "indeterminate": (),
    "foreign_tools": (Where("status", "=", "waiting"),),
}
"""The rows that wait for a person, by their read model: of dead letters those that hang on no other."""
OF_A_THREAD: Final = tuple(
    Counted(model, "thread_id", WAITING[model]) for model in ("approvals", "dead_letters", "indeterminate")
)
