"""Folds of the log, blind to each other: rows for people. What the pump decides by is its own (``pump/state.py``).

Each read model makes one JSON shape of the API, the same for a live row, a rebuilt one and one of the past.
"""

from __future__ import annotations

from typing import Final

from organism.log.log import ReadModel
from organism.projections.approvals import APPROVALS
from organism.projections.dead_letters import CLOSED_LETTERS, DEAD_LETTERS, INDETERMINATE
from organism.projections.keyed import ANSWERS, VALUES
from organism.projections.organism import AGENTS, ORGANISM
from organism.projections.spend import USAGE
from organism.projections.threads import MARKED, MESSAGES, THREADS

READ_MODELS: Final[tuple[ReadModel, ...]] = (
    MESSAGES,
    THREADS,
    AGENTS,
    ORGANISM,
    DEAD_LETTERS,
    CLOSED_LETTERS,
    APPROVALS,
    INDETERMINATE,
    ANSWERS,
    VALUES,
    USAGE,
    MARKED,
)
"""Every read model that the engine keeps."""
