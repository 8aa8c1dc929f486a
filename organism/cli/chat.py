"""``organism chat``: ask an agent and read its answer as it comes; without words, talk with it line by line."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from organism.cli.client import Client, idempotency, path_of
from organism.cli.exits import Exit, end
from organism.cli.options import Chat
from organism.cli.payloads import text_of
from organism.cli.show import compact, fail, note, out, print_json

MESSAGE: Final = "MESSAGE"
FORMS: Final = ("application/x-ndjson", "application/json")
"""A stream, or what an agent gives that has none."""


def chat(options: Chat) -> None:
    """One turn for the words that are given, else a talk that ends with the input."""
    client = Client(options)
    if options.message is not None:
        said = {"message": text_of(options.message, MESSAGE)}
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
    if sys.stdin.isatty():
        note("Say something; an empty line or Ctrl-D ends the talk.")
    while line := _asked():
        yield line


def _asked() -> str:
    if sys.stdin.isatty():
        out().print("> ", end="")
    return sys.stdin.readline().strip()


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
    for line in client.lines(path_of("agents", options.agent, "invoke"), body, FORMS, idempotency(options.key)):
        entry = orjson.loads(line)
        for each in _entries_of(entry) if "data" in entry and "outputs" in entry["data"] else (entry,):
            screen.show(each["type"], each["data"])
    screen.close()
    return screen.text, screen.reason


def _entries_of(batch: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    outputs = batch["data"]["outputs"]
    for message in outputs["messages"]:
        yield {"type": "message", "data": {"text": message["content"]}}
    yield {"type": "done", "data": {"stopReason": outputs["stop_reason"]}}


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
            self._write(said)
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

    def _write(self, said: str) -> None:
        self._is_open = True
        out().print(said, end="")
        sys.stdout.flush()

    def _line(self) -> None:
        if self._is_open:
            out().print()
            self._is_open = False
