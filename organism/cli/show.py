"""What people see: lines, tables and faults. Programs get JSON.

On a terminal there are colours (not with ``NO_COLOR``), and no line is wider than it is; elsewhere lines are plain and
whole. Everything printed passes ``Plain.print`` or ``compact``, so no text from a payload, a model or an error can
steer the terminal (S31).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, NoReturn

import orjson
import typer
from rich.console import Console
from rich.text import Text

from organism.cli.exits import Exit
from organism.cli.options import Remote

TONES: Final = {
    **dict.fromkeys(("processing", "active"), "cyan"),
    **dict.fromkeys(("paused", "pending", "stopping"), "yellow"),
    **dict.fromkeys(("error", "killed", "rejected"), "red"),
    **dict.fromkeys(("completed", "approved", "running"), "green"),
    "waiting": "magenta",
}
GAP: Final = "  "
NOTE_LEAST: Final = 28
"""A terminal that leaves fewer columns than this to a table's last cell gets it on a line of its own."""

_STEERING: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""C0 but for newline and tab, DEL, C1, bidirectional marks, and the separators of lines and paragraphs."""
_BREAKS: Final = re.compile(r"[\n\t]")

Cell = str | Text
Columns = Mapping[str, str | Callable[[Any], Cell]]
"""The columns of a table: by its title the name of the field that it shows, or what makes the cell of a row."""


class Rows(NamedTuple):
    """What came of a list, and how many there are in all."""

    rows: list[Any]
    total: int


class Plain(Console):
    """A console on which text from outside is shown, never obeyed, and a closed pipe is an error."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)
        if self.no_color:
            self._color_system = None

    def print(self, *objects: Any, **how: Any) -> None:
        """Print; in a text, each character that would steer the terminal appears as U+FFFD."""
        harmless = (_replaced(each, _STEERING, "\ufffd") if isinstance(each, str | Text) else each for each in objects)
        super().print(*harmless, **how)

    def on_broken_pipe(self) -> None:
        """Let it through: whoever runs the verbs ends them all alike."""
        raise BrokenPipeError


def _replaced(said: Cell, pattern: re.Pattern[str], by: str) -> Text:
    """The text with one character for each that the pattern finds: the colours stay where they are."""
    text = said if isinstance(said, Text) else Text(said)
    text.plain = pattern.sub(by, text.plain)
    return text


def _one_line(said: Cell) -> Text:
    """The same without its line breaks: a text from outside cannot look like a line of ours."""
    return _replaced(said, _BREAKS, " ")


def out() -> Console:
    """Standard output."""
    return Plain()


def say(options: Any, value: Any, text: Cell) -> None:
    """What came of a verb: the value as JSON if that is asked for, else the text."""
    if options.json:
        print_json(value)
    else:
        out().print(text)


def fail(message: str, remedy: str = "", faults: Sequence[str] = ()) -> None:
    """Say on standard error what went wrong, each fault on a line of its own, and what to do."""
    sys.stdout.flush()
    console = Plain(stderr=True)
    console.print(_one_line(Text.assemble(("error: ", "bold red"), message)))
    for fault in faults:
        console.print(_one_line(f"  {fault}"))
    if remedy:
        console.print(Text.assemble(("next: ", "bold"), remedy))


def note(message: str) -> None:
    """Say something on standard error that is no fault."""
    Plain(stderr=True).print(Text(message, "dim"))


def refuse(code: Exit, message: str, remedy: str = "", faults: Sequence[str] = ()) -> NoReturn:
    """End the command, and say why."""
    fail(message, remedy, faults)
    raise typer.Exit(code)


def print_json(value: Any) -> None:
    """One JSON value on a line."""
    print(compact(value), flush=True)  # noqa: T201 - standard output is what the option asks for


def print_document(value: Any) -> None:
    """A JSON document for people."""
    sys.stdout.write(_escaped(orjson.dumps(value, option=orjson.OPT_INDENT_2)) + "\n")


def compact(value: Any) -> str:
    """A value as JSON."""
    return _escaped(orjson.dumps(value))


