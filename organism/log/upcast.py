"""An old log always opens: data written by an older version of the events is lifted to the present one when it is read.

``STEPS[n]`` lifts each type's data from version n to n + 1; a type that is not named there did not change. What is on
disk is never rewritten, since the audit chain covers it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from organism.errors import LogDamaged
from organism.model.events import SCHEMA_VERSION

Data = dict[str, Any]
Lift = Callable[[Data], Data]
Steps = Mapping[int, Mapping[str, Lift]]

STEPS: Final[Steps] = MappingProxyType({})
"""Version 1 is the first: there is nothing to lift yet."""


class Upcaster:
    """Lifts events' data to ``present``. ``steps`` and ``present`` are given, so that a test can have a future."""

    __slots__ = ("_steps", "present")

    def __init__(self, steps: Steps = STEPS, present: int = SCHEMA_VERSION) -> None:
        self._steps = steps
        self.present = present

    def lift(self, version: int, kind: str, data: Data) -> Data:
        """The data as it would be written today.

        Raises ``LogDamaged`` if a newer program wrote it: to guess what it means would be worse than to stop.
        """
        if version > self.present:
            raise LogDamaged(
                f"The log holds events of version {version}, this program knows them up to {self.present}: "
                "run the newer program that wrote them."
            )
        for number in range(version, self.present):
            step = self._steps.get(number, {}).get(kind)
            data = data if step is None else step(data)
        return data
