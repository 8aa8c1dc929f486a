"""Output: lines, tables and errors for people, JSON for programs.

On a terminal there are colours (not with ``NO_COLOR``) and lines fit its width; elsewhere lines are plain and complete.
Everything printed passes ``SafeConsole.print`` or ``compact``, so no text from a payload, a model or an error can
control the terminal (S31).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain, repeat
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
MILLISECONDS: Final = 1000  # in a second
LAST_CELL_WIDTH: Final = 28
"""If a terminal leaves less than this to a table's last cell, the cell gets a line of its own."""

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""C0 except newline and tab, DEL, C1, bidirectional marks, and the separators of lines and paragraphs."""
_BREAKS: Final = re.compile(r"[\n\t]")

Cell = str | Text
Columns = Mapping[str, str | Callable[[Any], Cell]]
"""The columns of a table by title: the name of the field, or a function from the row to the cell."""


class Rows(NamedTuple):
    """Rows of a list, and how many there are in all."""

    rows: list[Any]
    total: int


class SafeConsole(Console):
    """A console that shows control characters instead of obeying them, and raises ``BrokenPipeError``."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False, highlight=False, soft_wrap=True)
        if self.no_color:
            self._color_system = None

    def print(self, *objects: Any, **how: Any) -> None:
        """Print; each control character of a text appears as U+FFFD."""
        safe = (_replaced(each, _CONTROLS, "\ufffd") if isinstance(each, str | Text) else each for each in objects)
        super().print(*safe, **how)

    def on_broken_pipe(self) -> None:
        """Raise instead of exiting: the app ends every verb in the same way."""
        raise BrokenPipeError


def _replaced(cell: Cell, pattern: re.Pattern[str], by: str) -> Text:
    """The text with one character in place of each match, so that its styles stay in place."""
    text = cell if isinstance(cell, Text) else Text(cell)
    text.plain = pattern.sub(by, text.plain)
    return text


def _one_line(cell: Cell) -> Text:
    """The text without line breaks: a text from outside cannot look like a line of ours."""
    return _replaced(cell, _BREAKS, " ")


def out() -> Console:
    """Standard output."""
    return SafeConsole()


def show_text(options: Any, value: Any, text: Cell) -> None:
    """A result: the value with ``--json``, else the text."""
    if options.json:
        print_json(value)
    else:
        out().print(text)


def fail(message: str, remedy: str = "", faults: Sequence[str] = ()) -> None:
    """Print an error on standard error: each fault on its own line, then what to do next."""
    sys.stdout.flush()
    console = SafeConsole(stderr=True)
    console.print(_one_line(Text.assemble(("error: ", "bold red"), message)))
    for fault in faults:
        console.print(_one_line(f"  {fault}"))
    if remedy:
        console.print(Text.assemble(("next: ", "bold"), remedy))


def note(message: str) -> None:
    """Print a remark on standard error."""
    SafeConsole(stderr=True).print(Text(message, "dim"))


def refuse(code: Exit, message: str, remedy: str = "", faults: Sequence[str] = ()) -> NoReturn:
    """Print an error and end the command."""
    fail(message, remedy, faults)
    raise typer.Exit(code)


def print_json(value: Any) -> None:
    """One JSON value on a line."""
    print(compact(value), flush=True)  # noqa: T201 - standard output is what the option asks for


def show_document(options: Remote, value: Any) -> None:
    """A JSON document: on one line with ``--json``, else indented."""
    sys.stdout.write(_escaped(orjson.dumps(value, option=0 if options.json else orjson.OPT_INDENT_2)) + "\n")


def compact(value: Any) -> str:
    """A value as JSON."""
    return _escaped(orjson.dumps(value))


