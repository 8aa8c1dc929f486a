"""What a follower wants to be shown."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Taste:
    """Agents and events by name; without any, everything."""

    name: str
    agents: frozenset[str] = frozenset()
    events: frozenset[str] = frozenset()

    @property
    def is_filter(self) -> bool:
        """Whether anything is left out; only the command ``subscribe`` can say so."""
        return bool(self.agents or self.events)

    @property
    def lists(self) -> dict[str, list[str]]:
        """The filter as the command takes it."""
        lists = {"agents": sorted(self.agents), "events": sorted(self.events)}
        return {name: names for name, names in lists.items() if names}

    def wants(self, event: str, agents: frozenset[str]) -> bool:
        """Whether a frame passes: for each list it names nothing of that kind, or something in the list."""
        passes_events = not self.events or event in self.events
        return passes_events and (not self.agents or not agents or bool(agents & self.agents))
