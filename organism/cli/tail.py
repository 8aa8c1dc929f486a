"""``organism tail``: the live stream in a terminal. A lost connection resumes by position, so no event is missed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import orjson
import typer
from rich.text import Text
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI
from websockets.sync.client import ClientConnection, connect

from organism.cli.client import NOT_TAKEN, REFUSED, Place, no_server, place
from organism.cli.options import Tail
from organism.cli.show import fail, out, state

FIRST_DELAY_SECONDS: Final = 0.5
MAX_DELAY_SECONDS: Final = 8.0
NOT_AUTHENTICATED: Final = 4401
NOT_LET_IN: Final = frozenset({"missing_authorization", "invalid_authorization"})
"""The close code that follows says it too."""
QUIET: Final = frozenset({"subscribed", "checkpoint", "fell_behind"})


@dataclass(slots=True)
class Watch:
    """What is watched. ``position`` is the last one that was shown; None begins now."""

    place: Place
    position: int | None
    wanted: Mapping[str, list[str]]
    as_json: bool
    log: str | None = None

    @property
    def url(self) -> str:
        """Where to connect, going on after the position if there is one."""
        base = self.place.url.replace("http", "ws", 1) + "/ws"
        if self.position is None:
            return base
        return f"{base}?since={self.position}" + (f"&log={self.log}" if self.log else "")


def watch(options: Tail) -> None:
    """Show events until interrupted."""
    lists = {"threads": options.thread, "agents": options.agent, "events": options.event}
    given = {name: names for name, names in lists.items() if names}
    asked = Watch(place(options), options.since, given, as_json=options.json)
    try:
        _watch(asked)
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def _watch(asked: Watch) -> NoReturn:
    """Connect, follow, and connect again when the connection is lost; only a first one that fails ends the command."""
    delay = FIRST_DELAY_SECONDS
    was_connected = False
    while True:
        try:
            with connect(asked.url, additional_headers=asked.place.headers, compression=None, proxy=None) as socket:
                was_connected, delay = True, FIRST_DELAY_SECONDS
                _follow(asked, socket)
        except (OSError, InvalidHandshake, InvalidURI) as error:
            if not was_connected:
                no_server(asked.place, error)
        fail(f"connection lost after position {asked.position}; trying again in {delay:.1f} s")
        time.sleep(delay)
        delay = min(delay * 2, MAX_DELAY_SECONDS)


def _follow(asked: Watch, socket: ClientConnection) -> None:
    """Show what one connection brings, until it ends."""
    with suppress(ConnectionClosed):
        if asked.wanted:
            again = {} if asked.position is None else {"since": asked.position}
            socket.send(orjson.dumps({"cmd": "subscribe", **asked.wanted, **again}).decode())
        for text in socket:
            _take(asked, orjson.loads(text))
    if socket.close_code == NOT_AUTHENTICATED:
        fail("The server does not take the token.", "Give it with --token or ORGANISM_TOKEN, or name --data DIR.")
        raise typer.Exit(NOT_TAKEN)


def _take(asked: Watch, frame: Mapping[str, Any]) -> None:
    event = frame["event"]
    if event == "connected":
        asked.log = frame["log"]
        asked.position = frame["position"] if asked.position is None else asked.position
        return
    if event == "error" and "code" in frame:
        if frame["code"] in NOT_LET_IN:
            return
        fail(frame["error"])
        raise typer.Exit(REFUSED)
    asked.position = max(asked.position or 0, frame.get("position", 0))
    if asked.as_json:
        if event not in QUIET:
            print(orjson.dumps(frame).decode(), flush=True)  # noqa: T201 - standard output is what the option asks for
    elif (line := shown(frame)) is not None:
        out().print(line)


def shown(frame: Mapping[str, Any]) -> Text | None:
    """A frame as a line for people, or None if it says nothing to them."""
    maker = LINES.get(frame["event"])
    if maker is None:
        return None
    place = f"{frame['position']:>8} " if "position" in frame else " " * 9
    return Text.assemble((place, "dim"), maker(frame))


def _message(frame: Mapping[str, Any]) -> Text:
    message = frame["message"]
    payload = orjson.dumps(message["payload"]).decode()
    route = f"{message['from']} → {message['to']}"
    return Text.assemble((route, "bold"), " ", message["payload_type"], " ", (payload, "dim"))


def _thread(frame: Mapping[str, Any]) -> Text:
    thread = frame.get("thread", frame)
    name = thread.get("id") or thread["thread_id"]
    return Text.assemble("thread ", name, " ", state(thread["status"], paused=bool(thread.get("paused"))))


def _agent(frame: Mapping[str, Any]) -> Text:
    return Text.assemble("agent ", frame["agent"], " ", state(frame["state"], paused=bool(frame.get("paused"))))


def _error(frame: Mapping[str, Any]) -> Text:
    return Text.assemble((f"{frame['agent']} failed: ", "red"), frame["error"])


def _dead_letter(frame: Mapping[str, Any]) -> Text:
    letter = frame["dead_letter"]
    reason = letter.get("reason") or letter["id"]
    return Text.assemble(
        ("dead letter " if frame["status"] == "open" else f"dead letter {frame['status']} ", "red"), reason
    )


def _caught_up(_frame: Mapping[str, Any]) -> Text:
    return Text("up to date", "dim")


def _other(frame: Mapping[str, Any]) -> Text:
    said = {name: value for name, value in frame.items() if name not in {"event", "position"}}
    return Text.assemble(frame["event"], " ", (orjson.dumps(said).decode(), "dim"))


LINES: Final = {
    "message": _message,
    "thread_created": _thread,
    "thread_updated": _thread,
    "agent_state": _agent,
    "error": _error,
    "dead_letter": _dead_letter,
    "organism_state": _other,
    "reload": _other,
    "approval": _other,
    "indeterminate": _other,
    "caught_up": _caught_up,
}
