"""``organism messages``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import typer

from organism.cli.client import Client, Rows
from organism.cli.options import Messages
from organism.cli.show import compact, fields, moment, print_json, table, tell_more

COLUMNS: Final = ("MESSAGE", "FROM → TO", "PAYLOAD")


def messages(options: Messages) -> None:
    """The newest of them in their order, or one."""
    client = Client(options)
    xml = "true" if options.xml else None
    if options.message is not None and not options.why:
        _one(client.get(_path(options.message), {"xml": xml}), options)
        return
    found = _path_of_causes(client, options, xml) if options.why else _newest(client, options, xml)
    if options.json:
        print_json(found.rows)
        return
    table(COLUMNS, map(_row, found.rows), "no such message")
    tell_more(len(found.rows), found.total)


def _path(message: str) -> str:
    return f"/messages/{quote(message, safe='')}"


def _path_of_causes(client: Client, options: Messages, xml: str | None) -> Rows:
    """The message itself comes first, the injection at the root last."""
    rows: list[Any] = []
    wanted = options.message
    if wanted is None:
        raise typer.BadParameter("name the message whose causes you want: organism messages MESSAGE --why.")
    while wanted is not None:
        found = client.get(f"{_path(wanted)}/why", {"xml": xml})
        rows += found["messages"]
        wanted = found["next"]
    return Rows(rows, len(rows))


def _newest(client: Client, options: Messages, xml: str | None) -> Rows:
    """The list begins with the oldest: how many there are says where its end begins."""
    query = {"agent": options.agent, "since": options.since, "q": options.text}
    path = "/messages" if options.thread is None else f"/threads/{quote(options.thread, safe='')}/messages"
    total = client.get(path, {**query, "limit": 1})["total"]
    query = {**query, "xml": xml, "offset": max(0, total - options.limit)}
    return client.rows("messages", query, options.limit, path)


def _row(message: Mapping[str, Any]) -> tuple[Any, ...]:
    said = f"{message['payload_type']} {compact(message['payload'])}"
    return (message["id"], f"{message['from']} → {message['to']}", message.get("xml") or said)


def _one(message: Mapping[str, Any], options: Messages) -> None:
    if options.json:
        print_json(message)
        return
    fields(
        {
            "message": message["id"],
            "thread": message["thread_id"],
            "position": str(message["position"]),
            "from": message["from"],
            "to": message["to"],
            "sent": moment(message["timestamp"]),
            "cause": message["cause"],
            "payload": f"{message['payload_type']} {compact(message['payload'])}",
            "envelope": message.get("xml"),
        }
    )
