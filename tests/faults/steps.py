"""A command that dies at a step: what it does to the files of a folder, counted from outside."""

from __future__ import annotations

import os
import signal
import sys
from itertools import count
from typing import Any

from organism.cli.app import main

STEPS = frozenset({"open", "os.mkdir", "os.remove", "os.rename", "os.rmdir"})


def die_at(step: int, folder: str, *words: str) -> None:
    """Be the command, which dies just before it touches the folder for so many times."""
    steps = count(1)

    def look(event: str, arguments: tuple[Any, ...]) -> None:
        if event in STEPS and str(arguments[0]).startswith(folder) and next(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(look)
    sys.argv = ["organism", *words]
    main()
