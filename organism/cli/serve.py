"""``organism serve``: what can be refused is refused before anything heavy is imported, then ``serving`` runs."""

from __future__ import annotations

import fcntl
import os
import re
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import typer

from organism.cli.exits import Exit
from organism.cli.options import Serve
from organism.cli.show import refuse
from organism.log.place import Place
from organism.model.ids import DEFAULT_TENANT

_NOTE: Final = re.compile(r"process \d+ since [^\n]+")


def serve(options: Serve) -> None:
    """Serve until a signal or ``organism stop``; exit 1 with the reason if that cannot begin."""
    refuse_if_held(options.data)
    _refuse_the_open(options)
    if options.key is not None:
        _refuse_key(options.key, options.data)

    from organism.cli.serving import run_server

    run_server(options)


def _refuse_the_open(options: Serve) -> None:
    """Beyond this machine nothing is said in the clear."""
    if bool(options.tls_cert) != bool(options.tls_key):
        raise typer.BadParameter("--tls-cert and --tls-key belong together.")
    if is_loopback(options.host) or options.tls_cert or options.behind_proxy:
        return
    refuse(
        Exit.FAILED,
        f"{options.host} can be reached from other machines, and there is no TLS.",
        "Give --tls-cert and --tls-key, or --behind-proxy if a proxy in front of it does TLS.",
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _refuse_key(key: Path, data: Path) -> None:
    """A new log makes a new key: it must have room, and must not take that of another log."""
    log = Place(data / "tenants" / DEFAULT_TENANT).log
    if not key.parent.is_dir():
        refuse(
            Exit.FAILED, f"{key.parent}, where the key is to lie, is no directory.", f"Make it: mkdir -p {key.parent}"
        )
    if key.exists() and not log.exists():
        refuse(
            Exit.FAILED,
            f"{key} exists, and {data} holds no log yet: a new log would put its own key in the place of that one.",
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
        return _in_words(os.pread(handle, 200, 0).decode("utf-8", "replace"))
    finally:
        os.close(handle)
    return None


def _in_words(said: str) -> str:
    found = _NOTE.search(said)
    return found[0] if found else "another process"


def refuse_if_held(data: Path) -> None:
    """End the command if a server runs on ``data``. The server's own hold, later, is the one that counts."""
    who = holder(data)
    if who is not None:
        refuse(
            Exit.FAILED,
            f"{data} is held by {who}.",
            "Stop it with `organism stop`, or serve another directory: --data DIR.",
        )
