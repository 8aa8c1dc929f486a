"""Which prompts a handler of an organism has: those that were loaded with it, whatever lies on the disk by now.

``AgentFactory.create`` is asked for a name and a version, and for nothing else. Whose folder is meant
follows from who asks: a handling has the files of the configuration that it began with, as it has its code.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Final

from organism.config.prompts import PromptConfig, PromptKey

Prompts = Mapping[PromptKey, PromptConfig]

SERVED: Final[ContextVar[Prompts | None]] = ContextVar("organism_served_prompts", default=None)
"""The prompts of the handling under way; None outside of all handlings. The pump alone sets it."""
