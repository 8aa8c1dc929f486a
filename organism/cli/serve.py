"""``organism serve``: refuse what cannot be served, before all of the server is imported."""

from __future__ import annotations

import fcntl
import os
import re
from pathlib import Path
from typing import Final

import typer

from organism.cli.client import is_loopback
from organism.cli.exits import Exit
from organism.cli.options import Serve
from organism.cli.show import refuse
from organism.log.place import Place
from organism.model.ids import DEFAULT_TENANT

_NOTE: Final = re.compile(r"process \d+ since [^\n]+")


def serve(options: Serve) -> None:
    """Serve until a signal or ``organism stop``; exit 1 with the reason if that cannot begin."""
    if (who := holder(options.data)) is not None:  # the server's own hold, later, is the one that counts
        remedy = "Stop it with `organism stop`, or serve another directory: --data DIR."
        refuse(Exit.FAILED, f"{options.data} is held by {who}.", remedy)
    _refuse_the_unsafe(options)
    from organism.cli.serving import serve_with

    serve_with(options)


def _refuse_the_unsafe(options: Serve) -> None:
    """Beyond this machine nothing is said in the clear, and no log takes the key of another."""
    if bool(options.tls_cert) != bool(options.tls_key):
        raise typer.BadParameter("--tls-cert and --tls-key belong together.")
    if not (is_loopback(options.host) or options.tls_cert or options.behind_proxy):
        fault = f"{options.host} can be reached from other machines, and there is no TLS."
        remedy = "Give --tls-cert and --tls-key, or --behind-proxy if a proxy in front of it does TLS."
        refuse(Exit.FAILED, fault, remedy)
    if (key := options.key) is None:
        return
    if not key.parent.is_dir():
        fault = f"{key.parent}, where the key is to lie, is no directory."
        refuse(Exit.FAILED, fault, f"Make it: mkdir -p {key.parent}")
    if key.exists() and not Place(options.data / "tenants" / DEFAULT_TENANT).log.exists():
        refuse(
            Exit.FAILED,
            f"{key} exists, and {options.data} holds no log yet: "
            "a new log would put its own key in the place of that one.",
            "Name a file that is not there yet, or the --data directory that this key belongs to.",
        )


def holder(data: Path) -> str | None:
    """The process that holds ``data``, in words; None if nobody does. Nothing is changed, and nobody kept out."""
    try:
        handle = os.open(Place(data / "tenants" / DEFAULT_TENANT).lock_path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        found = _NOTE.search(os.pread(handle, 200, 0).decode("utf-8", "replace"))
        return found[0] if found else "another process"
    finally:
        os.close(handle)
    return None
