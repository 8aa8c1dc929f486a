"""What all tests share: where their files lie, how hypothesis looks for its examples, a server of models to ask."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest
import structlog
from hypothesis import settings

from organism.server.runner import tune_interpreter
from tests.agents.peer.steering import peer, peer_place

__all__ = ["peer", "peer_place"]

MEMORY = Path("/dev/shm")  # noqa: S108 - pytest makes a folder of its own in it
MEMORY_BYTES = 4 << 30

# A killed process loses nothing that it wrote to a file in memory, and power cuts are played by a file system of the
# tests' own: no test needs a real disk, whose fsync takes milliseconds.
if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > MEMORY_BYTES:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

# No deadline: a busy machine is no fault of the code. A failing example is printed so that it can be run again.
settings.register_profile("push", deadline=None, print_blob=True)
settings.register_profile("fast", deadline=None, print_blob=True, max_examples=20)
settings.register_profile("soak", deadline=None, print_blob=True, max_examples=10_000)
settings.load_profile("push")  # others: `./scripts/test --hypothesis-profile soak`, `--fast`

# Standard output belongs to the commands that run in this process.
structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.__stderr__))

# A shell that begins the tests in the background has them ignore it, and whatever they begin as well.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that ask for more time: one that came last would be what all other workers wait for."""
    items.sort(key=lambda item: item.get_closest_marker("timeout") is None)


def pytest_collection_finish() -> None:
    """Run the tests in an interpreter as the server's, whose collections do not walk what all the tests are made of."""
    tune_interpreter()
