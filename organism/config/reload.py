"""What a reload changes: organism.yaml as it was, compared with organism.yaml as it is."""

from __future__ import annotations

from dataclasses import dataclass

from organism.config.settings import Listener, Settings
from organism.model.words import AgentName


@dataclass(frozen=True, slots=True)
class Changes:
    """Names of listeners, each list in the order of its organism.yaml."""

    added: tuple[AgentName, ...] = ()
    removed: tuple[AgentName, ...] = ()
    updated: tuple[AgentName, ...] = ()


def diff(old: Settings, new: Settings) -> Changes:
    """Which listeners are added, removed, or updated (their section, their code or their charter is another)."""
    return Changes(
        added=tuple(each.name for each in new.listeners if old.listener(each.name) is None),
        removed=tuple(each.name for each in old.listeners if new.listener(each.name) is None),
        updated=tuple(each.name for each in new.listeners if _is_updated(old.listener(each.name), each, old, new)),
    )


def _is_updated(before: Listener | None, after: Listener, old: Settings, new: Settings) -> bool:
    """The charter is part of who is run by the turn loop."""
    has_charter = after.handler_path is None and not after.is_shipped and "@" not in (after.prompt_ref or "")
    is_other = has_charter and old.charter.text != new.charter.text
    return before is not None and (is_other or before.version != after.version)
