"""Folds of the log, blind to each other: ``routing`` is what the pump decides by, the rest are rows for people.

Each read model's file makes one JSON shape of the API, the same for a live row, a rebuilt one and one of the past.
"""

from __future__ import annotations

from typing import Final

from organism.log.log import ReadModel
from organism.projections import (
    agents,
    answers,
    approvals,
    dead_letters,
    indeterminate,
    marks,
    messages,
    organism,
    threads,
    usage,
    values,
)

READ_MODELS: Final[tuple[ReadModel, ...]] = (
    messages.MODEL,
    threads.MODEL,
    agents.MODEL,
    organism.MODEL,
    dead_letters.MODEL,
    dead_letters.CLOSED_MODEL,
    approvals.MODEL,
    indeterminate.MODEL,
    answers.MODEL,
    values.MODEL,
    usage.MODEL,
    marks.MODEL,
)
"""Every read model that the engine keeps."""
