"""``organism kill``, ``pause``, ``resume``, ``reload`` and ``stop``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import typer

from organism.cli.client import Client
from organism.cli.options import Control, Kill, Remote
from organism.cli.show import out, print_json, state


def kill(options: Kill) -> None:
    """End a thread."""
    stands(Client(options).post(f"/threads/{quote(options.thread, safe='')}/kill"), options)


def pause(options: Control) -> None:
    """Start nothing more of what is meant."""
    stands(Client(options).post(f"{_target(options)}/pause"), options)


def resume(options: Control) -> None:
    """Go on with what is meant."""
    stands(Client(options).post(f"{_target(options)}/resume"), options)


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


def stands(said: Mapping[str, Any], options: Remote) -> None:
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
