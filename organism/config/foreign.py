"""Running code of others while a configuration is loaded: whatever it raises is a fault to tell, never a crash."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar

Result = TypeVar("Result")

MAX_TEXT: Final = 500


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Result]):
    """What came of it: the result, or the error (then ``result`` is None)."""

    result: Result | None = None
    error: BaseException | None = None


def attempt(action: Callable[[], Result]) -> Outcome[Result]:
    """Run foreign code. An end of the program that it asks for is an error of its own like any other."""
    try:
        return Outcome(action())
    except BaseException as error:  # noqa: BLE001 - code of others may raise anything; it is told with its line
        return Outcome(error=error)


def told(error: BaseException, folder: Path) -> str:
    """The error in one line, with the file and line of the last frame below ``folder``, both as seen from there."""
    kind = type(error).__name__
    if isinstance(error, SyntaxError):
        return _placed(error.filename, error.lineno, folder, f"{kind}: {error.msg}")
    trace = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in trace if Path(frame.filename).is_relative_to(folder)]
    text = " ".join(str(error).replace(f"{folder}/", "").split())[:MAX_TEXT]
    reason = f"{kind}: {text}" if text else kind
    return _placed(frames[-1].filename, frames[-1].lineno, folder, reason) if frames else reason


def _placed(file: str | None, line: int | None, folder: Path, reason: str) -> str:
    if file is None:
        return reason
    path = Path(file)
    shown = path.relative_to(folder) if path.is_relative_to(folder) else path.name
    return f"{shown}, line {line or 1}: {reason}"