def _escaped(document: bytes) -> str:
    """JSON with every control character written as an escape."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", document.decode())


def table(
    columns: Sequence[str], rows: Iterable[Sequence[Cell]], empty: str, below: Sequence[Sequence[str]] = ()
) -> None:
    """A table whose last column takes the rest of a terminal's line; without rows, the text ``empty``.

    ``below`` has the lines that follow each row, if any do.
    """
    lines = [[cell if isinstance(cell, Text) else Text(" ".join(cell.split())) for cell in row] for row in rows]
    console = out()
    if not lines:
        console.print(empty)
        return
    lines.insert(0, [Text(name, "bold") for name in columns])
    widths = [max(line[at].cell_len for line in lines) for at in range(len(columns) - 1)]
    taken = sum(widths) + len(GAP) * len(widths)
    is_apart = console.is_terminal and console.width - taken < LAST_CELL_WIDTH
    for (*firsts, last), after in zip(lines, chain([()], below or repeat(())), strict=False):
        for cell, width in zip(firsts, widths, strict=True):
            cell.pad_right(width - cell.cell_len)
        print_line(Text(GAP).join(firsts if is_apart else [*firsts, last]))
        if is_apart and last.plain:
            print_line(Text.assemble(GAP, last))
        for line in after:
            print_line(_one_line(f"{GAP}{GAP}{line}"))


def print_line(text: Text) -> None:
    """One line, cut off at the edge of a terminal."""
    console = out()
    text.rstrip()
    if console.is_terminal:
        text.truncate(console.width, overflow="ellipsis")
    console.print(text)


def fields(named: Mapping[str, Cell | None]) -> None:
    """One object: a line for each field that has a value."""
    width = max(map(len, named))
    for name, value in named.items():
        if value:
            out().print(_one_line(Text.assemble((name.ljust(width), "bold"), GAP, value)))


def show_list(options: Remote, found: Rows, columns: Columns, empty: str, remedy: str = "") -> None:
    """A list as JSON or as a table, with how many there are if those are not all, and what to do about the rows."""
    if options.json:
        print_json(found.rows)
        return
    table([*columns], (cells(row, columns) for row in found.rows), empty)
    note_rest(found, remedy)


def note_rest(found: Rows, remedy: str = "") -> None:
    """How many there are if those that were shown are not all, and what to do about them."""
    shown = len(found.rows)
    if found.total > shown:
        note(f"{shown} of {found.total}; --limit shows more")
    if remedy and shown:
        note(f"next: {remedy}")


LETTERS: Final[Columns] = {
    "DEAD LETTER": lambda letter: Text("  " * ("root" in letter) + letter["id"]),
    "AGENT": "agent",
    "CODE": "code",
    "ATTEMPTS": "attempts",
    "REASON": "reason",
}


def show_letters(letters: Sequence[Mapping[str, Any]]) -> None:
    """Each failure with its lines, the one that raised first; indented below it, the dead letters that hang on it."""
    failures: dict[str, list[Mapping[str, Any]]] = {}
    for letter in letters:  # the newest first: what hangs on another comes before it
        failures.setdefault(letter.get("root", letter["id"]), []).insert(0, letter)
    rows = [letter for failure in failures.values() for letter in failure]
    below = [_code(letter) for letter in rows]
    table([*LETTERS], (cells(letter, LETTERS) for letter in rows), "no dead letters", below)
    if rows:
        note("next: correct what failed, organism reload, organism dead-letters replay DEAD_LETTER (or discard)")


def _code(letter: Mapping[str, Any]) -> list[str]:
    return [
        f"{line['file']}:{line['line']} in {line['function']}: {line['code']}" for line in letter.get("traceback", ())
    ]


def cells(row: Mapping[str, Any], columns: Columns) -> list[Cell]:
    return [str(row[cell]) if isinstance(cell, str) else cell(row) for cell in columns.values()]


def show_object(options: Remote, value: Any, named: Mapping[str, Cell | None]) -> None:
    """One object as JSON, or as a line per named field."""
    if options.json:
        print_json(value)
    else:
        fields(named)


def state_of(row: Mapping[str, Any]) -> Text:
    """The state of an agent, a thread, an approval or the organism, coloured."""
    name = row.get("state") or row.get("status") or ""
    return Text(f"{name} (paused)" if row.get("paused") and name != "paused" else name, TONES.get(name, ""))


def clock_time(at: str | None) -> str:
    """An ISO time in the local zone: the time if it is today, else the day."""
    if not at:
        return "-"
    then = datetime.fromisoformat(at).astimezone()
    is_today = then.date() == datetime.now().astimezone().date()
    return f"{then:%H:%M:%S}" if is_today else f"{then:%Y-%m-%d}"


def lasted(milliseconds: float | None) -> str:
    """A duration: ``85.2 ms``, from a second on ``15.2 s``; ``-`` if it is not known."""
    if milliseconds is None:
        return "-"
    return f"{milliseconds:.1f} ms" if milliseconds < MILLISECONDS else f"{milliseconds / MILLISECONDS:,.1f} s"


def by_whom(by: Mapping[str, Any] | None) -> str:
    """`` by NAME``, or ``: REASON`` if the organism did it itself; empty if it is not known."""
    if by is None:
        return ""
    return f" by {by['user'] or by['principal']}" if by["user"] or by["principal"] else f": {by['reason']}"


def paused(row: Mapping[str, Any]) -> str:
    """Since when, and who did it; empty if it is not paused or its log does not say."""
    return f"since {clock_time(row['paused_at'])}{by_whom(row['paused_by'])}" if row["paused_at"] else ""


def changes_of(reload: Mapping[str, Any]) -> str:
    """Which listeners a reload has added, removed and updated; empty if none."""
    return "; ".join(f"{what}: {', '.join(reload[what])}" for what in ("added", "removed", "updated") if reload[what])


def ids_text(sent: Mapping[str, Any]) -> str:
    """The ids that sending a message has made."""
    return f"thread   {sent['thread_id']}\nmessage  {sent['message_id']}\nposition {sent['position']}"


def route(message: Mapping[str, Any]) -> str:
    return f"{message['from']} → {message['to']}"


def message_line(message: Mapping[str, Any]) -> Text:
    """Sender, receiver and payload of a message."""
    return Text.assemble(
        (route(message), "bold"), " ", message["payload_type"], " ", (compact(message["payload"]), "dim")
    )


def with_position(position: int | None, line: Text) -> Text:
    """The line with the position in front."""
    return _one_line(Text.assemble((" " * 9 if position is None else f"{position:>8} ", "dim"), line))
