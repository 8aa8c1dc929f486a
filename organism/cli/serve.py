"""``organism serve``: what can be refused is refused before anything heavy is imported, then ``serving`` runs."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

import typer

from organism.cli.exits import Exit
from organism.cli.held import refuse_if_held
from organism.cli.options import Serve
from organism.cli.show import refuse
from organism.log.place import Place
from organism.model.ids import DEFAULT_TENANT


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
