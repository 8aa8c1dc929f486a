"""``organism threads``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from organism.cli.client import Client
from organism.cli.options import Threads
from organism.cli.show import fields, message_line, moment, out, placed, print_json, state, table, tell_more

COLUMNS: Final = ("THREAD", "STATUS", "MESSAGES", "LAST", "PARTICIPANTS")


def threads(options: Threads) -> None:
    """The newest of them, or one with its messages."""
    client = Client(options)
    if options.thread is not None:
        _one(client.get(f"/threads/{quote(options.thread, safe='')}"), options)
        return
    query = {"status": options.status, "agent": options.agent, "since": options.since}
    found = client.rows("threads", query, options.limit)
    if options.json:
        print_json(found.rows)
        return
    table(COLUMNS, map(_row, found.rows), "there are no such threads" if any(query.values()) else "no thread yet")
    tell_more(len(found.rows), found.total)


def _row(thread: Mapping[str, Any]) -> tuple[Any, ...]:
    """What went wrong is worth more than who took part."""
    return (
        thread["id"],
        state(thread["status"], paused=thread["paused"]),
        str(thread["message_count"]),
        moment(thread["last_activity"]),
        thread["error"] or ", ".join(thread["participants"]),
    )


def _one(thread: Mapping[str, Any], options: Threads) -> None:
    if options.json:
        print_json(thread)
        return
    fields(
        {
            "thread": thread["id"],
            "status": state(thread["status"], paused=thread["paused"]),
            "error": thread["error"],
            "participants": ", ".join(thread["participants"]),
            "begun": moment(thread["created_at"]),
            "last": moment(thread["last_activity"]),
        }
    )
    for message in thread["messages"]:
        out().print(placed(message["position"], message_line(message)))
    if thread["next"]:
        total = thread["message_count"]
        out().print(f"{len(thread['messages'])} of {total}; organism messages --thread {thread['id']} --limit {total}")
