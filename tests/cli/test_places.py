"""A data directory may have any name: what is written for it lies in it, and every command finds it again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from organism.rag.library import By
from tests.cli.command import names, organism
from tests.rag import libraries
from tests.rag.libraries import content, texts

UNUSUAL = ["a#b", "a?mode=memory&b", "%2e 100%", ":memory:\n🐙;'$(x)[b]"]


async def fill(data: Path) -> None:
    """A message and a document, then a stop."""
    async with libraries.organism(data) as o:
        await o.tenant.library.replace("x", texts(a="the tower stands"), None, By())
        await o.inject("greeter", {"name": "Dan"}, wait=True)


@pytest.mark.parametrize("name", UNUSUAL)
async def test_a_data_directory_of_an_unusual_name_is_served_verified_copied_and_restored(
    tmp_path: Path, name: str
) -> None:
    parent = tmp_path / "parent"
    data, again = parent / name, parent / f"{name} again"
    await fill(data)
    assert names(parent) == [name]
    assert {"log.sqlite", "library.sqlite"} <= set(names(data / "tenants" / "default"))
    for words in (
        ("verify", "--data", f"{data}/"),
        ("backup", parent / f"{name} file", "--data", data),
        ("restore", parent / f"{name} file", "--data", again),
        ("verify", "--data", again),
        ("rebuild", "--data", again),
        ("stats", "--data", again),
    ):
        ran = await organism("log", *words)
        assert ran.code == 0, ran.err
    async with libraries.organism(again) as o:
        assert await content(o.tenant.library, "x") == {"a": "the tower stands"}
    assert names(parent) == sorted([name, f"{name} again", f"{name} file"])


async def test_a_path_may_be_bytes_that_are_no_text(tmp_path: Path) -> None:
    name = b"caf\xe9#?"
    data = tmp_path / "parent" / os.fsdecode(name)
    await fill(data)
    assert os.listdir(os.fsencode(tmp_path / "parent")) == [name]  # noqa: PTH208 - Path has no bytes
    async with libraries.organism(data) as o:
        assert await content(o.tenant.library, "x") == {"a": "the tower stands"}


async def test_a_path_may_begin_with_two_slashes(tmp_path: Path) -> None:
    await fill(Path(f"/{tmp_path}/data"))
    assert (await organism("log", "verify", "--data", f"/{tmp_path}/data")).code == 0
    assert "log.sqlite" in names(tmp_path / "data" / "tenants" / "default")
