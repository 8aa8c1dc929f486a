"""``organism serve``: refuse what cannot be served, before all of the server is imported."""

from __future__ import annotations

from pathlib import Path

import typer

from organism.cli.exits import Exit
from organism.cli.options import Serve
from organism.cli.output import refuse
from organism.log.directory import LogDirectory
from organism.model.addresses import is_loopback
from organism.model.ids import DEFAULT_TENANT, TENANTS


def serve(options: Serve) -> None:
    """Serve until a signal or ``organism stop``; exit 1 with the reason if that cannot begin."""
    if (process := holder(options.data)) is not None:  # a quick answer; the server takes the lock itself later
        remedy = "Stop it with `organism stop`, or serve another directory: --data DIR."
        refuse(Exit.FAILED, f"{options.data} is held by {process}.", remedy)
    if bool(options.tls_cert) != bool(options.tls_key):
        raise typer.BadParameter("--tls-cert and --tls-key belong together.")
    if not (is_loopback(options.host) or options.tls_cert or options.behind_proxy):
        fault = f"{options.host} can be reached from other machines, and there is no TLS."
        remedy = "Give --tls-cert and --tls-key, or --behind-proxy if a proxy in front of it does TLS."
        refuse(Exit.FAILED, fault, remedy)
    if options.key is not None and not (folder := options.key.parent).is_dir():
        refuse(Exit.FAILED, f"{folder}, the folder of the key, does not exist.", f"Make it: mkdir -p {folder}")
    from organism.cli.start_server import serve_with

    serve_with(options)


def holder(data: Path) -> str | None:
    """The process that holds the data directory, in words; None if there is none. Changes nothing."""
    return LogDirectory(data / TENANTS / DEFAULT_TENANT).holder()
