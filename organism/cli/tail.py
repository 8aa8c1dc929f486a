"""``organism tail``: the live stream in a terminal. A lost connection resumes by position, so no event is missed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import orjson
from rich.text import Text
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
from websockets.sync.client import ClientConnection, connect

from organism.cli.client import Place, no_server, place, refuse_answer, remedy_of
from organism.cli.exits import Exit, end
from organism.cli.options import Tail
from organism.cli.show import compact, message_line, note, out, placed, print_json, refuse, state_of
from organism.model.redact import visible

FIRST_DELAY_SECONDS: Final = 0.5
MAX_DELAY_SECONDS: Final = 8.0
NOT_ALLOWED: Final = frozenset({4401, 4403})
POLICY: Final = 1008
NOT_LET_IN: Final = frozenset({"missing_authorization", "invalid_authorization", "forbidden"})
"""The close code that follows says it too."""


@dataclass(slots=True)
class Watch:
    """What is watched. ``position`` is the last one that was shown; None begins now."""

    options: Tail
    wanted: Mapping[str, list[str]]
    place: Place
    position: int | None
    log: str | None = None
    is_filtered: bool = False
    """Whether what comes has passed the filter: what came before the filter was set is sent again."""

    @property
    def url(self) -> str:
        """Where to connect, going on after the position if there is one."""
        address = self.place.url.replace("http", "ws", 1) + "/ws"
        if self.position is None:
            return address
        return f"{address}?since={self.position}" + (f"&log={self.log}" if self.log else "")


def tail(options: Tail) -> None:
    """Show events until interrupted: Ctrl-C is how it ends, and no failure."""
    lists = {"threads": options.thread, "agents": options.agent, "events": options.event}
    wanted = {name: names for name, names in lists.items() if names}
    try:
        _watch(Watch(options, wanted, place(options), options.since))
    except KeyboardInterrupt:
        end(Exit.DONE)


def _watch(asked: Watch) -> NoReturn:
    """Connect, follow, and connect again when the connection is lost; only a first one that fails ends the command."""
    delay = FIRST_DELAY_SECONDS
    was_connected = False
    while True:
        socket = _connected(asked, is_first=not was_connected)
        if socket is not None:
            if was_connected:
                note("connected again")
            was_connected, delay = True, FIRST_DELAY_SECONDS
            with socket:
                _follow(asked, socket)
        note(f"connection lost after position {asked.position}; trying again in {delay:.1f} s")
        time.sleep(delay)
        delay = min(delay * 2, MAX_DELAY_SECONDS)
        asked.place = place(asked.options)  # a server that was started anew may have another port


def _connected(asked: Watch, *, is_first: bool) -> ClientConnection | None:
    """A connection, or None if there was one before and there is none now."""
    try:
        return connect(
            asked.url,
            additional_headers=asked.place.headers,
            ssl=asked.place.authorities(),
            compression=None,
            proxy=None,
            max_size=None,  # the server is trusted, and a payload's JSON can be large
        )
    except (OSError, InvalidHandshake, InvalidURI) as error:
        if not is_first:
            return None
        if isinstance(error, InvalidStatus):
            refuse_answer(asked.place, error.response.status_code, bytes(error.response.body or b""))
        no_server(asked.place, error)


def _follow(asked: Watch, socket: ClientConnection) -> None:
    """Show what one connection brings, until it ends."""
    asked.is_filtered = not asked.wanted
    with suppress(ConnectionClosed):
        for text in socket:
            frame = orjson.loads(text)
            _take(asked, frame)
            if frame["event"] == "connected" and asked.wanted:
                command = {"cmd": "subscribe", **asked.wanted, "since": asked.position}
                socket.send(orjson.dumps(command).decode())
    if socket.close_code in NOT_ALLOWED:
        refuse(Exit.NOT_ALLOWED, "The server does not take the token for this.", asked.place.token_remedy())
    if socket.close_code == POLICY:
        refuse(Exit.NOT_NOW, f"The server closed the connection: {socket.close_reason or 'too many are open'}.")


def _take(asked: Watch, frame: Mapping[str, Any]) -> None:
    """Note where it stands, and show it."""
    event = frame["event"]
    if event == "error" and "code" in frame:
        if frame["code"] not in NOT_LET_IN:
            refuse(Exit.FAILED, frame["error"], remedy_of(frame["code"]))
        return
    if event == "connected":
        asked.log = frame["log"]
        asked.position = frame["position"] if asked.position is None else asked.position
    elif event == "subscribed":
        asked.is_filtered = True
    elif not asked.is_filtered:
        return
    else:
        asked.position = max(asked.position or 0, frame.get("position", 0))
    if asked.options.json:
        print_json(frame)
    elif (line := shown(frame)) is not None:
        out().print(line)


def shown(frame: Mapping[str, Any]) -> Text | None:
    """A frame as a line for people, or None if it says nothing to them."""
    maker = LINES.get(frame["event"])
    if maker is None or (frame["event"] == "run" and "position" not in frame):  # such a text comes again, gathered
        return None
    return placed(frame.get("position"), maker(frame))


def _thread(frame: Mapping[str, Any]) -> Text:
    thread = frame.get("thread", frame)
    return Text.assemble("thread ", thread.get("id") or thread["thread_id"], " ", state_of(thread))


def _dead_letter(frame: Mapping[str, Any]) -> Text:
    letter = frame["dead_letter"]
    what = "dead letter " if frame["status"] == "open" else f"dead letter {frame['status']} "
    return Text.assemble((what, "red"), letter.get("reason") or letter["id"])


def _approval(frame: Mapping[str, Any]) -> Text:
    asked = frame["approval"]
    preview = f" {compact(visible(asked['preview']))}" if "preview" in asked else ""
    return Text.assemble("approval ", asked["id"], " ", state_of(asked), (preview, "dim"))


def _other(frame: Mapping[str, Any]) -> Text:
    said = {name: value for name, value in frame.items() if name not in {"event", "position"}}
    return Text.assemble(frame["event"], " ", (compact(said), "dim"))


LINES: Final[Mapping[str, Callable[[Mapping[str, Any]], Text]]] = {
    "message": lambda frame: message_line(frame["message"]),
    "thread_created": _thread,
    "thread_updated": _thread,
    "agent_state": lambda frame: Text.assemble("agent ", frame["agent"], " ", state_of(frame)),
    "error": lambda frame: Text.assemble((f"{frame['agent']} failed: ", "red"), frame["error"]),
    "dead_letter": _dead_letter,
    "organism_state": _other,
    "reload": _other,
    "approval": _approval,
    "indeterminate": lambda frame: Text("effect in doubt {id} {status}".format_map(frame["indeterminate"])),
    "run": lambda frame: Text.assemble(frame["agent"], " ", frame["type"], " ", (compact(frame["data"]), "dim")),
    "caught_up": lambda _: Text("up to date", "dim"),
}
