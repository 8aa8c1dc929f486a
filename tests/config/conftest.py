"""What the tests of the configuration share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.config.place import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A folder with one listener, ``greeter``, that loads as it is."""
    made = Place(tmp_path)
    yield made
    made.importer.close()


@pytest.fixture
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Another organism in the same process, with a package ``handlers`` of its own."""
    made = Place(tmp_path_factory.mktemp("other"))
    yield made
    made.importer.close()
