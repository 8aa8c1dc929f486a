"""The log's SQL, read from the ``.sql`` files beside this one: each statement under ``-- name: what it does``."""

from __future__ import annotations

import re
from importlib.resources import files

_HEAD = re.compile(r"^-- (\w+): .*\n", re.MULTILINE)


def statements(file: str) -> dict[str, str]:
    """Name → statement, in the order of the file."""
    text = files("organism.log").joinpath(file).read_text("utf-8")
    parts = _HEAD.split(text)[1:]
    return {name: _bare(body) for name, body in zip(parts[::2], parts[1::2], strict=True)}


def _bare(body: str) -> str:
    lines = [line for line in body.splitlines() if line and not line.startswith("--")]
    return "\n".join(lines).rstrip(";")
