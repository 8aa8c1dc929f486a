"""Where the faults of one file are gathered, so that all of them are told at once."""

from __future__ import annotations

from organism.errors import ConfigInvalid, Fault

Place = tuple[str | int, ...]
"""The way from the root to a value: keys of mappings and indexes of lists."""


class Faults:
    """What is wrong with one file. ``line`` counts from 1; ``place`` names the key."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._found: list[tuple[int, Fault]] = []

    def add(self, line: int, place: Place, message: str) -> None:
        """Note a fault at ``FILE:LINE:KEY`` (``FILE:LINE`` where no key is to blame)."""
        pointer = f"{self._file}:{line}:{written(place)}" if place else f"{self._file}:{line}"
        self._found.append((line, Fault(pointer, message)))

    def refuse_if_any(self) -> None:
        """Raise the refusal if there is any fault."""
        if self._found:
            raise self.refusal()

    def refusal(self) -> ConfigInvalid:
        """Every fault so far, in the order of their lines."""
        details = tuple(fault for _, fault in sorted(self._found, key=lambda found: found[0]))
        count = "1 fault" if len(details) == 1 else f"{len(details)} faults"
        message = f"{self._file} is not valid: {count}, each with its line and key in `details`."
        return ConfigInvalid(message, details=details)


def written(place: Place) -> str:
    """``listeners[0].handler``, as a person would write it."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return text.removeprefix(".")
