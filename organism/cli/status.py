"""``organism status`` and ``organism config``."""

from __future__ import annotations

from datetime import timedelta

from organism.cli.client import Client
from organism.cli.options import Remote
from organism.cli.show import fields, print_document, print_json, state


def status(options: Remote) -> None:
    """How the organism stands."""
    client = Client(options)
    said = client.get("/organism")
    if options.json:
        print_json(said)
        return
    fields(
        {
            "organism": said["name"],
            "status": state(said["status"]),
            "address": client.place.url,
            "up for": str(timedelta(seconds=int(said["uptime_seconds"]))),
            "agents": str(said["agent_count"]),
            "threads": f"{said['active_threads']} active",
            "messages": str(said["total_messages"]),
            "position": str(said["position"]),
            "version": said["version"],
        }
    )


def config(options: Remote) -> None:
    """The configuration as the server took it."""
    said = Client(options).get("/organism/config")
    (print_json if options.json else print_document)(said)
