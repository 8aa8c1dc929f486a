"""``organism log``: what can be asked of a log without its server."""

from __future__ import annotations

from typing import Final

import typer

from organism.cli.options import Verify
from organism.cli.show import fail, out, print_json
from organism.errors import LogDamaged, NotFound
from organism.log.log import Verification
from organism.log.offline import verify_directory
from organism.model.ids import DEFAULT_TENANT

NO_LOG: Final = 1
DAMAGED: Final = 4


def verify(options: Verify) -> None:
    """Walk the whole chain; exit 4 and name every damage if something does not fit."""
    data = options.data
    try:
        found = verify_directory(data / "tenants" / DEFAULT_TENANT)
    except NotFound as error:
        fail(error.message, "Name the directory that `organism serve` was given: --data DIR.")
        raise typer.Exit(NO_LOG) from None
    except LogDamaged as error:
        found = Verification(0, 0, 0, (error.message,))
    if options.json:
        print_json(_said(found))
    elif found.damage:
        remedy = "Stop the server, keep the directory as it is, and restore a backup."
        fail(f"The log in {data} is damaged.", remedy, found.damage)
    else:
        out().print(f"whole: {found.events} events in {found.commits} commits, up to position {found.position}")
    if found.damage:
        raise typer.Exit(DAMAGED)


def _said(found: Verification) -> dict[str, object]:
    return {
        "position": found.position,
        "events": found.events,
        "commits": found.commits,
        "damage": list(found.damage),
    }
