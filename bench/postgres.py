"""A PostgreSQL server of its own for a rival: in a folder, on a free port, as it is after `initdb`; gone afterwards.

Its defaults are durable (`fsync` and `synchronous_commit` are on). Standard library only.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from signal import SIGINT

from bench.feeding import free_port
from bench.load import skip

DEBIAN = Path("/usr/lib/postgresql")
USER = "postgres"
"""Debian's package makes it; the server refuses to run as root."""
START_SECONDS, LOOK_SECONDS = 30.0, 0.05


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """Its address. Skips the measurement where it is not installed."""
    programs, user, port = _programs(), USER if os.geteuid() == 0 else None, free_port()
    if user:
        shutil.chown(folder, user)
    _run([programs / "initdb", "--pgdata", folder, "--username", USER, "--auth", "trust"], user)
    settings = [f"port={port}", "listen_addresses=127.0.0.1", "unix_socket_directories=", "log_min_messages=panic"]
    command = [str(programs / "postgres"), "-D", str(folder), *(f"--{setting}" for setting in settings)]
    with subprocess.Popen(command, user=user, cwd="/") as server:
        try:
            _until_ready([programs / "pg_isready", "--host", "127.0.0.1", "--port", str(port), "--username", USER])
            yield f"postgresql://{USER}@127.0.0.1:{port}/postgres"
        finally:
            server.send_signal(SIGINT)  # does not wait for clients


def _programs() -> Path:
    """Where the newest version's programs are; Debian keeps them out of the PATH."""
    versions = sorted(DEBIAN.glob("*/bin/initdb"), key=lambda path: float(path.parents[1].name))
    found = versions[-1] if versions else shutil.which("initdb")
    if not found:
        skip("PostgreSQL is not installed: `apt-get install postgresql`, then start again.")
    return Path(found).parent


def _run(command: Sequence[str | Path], user: str | None) -> None:
    subprocess.run(command, user=user, cwd="/", check=True, stdout=subprocess.DEVNULL)


def _until_ready(look: Sequence[str | Path]) -> None:
    """Raises ``TimeoutError``."""
    end = time.monotonic() + START_SECONDS
    while subprocess.run(look, stdout=subprocess.DEVNULL, check=False).returncode:
        if time.monotonic() > end:
            raise TimeoutError(f"PostgreSQL did not answer within {START_SECONDS:g} s.")
        time.sleep(LOOK_SECONDS)
