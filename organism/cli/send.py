"""``organism inject``, and how values are given on the command line.

A value is given as it is, as a file (``@FILE``) or on standard input (``-``).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import typer

from organism.cli.client import Client, drop_none
from organism.cli.exits import Exit
from organism.cli.options import Inject
from organism.cli.output import fail, ids_text, message_line, note, out, print_json, show_letters, state_of


def read_text(value: str, hint: str) -> str:
    """The text that the value stands for. ``hint`` names the argument in an error."""
    if value == "-" and sys.stdin.isatty():
        note(f"Reading {hint} from the terminal; Ctrl-D ends it.")
    try:
        if value == "-":
            return sys.stdin.buffer.read().decode()
        return Path(value[1:]).read_text("utf-8") if value.startswith("@") else value
    except (OSError, UnicodeDecodeError) as error:
        source = "standard input" if value == "-" else value[1:]
        reason = error.strerror if isinstance(error, OSError) else error
        raise typer.BadParameter(f"{source} cannot be read: {reason}.", param_hint=hint) from error


def read_json(value: str | None, hint: str) -> Any:
    """The JSON that the value stands for; None if there is no value."""
    return None if value is None else _parse_json(read_text(value, hint), hint, "JSON")


def _parse_json(text: str, hint: str, expected: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise typer.BadParameter(f"expected {expected}; came {text[:40]!r} ({error}).", param_hint=hint) from error


def inject(options: Inject) -> None:
    """Send a message. With ``--wait``, show the replies; if something failed or was refused show it, exit with 1."""
    text = read_text(options.payload, "PAYLOAD")
    target = drop_none({"to": options.to, "thread_id": options.thread, "wait": options.wait or None})
    client = Client(options)
    if text.lstrip().startswith("<"):
        xml = {"Content-Type": "application/xml"}
        answer = client.post("/inject", key=options.key, params=target, content=text.encode(), headers=xml)
    else:
        payload = _parse_json(text, "PAYLOAD", "JSON or XML")
        answer = client.post("/inject", {**target, "payload": payload}, options.key)
    letters = _letters_since(client, answer) if "thread" in answer else []
    if options.json:
        print_json({**answer, "dead_letters": letters} if letters else answer)
    else:
        _show_sent(answer, waited=options.wait is not None)
        if letters:
            show_letters(letters)
    if letters or answer.get("thread", {}).get("status") in {"error", "killed"}:
        raise typer.Exit(Exit.FAILED)


def _letters_since(client: Client, sent: Mapping[str, Any]) -> list[Any]:
    """The thread's dead letters that follow from it: what failed for good, and sends that were refused."""
    letters = client.rows_if_allowed("dead-letters", {"thread_id": sent["thread_id"]})
    return [letter for letter in letters if letter["position"] >= sent["position"]]


def _show_sent(answer: Mapping[str, Any], *, waited: bool) -> None:
    console = out()
    console.print(ids_text(answer))
    for reply in answer.get("replies", ()):
        console.print(message_line(reply))
    if "thread" in answer:
        console.print(state_of({"status": answer["thread"]["status"]}))
        if answer["thread"]["error"]:
            fail(answer["thread"]["error"])
    elif waited:
        console.print(f"still active; `organism threads {answer['thread_id']}` shows what came of it")
