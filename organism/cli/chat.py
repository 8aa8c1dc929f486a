"""``organism chat``: one turn, or a conversation that the server remembers, in a terminal or for programs."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

import typer

from organism.cli.client import Client, own_name, path_of
from organism.cli.exits import Exit
from organism.cli.options import Chat
from organism.cli.output import compact, fail, note, out, print_json
from organism.cli.send import read_text
from organism.model.completion import WITHHELD

AGENTS: Final = "/a1/agents"
SHOWN_AT_RESUME: Final = 20
HELP: Final = """\
/compact   summarise what is older, and go on
/history   show what was said last
/help      show this
Ctrl-C     stop the answer
Ctrl-D     end; the session is kept"""


def chat(options: Chat) -> None:
    """One turn for the given message, else a conversation that ends with the input."""
    conversation = Conversation(options)
    if options.message is not None:
        reason = conversation.say(read_text(options.message, "MESSAGE"), options.key)
        if reason in {"error", "killed"}:
            raise typer.Exit(Exit.FAILED)
        return
    if options.session is not None and not options.json:
        conversation.show_history()
    for line in _lines():
        try:
            conversation.take(line)
        except (typer.Exit, KeyboardInterrupt):  # the error is shown; the person may type something else
            if not sys.stdin.isatty():
                raise
    if conversation.session is not None and sys.stdin.isatty():
        note(f"go on with: organism chat {options.agent} --session {conversation.session}")


def _lines() -> Iterator[str]:
    """What is typed, line by line, until Ctrl-D; an empty line says nothing."""
    is_typed = sys.stdin.isatty()
    if is_typed:
        import readline  # noqa: F401 - gives `input` its line editing, on a terminal alone

        note("/help shows what you can do; Ctrl-D ends the conversation.")
    while True:
        try:
            line = input("> ") if is_typed else sys.stdin.readline()
        except EOFError:
            out().print()
            return
        except KeyboardInterrupt:  # drops the line being typed
            out().print()
            continue
        if not line and not is_typed:
            return
        if line.strip():
            yield line.strip()


@dataclass
class Conversation:
    """A conversation with the agent; its session begins with the first thing that is said."""

    options: Chat

    def __post_init__(self) -> None:
        self._client = Client(self.options)
        self._headers = {"SPASS-User-Id": self.options.user or own_name()}
        self.session = self.options.session

    def take(self, line: str) -> None:
        """A line of the conversation: a command, or what is said."""
        commands = {"/help": lambda: note(HELP), "/compact": self._compact, "/history": self.show_history}
        if line in commands and not self.options.json:
            commands[line]()
            return
        if self.session is None:
            self.session = self._post({}, "sessions")["id"]
        self.say(line)

    def say(self, message: str, key: str | None = None) -> str:
        """One turn, shown as it comes. Returns why it ended."""
        body: dict[str, Any] = {"message": message, **({"wait": True} if self.options.wait else {})}
        if self.options.json:
            answer = self._post(body, *self._place(), key=key)
            self.session = answer.get("session_id", self.session)
            print_json(answer)
            return str(answer["stop_reason"])
        if self.session is not None:
            body["on_disconnect"] = "kill"
        try:
            with closing(self._entries(body, key)) as entries:
                return _show(entries)
        except KeyboardInterrupt:
            if self.options.message is not None:
                raise
            note("\nstopped")
            return "killed"

    def _entries(
        self, body: Mapping[str, Any], key: str | None
    ) -> Generator[tuple[str, Mapping[str, Any]], None, None]:
        """The entries of the run as they come; those of an agent that cannot stream are made from its answer."""
        path, is_streamed = AGENTS + path_of(self.options.agent, *self._place()), False
        for address, entry in self._client.entries(path, {**body, "stream": True}, key, **self._headers):
            is_streamed = True
            if self.session is not None:
                self.session = address.split("/")[-2]  # where a session was archived, its successor answers
            if entry["type"] == "waiting":
                note(entry["data"]["reason"])
            else:
                yield entry["type"], entry["data"]
        if is_streamed:
            return
        answer = self._post(body, *self._place(), key=key)
        self.session = answer.get("session_id", self.session)
        yield from (("message", {"text": message["content"]}) for message in answer["messages"])
        if "error" in answer:
            yield "error", answer["error"]
        yield "done", {"stopReason": answer["stop_reason"]}

    def _place(self) -> tuple[str, ...]:
        return ("chat",) if self.session is None else ("sessions", self.session, "messages")

    def _compact(self) -> None:
        if self.session is None:
            note("Nothing was said yet.")
            return
        answer = self._post(None, "sessions", self.session, "compact")
        self.session = answer["successor_session_id"]
        note(answer["summary_text"])

    def show_history(self) -> None:
        """What was said last."""
        if self.session is None:
            note("Nothing was said yet.")
            return
        path = AGENTS + path_of(self.options.agent, "sessions", self.session, "messages")
        get = self._client.get
        total = get(path, {"limit": 1}, base="", headers=self._headers)["total"]
        query = {"offset": max(0, total - SHOWN_AT_RESUME)}
        for message in get(path, query, base="", headers=self._headers)["messages"]:
            if message["role"] == "user":
                out().print(f"> {message['content']}", style="bold")
            elif "tool_name" in message:
                note(f"{message['tool_name']} {compact(message['input'])}")
            elif message["role"] == "assistant":
                out().print(message["content"])

    def _post(self, body: Any, *parts: str, key: str | None = None) -> Any:
        path = AGENTS + path_of(self.options.agent, *parts)
        return self._client.post(path, body, key, base="", headers=self._headers, follow_redirects=True)


def _show(entries: Iterator[tuple[str, Mapping[str, Any]]]) -> str:
    """Show the turn as it comes. Returns why it ended."""
    reason, is_mid_line = "", False
    for kind, data in entries:
        if is_mid_line and kind in {"message", "message_start", "tool_call", "error", "done"}:
            out().print()
            is_mid_line = False
        match kind:
            case "message" | "message_delta":
                out().print(data["text"] if kind == "message" else data["delta"], end="")
                sys.stdout.flush()
                is_mid_line = True
            case "tool_call":
                note(f"{data['name']} {compact(data['input'])}")
            case "error":
                fail(data["message"])
            case "done":
                reason = data["stopReason"]
                if reason in WITHHELD:
                    note(f"The rest of the answer was withheld ({reason}).")
    if is_mid_line:
        out().print()
    if not reason:
        fail("The stream was cut before the turn was done.", "`organism threads` shows whether it goes on.")
        raise typer.Exit(Exit.NOT_NOW)
    return reason
