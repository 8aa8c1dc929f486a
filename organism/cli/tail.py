"""``organism tail``: the live stream in a terminal. A lost connection resumes by position, so no event is missed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NoReturn
from urllib.parse import urlencode

import orjson
import typer
from rich.text import Text
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
from websockets.sync.client import ClientConnection, connect

from organism.cli.client import Server, drop_none, find_server, refuse_no_server, refuse_response, remedy_of
from organism.cli.exits import Exit
from organism.cli.options import Tail
from organism.cli.output import (
    by_whom,
    changes_of,
    compact,
    lasted,
    message_line,
    note,
    out,
    print_json,
    refuse,
    state_of,
    with_position,
)
from organism.model.redact import visible

FIRST_DELAY_SECONDS: Final = 0.5
MAX_DELAY_SECONDS: Final = 8.0
NOT_ALLOWED: Final = frozenset({4401, 4403})
POLICY: Final = 1008
CLOSE_SECONDS: Final = 1.0
"""With more frames unread than it queues, the client would not see its close answered, and would wait forever."""
TOKEN_REFUSED: Final = frozenset({"missing_authorization", "invalid_authorization", "forbidden"})
"""The close code that follows says the same."""


@dataclass(slots=True)
class Watch:
    """What is watched. ``position`` is the last one that was shown; None begins now."""

    options: Tail
    server: Server
    position: int | None
    log: str | None = None

    @property
    def url(self) -> str:
        """The address with the filters and, if there is one, the position to resume from."""
        options = self.options
        lists = {"threads": options.thread, "agents": options.agent, "events": options.event}
        query = {"since": self.position, "log": self.log if self.position is not None else None}
        query |= {name: ",".join(names) for name, names in lists.items() if names}
        address = self.server.url.replace("http", "ws", 1) + "/ws"
        return f"{address}?{urlencode(given, safe=',')}" if (given := drop_none(query)) else address


def tail(options: Tail) -> None:
    """Show events until interrupted: Ctrl-C is the normal end, not a failure."""
    try:
        _watch(Watch(options, find_server(options), options.since))
    except KeyboardInterrupt:
        raise typer.Exit(Exit.DONE) from None


def _watch(watch: Watch) -> NoReturn:
    """Connect and follow, again and again; only a failure of the first attempt ends the command."""
    delay = FIRST_DELAY_SECONDS
    was_connected = False
    while True:
        socket = _connect(watch, is_first=not was_connected)
        if socket is not None:
            if was_connected:
                note("connected again")
            was_connected, delay = True, FIRST_DELAY_SECONDS
            with socket:
                _follow(watch, socket)
        note(f"connection lost after position {watch.position}; trying again in {delay:.1f} s")
        time.sleep(delay)
        delay = min(delay * 2, MAX_DELAY_SECONDS)
        watch.server = find_server(watch.options)  # a restarted server may have another port


def _connect(watch: Watch, *, is_first: bool) -> ClientConnection | None:
    """A connection; None if it cannot be had now and is not the first."""
    try:
        return connect(
            watch.url,
            additional_headers=watch.server.headers,
            ssl=watch.server.tls_context(),
            compression=None,
            proxy=None,
            close_timeout=CLOSE_SECONDS,
            max_size=None,  # the server is trusted, and a payload's JSON can be large
        )
    except (OSError, InvalidHandshake, InvalidURI) as error:
        if not is_first:
            return None
        if isinstance(error, InvalidStatus):
            refuse_response(watch.server, error.response.status_code, bytes(error.response.body or b""))
        refuse_no_server(watch.server, error)


def _follow(watch: Watch, socket: ClientConnection) -> None:
    """Show what one connection brings, until it ends."""
    with suppress(ConnectionClosed):
        for text in socket:
            _take(watch, orjson.loads(text))
    if socket.close_code in NOT_ALLOWED:
        refuse(Exit.NOT_ALLOWED, "The server does not accept the token for this.", watch.server.token_remedy())
    if socket.close_code == POLICY:
        refuse(Exit.NOT_NOW, f"The server closed the connection: {socket.close_reason or 'too many are open'}.")


def _take(watch: Watch, frame: Mapping[str, Any]) -> None:
    """Remember the frame's position, and show the frame."""
    event = frame["event"]
    if event == "error" and "code" in frame:
        if frame["code"] not in TOKEN_REFUSED:
            refuse(Exit.FAILED, frame["error"], remedy_of(frame["code"]))
        return
    if event == "connected":
        watch.log = frame["log"]
        watch.position = frame["position"] if watch.position is None else watch.position
    else:
        watch.position = max(watch.position or 0, frame.get("position", 0))
    if watch.options.json:
        print_json(frame)
    elif (line := shown(frame)) is not None:
        out().print(line)