def _escaped(document: bytes) -> str:
    """JSON whose strings hold no character that would steer a terminal: it stands there as an escape."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", document.decode())


def table(columns: Sequence[str], rows: Iterable[Sequence[Cell]], empty: str) -> None:
    """A table; its last column takes what is left of a terminal's line. ``empty`` is said if there are no rows."""
    lines = [[cell if isinstance(cell, Text) else Text(" ".join(cell.split())) for cell in row] for row in rows]
    console = out()
    if not lines:
        console.print(empty)
        return
    lines.insert(0, [Text(name, "bold") for name in columns])
    widths = [max(line[at].cell_len for line in lines) for at in range(len(columns) - 1)]
    taken = sum(widths) + len(GAP) * len(widths)
    is_apart = console.is_terminal and console.width - taken < NOTE_LEAST
    for *firsts, last in lines:
        for cell, width in zip(firsts, widths, strict=True):
            cell.pad_right(width - cell.cell_len)
        if not is_apart:
            print_line(Text(GAP).join([*firsts, last]))
            continue
        print_line(Text(GAP).join(firsts))
        if last.plain:
            print_line(Text.assemble(GAP, last))


def print_line(text: Text) -> None:
    """One line: cut off at the edge of a terminal, whole elsewhere."""
    console = out()
    text.rstrip()
    if console.is_terminal:
        text.truncate(console.width, overflow="ellipsis")
    console.print(text)


def fields(named: Mapping[str, Cell | None]) -> None:
    """One object: a line for each of its fields that has a value."""
    width = max(map(len, named))
    for name, value in named.items():
        if value:
            out().print(_one_line(Text.assemble((name.ljust(width), "bold"), GAP, value)))


def show_list(options: Remote, found: Rows, columns: Columns, empty: str, remedy: str = "") -> None:
    """A list as JSON or as a table, with how many there are if those are not all, and what to do about the rows."""
    shown = len(found.rows)
    if options.json:
        print_json(found.rows)
        return
    table([*columns], (cells(row, columns) for row in found.rows), empty)
    if found.total > shown:
        note(f"{shown} of {found.total}; --limit shows more")
    if remedy and shown:
        note(f"next: {remedy}")


def cells(row: Mapping[str, Any], columns: Columns) -> list[Cell]:
    """A row's cells."""
    return [str(row[cell]) if isinstance(cell, str) else cell(row) for cell in columns.values()]


def show_one(options: Remote, value: Any, named: Mapping[str, Cell | None]) -> None:
    """One object as JSON, or as lines of its named fields."""
    if options.json:
        print_json(value)
    else:
        fields(named)


def state_of(row: Mapping[str, Any]) -> Text:
    """The state of an agent, a thread, an approval or the organism in its colour; the word says it too."""
    name = row.get("state") or row.get("status") or ""
    return Text(f"{name} (paused)" if row.get("paused") and name != "paused" else name, TONES.get(name, ""))


def clock_time(at: str | None) -> str:
    """An ISO time in the local zone: the time if it is today, else the day."""
    if not at:
        return "-"
    then = datetime.fromisoformat(at).astimezone()
    is_today = then.date() == datetime.now().astimezone().date()
    return f"{then:%H:%M:%S}" if is_today else f"{then:%Y-%m-%d}"


def ids_text(sent: Mapping[str, Any]) -> str:
    """What was made by sending a message."""
    return f"thread   {sent['thread_id']}\nmessage  {sent['message_id']}\nposition {sent['position']}"


def route(message: Mapping[str, Any]) -> str:
    return f"{message['from']} → {message['to']}"


def message_line(message: Mapping[str, Any]) -> Text:
    """A message on its way, and what it says."""
    return Text.assemble(
        (route(message), "bold"), " ", message["payload_type"], " ", (compact(message["payload"]), "dim")
    )


def placed(position: int | None, said: Text) -> Text:
    """A line with the position before it."""
    return _one_line(Text.assemble((" " * 9 if position is None else f"{position:>8} ", "dim"), said))
