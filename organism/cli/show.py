"""What people see: tables, faults, short ids. Programs get JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

TONES: Final = {
    "processing": "cyan",
    "waiting": "magenta",
    "paused": "yellow",
    "error": "red",
    "killed": "red",
    "active": "cyan",
    "completed": "green",
    "running": "green",
    "stopping": "yellow",
}


def out() -> Console:
    """Standard output. Nothing that comes from a message is taken for markup."""
    return Console(markup=False, emoji=False, highlight=False, soft_wrap=True)


def fail(message: str, remedy: str = "", faults: Sequence[str] = ()) -> None:
    """Say on standard error what went wrong, each fault on a line of its own, and what to do."""
    console = Console(stderr=True, markup=False, emoji=False, highlight=False, soft_wrap=True)
    console.print(Text.assemble(("error: ", "bold red"), message))
    for fault in faults:
        console.print(f"  {fault}")
    if remedy:
        console.print(Text.assemble(("next: ", "bold"), remedy))


def print_json(value: Any) -> None:
    """One JSON value on a line."""
    print(orjson.dumps(value).decode())  # noqa: T201 - standard output is what the option asks for


def table(*columns: str) -> Table:
    """A plain table."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for at, column in enumerate(columns):
        made.add_column(column, overflow="fold", no_wrap=at == 0)
    return made


def state(name: str, *, paused: bool = False) -> Text:
    """A state in its colour; the word says it too."""
    said = f"{name} (paused)" if paused and name != "paused" else name
    return Text(said, TONES.get(name, ""))


def moment(at: str | None) -> str:
    """An ISO time to the second."""
    return at[:19].replace("T", " ") if at else "-"