def shown(frame: Mapping[str, Any]) -> Text | None:
    """A frame as a line for people; None if it has nothing for them."""
    maker = LINES.get(frame["event"])
    if maker is None or (frame["event"] == "run" and "position" not in frame):  # such text comes again from the log
        return None
    return with_position(frame.get("position"), maker(frame))


def _thread(frame: Mapping[str, Any]) -> Text:
    thread = frame.get("thread", frame)
    named = thread.get("id") or thread["thread_id"]
    return Text.assemble("thread ", named, " ", state_of(thread), by_whom(thread.get("by")))


def _handling(frame: Mapping[str, Any]) -> Text:
    if frame["phase"] == "started":
        again = f", attempt {frame['attempt']} after a {frame['after']}" if frame["after"] else ""
        return Text.assemble(f"{frame['agent']} started", again, " ", (frame["message_id"], "dim"))
    took = "" if frame["duration_ms"] is None else f" in {lasted(frame['duration_ms'])}"
    return Text.assemble(f"{frame['agent']} {frame['outcome']}{took} ", (frame["message_id"], "dim"))


def _step(frame: Mapping[str, Any]) -> Text:
    named = next((frame[name] for name in ("to", "model", "approval", "key") if frame.get(name)), "")
    failed = f" {frame['error']['code']}: {frame['error']['message']}" if frame["error"] else ""
    what = " ".join(filter(None, (frame["agent"], frame["kind"], named, frame["phase"])))
    return Text.assemble(what, (failed, "red"), " ", (f"{frame['message_id']}:{frame['step']}", "dim"))


def _usage(frame: Mapping[str, Any]) -> Text:
    used = f"{frame['input_tokens']} tokens in, {frame['output_tokens']} out, {frame['cost_usd']} USD"
    failed = f" {frame['error']}" if frame["error"] else ""
    took = f"{frame['agent']} called {frame['model']} in {lasted(frame['duration_ms'])}: {used}"
    return Text.assemble(took, (failed, "red"))


def _dead_letter(frame: Mapping[str, Any]) -> Text:
    letter = frame["dead_letter"]
    label = "dead letter " if frame["status"] == "open" else f"dead letter {frame['status']} "
    return Text.assemble((label, "red"), letter.get("reason") or letter["id"])


def _approval(frame: Mapping[str, Any]) -> Text:
    approval = frame["approval"]
    preview = f" {compact(visible(approval['preview']))}" if "preview" in approval else ""
    done = by_whom(frame.get("by"))
    return Text.assemble("approval ", approval["id"], " ", state_of(approval), done, (preview, "dim"))


def _agent_updated(frame: Mapping[str, Any]) -> Text:
    return Text.assemble("agent ", frame["agent"], " paused" if frame["paused"] else " resumed", by_whom(frame["by"]))


def _other(frame: Mapping[str, Any]) -> Text:
    fields = {name: value for name, value in frame.items() if name not in {"event", "position", "timestamp"}}
    return Text.assemble(frame["event"], " ", (compact(fields), "dim"))


LINES: Final[Mapping[str, Callable[[Mapping[str, Any]], Text]]] = {
    "message": lambda frame: message_line(frame["message"]),
    "thread_created": _thread,
    "thread_updated": _thread,
    "agent_state": lambda frame: Text.assemble("agent ", frame["agent"], " ", state_of(frame)),
    "error": lambda frame: Text.assemble((f"{frame['agent']} failed: ", "red"), frame["error"]),
    "dead_letter": _dead_letter,
    "organism_state": lambda frame: Text.assemble("organism ", state_of(frame), by_whom(frame["by"])),
    "agent_updated": _agent_updated,
    "reload": lambda frame: Text.assemble("reload ", (changes_of(frame) or "without changes", "dim")),
    "handling": _handling,
    "step": _step,
    "usage": _usage,
    "rates": _other,
    "approval": _approval,
    "indeterminate": lambda frame: Text("effect in doubt {id} {status}".format_map(frame["indeterminate"])),
    "run": lambda frame: Text.assemble(frame["agent"], " ", frame["type"], " ", (compact(frame["data"]), "dim")),
    "caught_up": lambda _: Text("up to date", "dim"),
}
