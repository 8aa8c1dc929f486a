"""JSON and XML as they are given on the command line: as they stand, of a file (``@FILE``), or of standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import orjson
import typer

from organism.cli.show import note


def text_of(said: str, hint: str) -> str:
    """The text itself. ``hint`` names the argument in an error."""
    if said == "-":
        return _typed(hint)
    if not said.startswith("@"):
        return said
    try:
        return Path(said[1:]).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise typer.BadParameter(f"{said[1:]} cannot be read: {reason}.", param_hint=hint) from error


def _typed(hint: str) -> str:
    if sys.stdin.isatty():
        note(f"Reading {hint} from the terminal; Ctrl-D ends it.")
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"standard input is no UTF-8: {error}.", param_hint=hint) from error


def json_of(said: str | None, hint: str) -> Any:
    """The value that was given as JSON; None if nothing was given."""
    return None if said is None else parsed(text_of(said, hint), hint)


def parsed(text: str, hint: str, expected: str = "JSON") -> Any:
    """The text's value. ``expected`` says what it could have been."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise typer.BadParameter(f"expected {expected}; came {text[:40]!r} ({error}).", param_hint=hint) from error
