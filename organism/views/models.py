"""Every read model that the store keeps. Each makes one JSON shape of the API, now and as of the past."""

from __future__ import annotations

from typing import Final

from organism.views.approvals import APPROVALS
from organism.views.dead_letters import CLOSED_LETTERS, DEAD_LETTERS, INDETERMINATE
from organism.views.keyed import ANSWERS, VALUES
from organism.views.organism import AGENTS, ORGANISM
from organism.views.threads import MARKED, MESSAGES, THREADS
from organism.views.usage import USAGE
from organism.views.views import ReadModel

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
