"""``organism log verify``: checks a log's directory from outside, reads only, also while a server writes there."""

from __future__ import annotations

from pathlib import Path

from organism.log.connect import looking
from organism.log.driver import Driver, Pysqlite
from organism.log.log import Verification
from organism.log.place import Place
from organism.log.verify import verify


def verify_directory(directory: Path, key_path: Path | None = None, driver: Driver | None = None) -> Verification:
    """Check the chain, the digests and the contents of the log in ``directory``, up to its anchored head.

    What is wrong stands in ``damage``, position by position. Raises ``NotFound`` if there is no log, ``LogDamaged``
    if the key or the anchor is missing, so that nothing can be said.
    """
    place = Place(directory, key_path)
    driver = driver or Pysqlite()
    try:
        with looking(place, driver) as connection:
            return verify(connection, place.read_key(), 0, place.read_anchor())
    except driver.errors as error:
        return Verification(0, 0, 0, (f"{place.log.name} cannot be read: {error}",))
