"""Code of others: whatever it raises ends here, and what it gives becomes text and JSON that can be stored."""

from __future__ import annotations

import json
import math
import traceback
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, time
from pathlib import Path
from typing import Final, Generic, TypeVar

import orjson

Result = TypeVar("Result")

MAX_TEXT: Final = 500


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Result]):
    """The outcome: the result, or the error (then ``result`` is None)."""

    result: Result | None = None
    error: BaseException | None = None


def attempt(action: Callable[[], Result]) -> Outcome[Result]:
    """Run foreign code. An attempt to end the program is an error like any other."""
    try:
        return Outcome(action())
    except BaseException as error:  # noqa: BLE001 - code of others may raise anything; it is reported with its line
        return Outcome(error=error)


def one_line(error: BaseException, folder: Path) -> str:
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


CHARACTERS: Final = 2_000
_BY_PYTHON: Final = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME


def readable(text: str) -> str:
    """The text without the lone surrogates that no UTF-8 holds."""
    return text[:CHARACTERS].encode("utf-8", "replace").decode()


def described(error: BaseException) -> str:
    """An exception as it stands in the log: its kind and text, no traceback."""
    kind = _said(lambda: type(error).__name__) or "Exception"
    text = _said(lambda: str(error))
    return readable(f"{kind}: {text}" if text else kind)


def shown(value: object) -> str:
    """As much of a value as can be shown."""
    return readable(_said(lambda: repr(value)) or _said(lambda: f"<{type(value).__name__}>"))


def _said(say: Callable[[], str]) -> str:
    """What foreign code says, as a plain ``str``; empty if it raises."""
    return attempt(lambda: str.__str__(say())).result or ""


def json_of(value: object, option: int = 0) -> bytes:
    """A handler's value as JSON, or ``TypeError``. Python reads dataclasses and times: orjson aborts if they raise."""
    body = _dumped(value, option)
    if b"null" in body and _has_no_number(value):  # orjson writes null in their place
        raise TypeError("NaN and infinities are no JSON")
    return body


def _has_no_number(value: object) -> bool:
    """Whether NaN or an infinity is in a value that could be written."""
    ahead = [value]
    while ahead:
        each = ahead.pop()
        if isinstance(each, float) and not math.isfinite(each):
            return True
        if isinstance(each, dict):
            ahead += each.values()
        elif isinstance(each, list | tuple):
            ahead += each
        elif is_dataclass(each):
            ahead += [_native(each)]
    return False


def run_json(value: object) -> bytes:
    """JSON of what a model or a handler said, to be shown.

    Halves of characters, which no UTF-8 holds, become question marks; what is no number becomes null.
    """
    try:
        return _dumped(value, 0)
    except TypeError:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def _dumped(value: object, option: int) -> bytes:
    return orjson.dumps(value, _native, option | _BY_PYTHON)


def _native(value: object) -> object:
    if isinstance(value, date | time):
        return value.isoformat()
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value) if not field.name.startswith("_")}
    raise TypeError
