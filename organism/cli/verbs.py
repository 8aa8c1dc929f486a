"""What the verbs do: one call, one answer shown."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
import typer

from organism.cli.client import Client
from organism.cli.options import Control, Inject, Kill, Remote, Threads
from organism.cli.show import fail, moment, out, print_json, state, table


def payload_text(said: str) -> str:
    """The payload itself: as it stands, of a file (``@FILE``) or of standard input (``-``)."""
    if said == "-":
        return sys.stdin.read()
    if not said.startswith("@"):
        return said
    try:
        return Path(said[1:]).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{said[1:]} cannot be read: {error}.", param_hint="PAYLOAD") from error


def inject(options: Inject) -> None:
    """Send it; with ``--wait``, show the replies."""
    text = payload_text(options.payload)
    headers = {"Idempotency-Key": options.key} if options.key else {}
    place = {"to": options.to, "thread_id": options.thread, "wait": options.wait}
    given = {name: value for name, value in place.items() if value is not None}
    client = Client(options)
    if text.lstrip().startswith("<"):
        query = {name: str(value) for name, value in given.items()}
        headers["Content-Type"] = "application/xml"
        said = client.post("/inject", params=query, content=text.encode(), headers=headers)
    else:
        said = client.post("/inject", {**given, "payload": _parsed(text)}, headers=headers)
    if options.json:
        print_json(said)
    else:
        _show_injected(said, waited=options.wait is not None)


def _parsed(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise typer.BadParameter(f"it is neither JSON ({error}) nor XML.", param_hint="PAYLOAD") from error


def _show_injected(said: Mapping[str, Any], *, waited: bool) -> None:
    console = out()
    console.print(f"thread   {said['thread_id']}\nmessage  {said['message_id']}\nposition {said['position']}")
    for reply in said.get("replies", ()):
        console.print(f"{reply['from']} → {reply['to']}  {reply['payload_type']} {_compact(reply['payload'])}")
    if "thread" in said:
        console.print(state(said["thread"]["status"]))
        if said["thread"]["error"]:
            fail(said["thread"]["error"])
    elif waited:
        console.print("still active; `organism tail --thread` shows what happens")


def agents(options: Remote) -> None:
    """List the agents."""
    found = Client(options).get("/agents", {"limit": "500"})
    if options.json:
        print_json(found["agents"])
        return
    shown = table("AGENT", "STATE", "WAITING", "MESSAGES", "PEERS", "LAST ACTIVITY", "DESCRIPTION")
    for agent in found["agents"]:
        shown.add_row(
            agent["name"],
            state(agent["state"], paused=agent["paused"]),
            str(agent["queue_depth"]),
            str(agent["message_count"]),
            ", ".join(agent["peers"]) or "-",
            moment(agent["last_activity"]),
            agent["description"],
        )
    out().print(shown)


def threads(options: Threads) -> None:
    """List the threads."""
    query = {"status": options.status, "agent": options.agent, "limit": str(options.limit)}
    found = Client(options).get("/threads", {name: said for name, said in query.items() if said})
    if options.json:
        print_json(found["threads"])
        return
    shown = table("THREAD", "STATUS", "MESSAGES", "LAST ACTIVITY", "PARTICIPANTS", "ERROR")
    for thread in found["threads"]:
        shown.add_row(
            thread["id"],
            state(thread["status"], paused=thread["paused"]),
            str(thread["message_count"]),
            moment(thread["last_activity"]),
            ", ".join(thread["participants"]),
            thread["error"] or "",
        )
    out().print(shown)
    if found["total"] > found["count"]:
        out().print(f"{found['count']} of {found['total']}; --limit shows more")


def kill(options: Kill) -> None:
    """End a thread."""
    _say(Client(options).post(f"/threads/{quote(options.thread, safe='')}/kill"), options)


def control(options: Control, verb: str) -> None:
    """Pause or resume."""
    _say(Client(options).post(f"{_target(options)}/{verb}"), options)


def _target(options: Control) -> str:
    """The path of what is meant: one of the three."""
    named = {
        f"/agents/{quote(options.agent or '', safe='')}": options.agent is not None,
        f"/threads/{quote(options.thread or '', safe='')}": options.thread is not None,
        "/organism": options.everything,
    }
    meant = [path for path, is_meant in named.items() if is_meant]
    if len(meant) != 1:
        raise typer.BadParameter("name one of them: an AGENT, --thread THREAD or --all.")
    return meant[0]


def _say(said: Mapping[str, Any], options: Remote) -> None:
    """Show the thread, agent or organism as it stands now."""
    if options.json:
        print_json(said)
        return
    now = said.get("state") or said.get("status") or ""
    out().print(said.get("id") or said.get("name") or "", state(now, paused=bool(said.get("paused"))))


def reload(options: Remote) -> None:
    """Read the configuration anew."""
    said = Client(options).post("/organism/reload")
    if options.json:
        print_json(said)
        return
    changes = [f"{what}: {', '.join(said[what])}" for what in ("added", "removed", "updated") if said[what]]
    out().print("; ".join(changes) or "nothing has changed")


def stop(options: Remote) -> None:
    """Stop the server."""
    said = Client(options).post("/organism/stop")
    if options.json:
        print_json(said)
    else:
        out().print("stopping: what runs gets its grace")


def _compact(payload: Any) -> str:
    return orjson.dumps(payload).decode()
