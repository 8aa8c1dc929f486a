"""A first organism, written where nothing is in its way."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from organism.cli.init import FILES, STARTER
from organism.testing import running
from tests.cli.command import names, organism, start_process


async def test_init_writes_an_organism_that_works(tmp_path: Path) -> None:
    ran = await organism("init", tmp_path / "new" / "one")
    assert ran.code == 0
    assert f"cd {tmp_path / 'new' / 'one'} && organism serve" in ran.out
    async with running(tmp_path / "new" / "one" / "organism.yaml") as o:
        done = await o.inject("greeter", {"name": "Dan"}, wait=True)
        thought = await o.inject("researcher", {"message": "what is 17 % of 2,340?"}, wait=True)
    assert done.replies == ({"text": "HELLO, DAN!"},)
    assert "397.8" in thought.replies[0]["text"]


async def test_init_lists_its_files_as_json(tmp_path: Path) -> None:
    ran = await organism("init", tmp_path, "--json")
    assert ran.json == {"directory": str(tmp_path), "files": list(FILES.values())}
    assert all((tmp_path / name).is_file() for name in ran.json["files"])


@pytest.mark.parametrize("name", ["organism.yaml", "handlers", "README.md", ".gitignore"])
async def test_init_overwrites_nothing_and_then_writes_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    ran = await organism("init", tmp_path)
    assert (ran.code, ran.out) == (6, "")
    assert str(tmp_path / name) in ran.err
    assert names(tmp_path) == [name]
    assert (tmp_path / name).read_text() == "mine"


async def test_init_refuses_what_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert (await organism("init", tmp_path / "file")).code == 6
    below = await organism("init", tmp_path / "file" / "below")
    assert below.code == 1
    assert "next: " in below.err


async def test_init_on_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))

    process = await start_process("init", tmp_path / "new", preexec_fn=full)
    _, said = await process.communicate()
    assert (process.returncode, b"cannot be written" in said) == (1, True), said
    assert names(tmp_path) == []


def test_the_starter_is_short_and_each_file_of_it_is_written() -> None:
    stored = {str(path.relative_to(STARTER)) for path in STARTER.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert stored == set(FILES)
    assert len((STARTER / "README.md").read_text().splitlines()) <= 25
