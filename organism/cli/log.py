"""``organism log``: what can be asked of a log, by its server or without it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from rich.filesize import decimal
from rich.text import Text

from organism.cli.client import PAGE_ROWS, Client, given
from organism.cli.exits import Exit
from organism.cli.options import Events, Offline
from organism.cli.show import compact, fields, moment, out, placed, print_json, print_line, refuse, table
from organism.errors import LogDamaged, NotFound
from organism.log.log import Verification
from organism.log.offline import verify_directory
from organism.log.stats import Stats, count
from organism.model.ids import DEFAULT_TENANT

NAME_IT: Final = "Name the directory that `organism serve` was given: --data DIR."
RESTORE: Final = "Stop the server, keep the directory as it is, and restore a backup."
_MICROSECONDS: Final = 1_000_000


def verify(options: Offline) -> None:
    """Walk the whole chain; exit 1 and name every damage if something does not fit."""
    data = options.data
    try:
        found = verify_directory(data / "tenants" / DEFAULT_TENANT, options.key)
    except NotFound as error:
        refuse(Exit.NOT_FOUND, error.message, NAME_IT)
    except LogDamaged as error:
        found = Verification(0, 0, 0, (error.message,))
    if options.json:
        print_json(_verified(found))
    if found.damage:
        refuse(Exit.FAILED, f"The log in {data} is damaged.", RESTORE, found.damage)
    if not options.json:
        out().print(f"whole: {found.events} events in {found.commits} commits, up to position {found.position}")


def _verified(found: Verification) -> dict[str, object]:
    return {
        "position": found.position,
        "events": found.events,
        "commits": found.commits,
        "damage": list(found.damage),
    }


def stats(options: Offline) -> None:
    """Count events by their types, commits and bytes."""
    try:
        found = count(options.data / "tenants" / DEFAULT_TENANT)
    except NotFound as error:
        refuse(Exit.NOT_FOUND, error.message, NAME_IT)
    except LogDamaged as error:
        refuse(Exit.FAILED, error.message, "`organism log verify` says what is damaged, and where.")
    if options.json:
        print_json(_counted(found))
    else:
        _show(found)


def _counted(found: Stats) -> dict[str, Any]:
    return {
        "position": found.position,
        "units": found.units,
        "commits": found.commits,
        "threads": found.threads,
        "first_at": _iso(found.first_at),
        "last_at": _iso(found.last_at),
        "events": dict(found.events.most_common()),
        "file_bytes": found.file_bytes,
    }


def _iso(at: int) -> str | None:
    return datetime.fromtimestamp(at / _MICROSECONDS, UTC).isoformat() if at else None


def _show(found: Stats) -> None:
    fields(
        {
            "events": f"{found.position} in {found.units} units and {found.commits} commits",
            "threads": str(found.threads),
            "from": moment(_iso(found.first_at)),
            "to": moment(_iso(found.last_at)),
            "size": decimal(sum(found.file_bytes.values())),
        }
    )
    out().print()
    table(("EVENT", "COUNT"), ((kind, str(number)) for kind, number in found.events.most_common()), "no event yet")
    out().print()
    table(("FILE", "SIZE"), ((name, decimal(size)) for name, size in found.file_bytes.items()), "no file")


def events(options: Events) -> None:
    """The events in their order, page by page."""
    client, after, left = Client(options), options.after, options.limit
    asked = {"until": options.until, "thread": options.thread, "type": options.type}
    query = given({**asked, "content": "true" if options.content else None})
    while left > 0:
        found = client.get("/log", {**query, "after": after, "limit": min(left, PAGE_ROWS)})
        for event in found["events"]:
            _show_event(event, options)
        left -= len(found["events"])
        if found["next"] is None:
            return
        after = found["next"]


def _show_event(event: Mapping[str, Any], options: Events) -> None:
    if options.json:
        print_json(event)
        return
    said = {**event["data"], **({"content": event["content"]} if "content" in event else {})}
    line = Text.assemble(moment(event["at"]), " ", (event["type"], "bold"), " ", (compact(said), "dim"))
    print_line(placed(event["position"], line))
