"""``organism log verify``: checks a log's directory from outside, reads only, also while a server writes there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from organism.errors import LogDamaged, NotFound
from organism.log.connect import looking
from organism.log.driver import Driver, Pysqlite
from organism.log.log import ReadModel, Verification
from organism.log.opening import doubt_rows
from organism.log.place import Place
from organism.log.rebuild import row_damage
from organism.log.upcast import Upcaster
from organism.log.verify import verify
from organism.model.ids import DEFAULT_TENANT


def verify_directory(
    directory: Path,
    key_path: Path | None = None,
    driver: Driver | None = None,
    tenant: str = DEFAULT_TENANT,
    models: Sequence[ReadModel] = (),
) -> Verification:
    """Check the chain, the digests, the contents and the rows of ``models`` of the log in ``directory``.

    What is wrong stands in ``damage``, position by position. Raises ``NotFound`` if there is no log, ``LogDamaged``
    if nothing can be said: the key or the anchor is missing, or neither is that of the ``tenant``'s log.
    """
    place = Place(directory, key_path, tenant)
    place.check_files()
    driver = driver or Pysqlite()
    try:
        with looking(place, driver) as connection:
            key = place.read_key()
            found = verify(connection, key, 0, place.read_anchor(key))
        rows = row_damage(place, models, Upcaster()) if models and not found.damage else []
        return replace(found, damage=(*found.damage, *rows))
    except driver.errors as error:
        return Verification(0, 0, 0, (f"{place.log.name} cannot be read: {error}",))


def doubt_directory(directory: Path, key_path: Path | None, tenant: str, now_us: Callable[[], int]) -> None:
    """Have the next start make all rows again. Raises ``LogHeld`` if a server has the log, ``NotFound`` without one."""
    place, driver = Place(directory, key_path, tenant), Pysqlite()
    if not place.log.is_file():
        raise NotFound(f"{place.directory} holds no log: {place.log.name} is missing.")
    place.hold(now_us)
    try:
        with closing(driver.connect(str(place.log))) as connection:
            doubt_rows(connection)
    except driver.errors as error:
        raise LogDamaged(f"{place.log.name} cannot be written: {error}") from error
    finally:
        place.release()
