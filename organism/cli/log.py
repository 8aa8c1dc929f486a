"""``organism log``: what can be asked of a log without its server."""

from __future__ import annotations

from typing import Final

import typer

from organism.cli.options import Verify
from organism.cli.show import fail, out, print_json
from organism.errors import LogDamaged
from organism.log.driver import Pysqlite
from organism.log.log import Verification
from organism.log.place import Place
from organism.log.verify import verify as walk
from organism.model.ids import DEFAULT_TENANT

NO_LOG: Final = 1
DAMAGED: Final = 4


def verify(options: Verify) -> None:
    """Walk the whole chain; exit 4 and name every damage if something does not fit."""
    data = options.data
    place = Place(data / "tenants" / DEFAULT_TENANT)
    if not place.log.exists():
        fail(f"There is no log in {data}.", "Name the directory that `organism serve` was given: --data DIR.")
        raise typer.Exit(NO_LOG)
    found = _examine(place)
    if options.json:
        print_json(
            {
                "position": found.position,
                "events": found.events,
                "commits": found.commits,
                "damage": list(found.damage),
            }
        )
    elif found.damage:
        fail(
            f"The log in {data} is damaged.",
            "Stop the server, keep the directory as it is, and restore a backup.",
            found.damage,
        )
    else:
        out().print(f"whole: {found.events} events in {found.commits} commits, up to position {found.position}")
    if found.damage:
        raise typer.Exit(DAMAGED)


def _examine(place: Place) -> Verification:
    driver = Pysqlite()
    try:
        connection = driver.connect(str(place.log), read_only=True)
        return walk(connection, place.read_key(), 0, place.read_anchor())
    except LogDamaged as error:
        return Verification(0, 0, 0, (error.message,))
    except driver.errors as error:
        return Verification(0, 0, 0, (f"SQLite cannot read it: {error}",))
