"""The process that is killed, forked from one that has imported everything: the real command, with a deadly point."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection

import anyio
import uvicorn.lifespan.off
import uvicorn.protocols.http.httptools_impl  # noqa: F401 - imported before the fork

from organism.cli.app import main
from tests.faults import points

MOST_FILES = 256

anyio.run(anyio.sleep, 0)  # has it import what it needs of asyncio
gc.freeze()  # no child's collection walks, and so copies, what they share


def live(argv: Sequence[str], environment: Mapping[str, str], output: Connection) -> None:
    """Become what the command would be: its arguments, environment and output, and no other open file."""
    for stream in (0, 1, 2):
        os.dup2(output.fileno(), stream)
    os.closerange(3, MOST_FILES)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["organism", *argv]
    points.install(os.environ.get(points.KILL_AT, ""))
    main()
