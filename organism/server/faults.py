"""Several faults of one request, told at once: what is wrong with each part is kept until all were looked at."""

from __future__ import annotations

from types import TracebackType

from organism.errors import Fault, InvalidRequest


class Faults:
    """Looks at parts one after the other: ``with faults: …``, and in the end ``tell``."""

    def __init__(self) -> None:
        self._found: list[InvalidRequest] = []

    def __enter__(self) -> None:
        """Look at one part."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: TracebackType | None) -> bool:
        """Keep what was wrong with it."""
        if isinstance(error, InvalidRequest):
            self._found.append(error)
            return True
        return False

    def tell(self) -> None:
        """Raise what was found: the only fault as it is; of several the first, with all of them in ``details``."""
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            faults = tuple(fault for error in self._found for fault in _faults_of(error))
            raise type(self._found[0])(" ".join(error.message for error in self._found), details=faults)


def _faults_of(error: InvalidRequest) -> tuple[Fault, ...]:
    return error.details or (Fault(error.param or "", error.message),)
