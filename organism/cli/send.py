"""``organism inject`` and ``organism chat``, and how values are given on the command line.

A value is given as it is, as a file (``@FILE``) or on standard input (``-``). Without a message, ``chat`` reads one per
line.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import typer

from organism.cli.client import Client, drop_none, path_of
from organism.cli.exits import Exit
from organism.cli.options import Chat, Inject
from organism.cli.show import compact, fail, ids_text, message_line, note, out, print_json, show_letters, state_of


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
    """The thread's dead letters that came of it: what failed for good, and sends that were refused."""
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


def chat(options: Chat) -> None:
    """One turn for the given message, else a conversation that ends with the input."""
    client = Client(options)
    if options.message is not None:
        inputs = {"message": read_text(options.message, "MESSAGE")}
        reason = _print_answer(client, options, inputs) if options.json else _show_turn(client, options, inputs)[1]
        if reason in {"error", "killed"}:
            raise typer.Exit(Exit.FAILED)
        return
    conversation: list[dict[str, str]] = []
    for line in _read_lines():
        conversation.append({"role": "user", "content": line})
        text, _ = _show_turn(client, options, {"messages": conversation})
        conversation.append({"role": "assistant", "content": text})


def _read_lines() -> Iterator[str]:
    is_typed = sys.stdin.isatty()
    if is_typed:
        note("Say something; an empty line or Ctrl-D ends the conversation.")
    while True:
        if is_typed:
            out().print("> ", end="")
        if not (line := sys.stdin.readline().strip()):
            return
        yield line


def _invocation(options: Chat, inputs: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The path and the body of one turn."""
    return path_of("agents", options.agent, "invoke"), drop_none(
        {"data": {"inputs": inputs}, "session_id": options.session}
    )


def _print_answer(client: Client, options: Chat, inputs: Mapping[str, Any]) -> str:
    """Print the server's whole answer for programs. Returns why the turn ended."""
    answer = client.post(*_invocation(options, inputs), options.key)
    print_json(answer)
    return str(answer["data"]["outputs"]["stop_reason"])


def _show_turn(client: Client, options: Chat, inputs: Mapping[str, Any]) -> tuple[str, str]:
    """Show the turn as it comes. Returns its last text, and why it ended."""
    text, reason, is_mid_line = "", "", False
    for kind, data in _entries(client, options, inputs):
        if is_mid_line and kind in {"message", "message_start", "tool_call", "error", "done"}:
            out().print()
            is_mid_line = False
        match kind:
            case "message_start":
                text = ""
            case "message" | "message_delta":
                piece = data["text"] if kind == "message" else data["delta"]
                text = piece if kind == "message" else text + piece
                out().print(piece, end="")
                sys.stdout.flush()
                is_mid_line = True
            case "tool_call":
                note(f"{data['name']} {compact(data['input'])}")
            case "error":
                fail(data["message"])
            case "done":
                reason = data["stopReason"]
    if is_mid_line:
        out().print()
    if not reason:
        fail("The stream was cut before the turn was done.", "`organism threads` shows whether it goes on.")
        raise typer.Exit(Exit.NOT_NOW)
    return text, reason


def _entries(client: Client, options: Chat, inputs: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The entries of the run as they come; those of an agent that cannot stream are made from its answer."""
    for line in client.stream(*_invocation(options, inputs), options.key):
        entry = orjson.loads(line)
        if "outputs" not in entry.get("data", {}):
            yield entry["type"], entry["data"]
            continue
        outputs = entry["data"]["outputs"]
        yield from (("message", {"text": message["content"]}) for message in outputs["messages"])
        yield "done", {"stopReason": outputs["stop_reason"]}
