"""The program of the process that commits, without its handle."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import threading
from pathlib import Path

import pytest

from organism.log.committing import DONE, wish_of, wishes
from tests.log.engines import created, unit
from tests.log.projecting import opened


async def test_one_whose_log_is_gone_leaves_the_files_as_they_are(tmp_path: Path) -> None:
    """The last connection that is closed in order moves the WAL, which the next life may be looking at."""
    log = await opened(tmp_path / "log")
    await log.commit(unit("thr-1", created()))
    copy = tmp_path / "copy"
    await asyncio.to_thread(shutil.copytree, tmp_path / "log", copy)
    wal = (copy / "log.sqlite-wal").stat().st_size
    command = (sys.executable, "-m", "organism.log.committing", str(copy))
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate(b"".join(wish_of(None)))
    assert said == DONE + DONE
    assert (copy / "log.sqlite-wal").stat().st_size == wal
    await log.close()


@pytest.mark.parametrize("portion", [1, 7, 100, 65_536])
def test_wishes_are_read_whole_however_they_come(portion: int) -> None:
    asked = [
        ("INSERT ?", (1, None, 'ä"', b"", b"\x00[1]", b"x" * 300)),
        None,
        ("SELECT", ()),
        ("INSERT", (b"y" * 70_000,)),
    ]
    text = b"".join(piece for statement in asked for piece in wish_of(statement))
    reading, writing = os.pipe()

    def write() -> None:
        for begin in range(0, len(text), portion):
            os.write(writing, text[begin : begin + portion])
        os.close(writing)

    writer = threading.Thread(target=write)
    writer.start()
    got = [None if statement is None else (statement[0], tuple(statement[1])) for statement in wishes(reading)]
    writer.join()
    os.close(reading)
    assert got == asked
