"""``organism inject`` and ``organism chat``, and how values are given on the command line.

A value is given as it is, as a file (``@FILE``) or by standard input (``-``). Without a message, ``chat`` reads one a
line.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import orjson
import typer

from organism.cli.client import Client, given, path_of
from organism.cli.exits import Exit, end
from organism.cli.options import Chat, Inject
from organism.cli.show import compact, fail, ids_text, message_line, note, out, print_json, state_of

FORMS: Final = ("application/x-ndjson", "application/json")
"""A stream, or what an agent gives that has none."""


def text_of(said: str, hint: str) -> str:
    """The text itself. ``hint`` names the argument in an error."""
    if said == "-" and sys.stdin.isatty():
        note(f"Reading {hint} from the terminal; Ctrl-D ends it.")
    try:
        if said == "-":
            return sys.stdin.buffer.read().decode()
        return Path(said[1:]).read_text("utf-8") if said.startswith("@") else said
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        wrong = f"standard input is no UTF-8: {error}" if said == "-" else f"{said[1:]} cannot be read: {reason}"
        raise typer.BadParameter(f"{wrong}.", param_hint=hint) from error


def json_of(said: str | None, hint: str) -> Any:
    """The value that was given as JSON; None if nothing was given."""
    return None if said is None else parsed(text_of(said, hint), hint)


def parsed(text: str, hint: str, expected: str = "JSON") -> Any:
    """The text's value. ``expected`` says what it could have been."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise typer.BadParameter(f"expected {expected}; came {text[:40]!r} ({error}).", param_hint=hint) from error


def inject(options: Inject) -> None:
    """Send it; with ``--wait``, show the replies. A thread that ended in an error ends the command with 1."""
    text = text_of(options.payload, "PAYLOAD")
    where = given({"to": options.to, "thread_id": options.thread, "wait": options.wait or None})
    client = Client(options)
    if text.lstrip().startswith("<"):
        xml = {"Content-Type": "application/xml"}
        said = client.post("/inject", key=options.key, params=where, content=text.encode(), headers=xml)
    else:
        payload = parsed(text, "PAYLOAD", "JSON or XML")
        said = client.post("/inject", {**where, "payload": payload}, options.key)
    if options.json:
        print_json(said)
    else:
        _show_sent(said, waited=options.wait is not None)
    if said.get("thread", {}).get("status") in {"error", "killed"}:
        end(Exit.FAILED)


def _show_sent(said: Mapping[str, Any], *, waited: bool) -> None:
    console = out()
    console.print(ids_text(said))
    for reply in said.get("replies", ()):
        console.print(message_line(reply))
    if "thread" in said:
        console.print(state_of({"status": said["thread"]["status"]}))
        if said["thread"]["error"]:
            fail(said["thread"]["error"])
    elif waited:
        console.print(f"still active; `organism threads {said['thread_id']}` shows what came of it")


def chat(options: Chat) -> None:
    """One turn for the words that are given, else a talk that ends with the input."""
    client = Client(options)
    if options.message is not None:
        said = {"message": text_of(options.message, "MESSAGE")}
        reason = _whole(client, options, said) if options.json else _shown(client, options, said)[1]
        if reason in {"error", "killed"}:
            end(Exit.FAILED)
        return
    talk: list[dict[str, str]] = []
    for line in _lines():
        talk.append({"role": "user", "content": line})
        text, _ = _shown(client, options, {"messages": talk})
        talk.append({"role": "assistant", "content": text})


def _lines() -> Iterator[str]:
    is_typed = sys.stdin.isatty()
    if is_typed:
        note("Say something; an empty line or Ctrl-D ends the talk.")
    while True:
        if is_typed:
            out().print("> ", end="")
        if not (line := sys.stdin.readline().strip()):
            return
        yield line


def _body(options: Chat, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"data": {"inputs": dict(inputs)}, **({"session_id": options.session} if options.session else {})}


def _whole(client: Client, options: Chat, inputs: Mapping[str, Any]) -> str:
    """The server's whole answer, for programs; gives why the turn ended."""
    answer = client.post(path_of("agents", options.agent, "invoke"), _body(options, inputs), key=options.key)
    print_json(answer)
    return str(answer["data"]["outputs"]["stop_reason"])


def _shown(client: Client, options: Chat, inputs: Mapping[str, Any]) -> tuple[str, str]:
    """The turn as it comes; gives its last text and why it ended. An agent that cannot stream is shown at once."""
    screen = _Screen()
    body = _body(options, inputs)
    for line in client.lines(path_of("agents", options.agent, "invoke"), body, FORMS, options.key):
        entry = orjson.loads(line)
        if "outputs" not in entry.get("data", {}):
            screen.show(entry["type"], entry["data"])
            continue
        outputs = entry["data"]["outputs"]
        for message in outputs["messages"]:
            screen.show("message", {"text": message["content"]})
        screen.show("done", {"stopReason": outputs["stop_reason"]})
    screen.close()
    return screen.text, screen.reason


class _Screen:
    """Shows entries. ``text`` is the last message's, ``reason`` why the turn ended; empty while it has not."""

    def __init__(self) -> None:
        self.text = ""
        self.reason = ""
        self._is_open = False

    def show(self, kind: str, data: Mapping[str, Any]) -> None:
        """Show one entry; what is for programs is passed over."""
        if kind in {"message", "message_start"}:
            self._line()
            self.text = ""
        if kind in {"message", "message_delta"}:
            said = data["text"] if kind == "message" else data["delta"]
            self.text += said
            self._is_open = True
            out().print(said, end="")
            sys.stdout.flush()
        elif kind == "tool_call":
            self._line()
            note(f"{data['name']} {compact(data['input'])}")
        elif kind == "error":
            self._line()
            fail(data["message"])
        elif kind == "done":
            self.reason = data["stopReason"]

    def close(self) -> None:
        """End the line; say so if the turn did not come to its end."""
        self._line()
        if not self.reason:
            fail("The stream was cut before the turn was done.", "`organism threads` shows whether it goes on.")
            end(Exit.NOT_NOW)

    def _line(self) -> None:
        if self._is_open:
            out().print()
            self._is_open = False
