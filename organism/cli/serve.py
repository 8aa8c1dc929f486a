"""``organism serve``: start, say where it is and how to try it, serve until stopped."""

from __future__ import annotations

import errno
import logging
import os
import socket
import sys
from ipaddress import ip_address
from pathlib import Path
from shlex import quote
from typing import Final

import orjson
import structlog
import typer

from organism import bootstrap
from organism.bootstrap import Organism
from organism.cli.options import Serve
from organism.cli.show import fail, out
from organism.errors import OrganismError
from organism.server.serve import NOTICE_FILE, Address, Serving, announced, listen, run, secrets_of

FAILED: Final = 1
PRIVATE_DIRECTORY: Final = 0o700
EXAMPLE: Final = '{"to":"greeter","payload":{"name":"Dan"}}'


def run_server(options: Serve) -> None:
    """Serve until a signal or ``organism stop``; exit 1 with the reason if that cannot begin."""
    hosts = tuple(options.allowed_host or ())
    address = Address(options.host, options.port, options.tls_cert, options.tls_key, hosts)
    _refuse_the_open(address, behind_proxy=options.behind_proxy)
    _log_json()
    try:
        run(_serve(options, address))
    except OrganismError as error:
        fail(error.message, error.remediation, [f"{fault.pointer}: {fault.message}" for fault in error.details])
        raise typer.Exit(FAILED) from None


def _refuse_the_open(address: Address, *, behind_proxy: bool) -> None:
    """Beyond this machine nothing is said in the clear."""
    if bool(address.tls_cert) != bool(address.tls_key):
        raise typer.BadParameter("--tls-cert and --tls-key belong together.")
    if _is_loopback(address.host) or address.tls_cert or behind_proxy:
        return
    fail(
        f"{address.host} can be reached from other machines, and there is no TLS.",
        "Give --tls-cert and --tls-key, or --behind-proxy if a proxy in front of it does TLS.",
    )
    raise typer.Exit(FAILED)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _log_json() -> None:
    """The server's own log: one JSON object a line, on standard error (S31)."""
    said: list[structlog.typing.Processor] = [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*said, structlog.processors.JSONRenderer()],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    others = logging.StreamHandler()
    others.setFormatter(
        structlog.stdlib.ProcessorFormatter(structlog.processors.JSONRenderer(), foreign_pre_chain=said)
    )
    logging.basicConfig(handlers=[others], level=logging.WARNING)


async def _serve(options: Serve, address: Address) -> None:
    data = options.data
    with _listen(address, data) as listening:
        data.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
        organism = await bootstrap.start(options.config, data)
        secrets = secrets_of(data, os.environ)
        serving = Serving(organism, address, listening, secrets)
        with announced(data, serving.url):
            await serving.run(lambda: _greet(organism, data, serving.url, secrets.tokens.page()))


def _listen(address: Address, data: Path) -> socket.socket:
    try:
        return listen(address)
    except OSError as error:
        where = f"{address.host}:{address.port}"
        if error.errno == errno.EADDRINUSE:
            fail(f"{where} is taken{_by_whom(data)}.", "Stop what listens there, or choose another --port (0: any).")
        else:
            fail(f"{where} cannot be listened on: {error.strerror or error}.", "Choose another --host or --port.")
        raise typer.Exit(FAILED) from None


def _by_whom(data: Path) -> str:
    """If it is the server of this very data directory, say so: that is the more useful half of the truth."""
    try:
        notice = orjson.loads((data / NOTICE_FILE).read_bytes())
        os.kill(notice["pid"], 0)
    except (OSError, ValueError, KeyError):
        return ""
    return f": process {notice['pid']} serves {data} at {notice['url']}"


def _greet(organism: Organism, data: Path, url: str, page_token: str) -> None:
    """The address; on a terminal the page's ready link; and a line that sends the first message."""
    console = out()
    console.print(f"Organism serves at {url}")
    if organism.status == "paused":
        console.print(
            "It is paused: an operator paused it, or its last lives all ended soon without handling a message.\n"
            "Look at `organism threads`, kill the thread that does it, then `organism resume --all`."
        )
    if sys.stdout.isatty():
        console.print(f"Open {url}/#token={page_token}")
    token = "$ORGANISM_TOKEN" if os.environ.get("ORGANISM_TOKEN") else f"$(cat {quote(str(data / 'token'))})"
    console.print(
        f'Try   curl {url}/api/v1/inject -H "Authorization: Bearer {token}" '
        f"-H 'Content-Type: application/json' -d '{EXAMPLE}'"
    )
    sys.stdout.flush()
