"""Start the server, print its address and how to try it, and serve until stopped."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import socket
import ssl
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any, Final

import orjson

from organism import bootstrap
from organism.bootstrap import Organism, Parts, tracing_of
from organism.cli.exits import Exit
from organism.cli.options import Serve
from organism.cli.show import compact, out, refuse
from organism.cli.streams import make_output_optional
from organism.errors import InvalidRequest, OrganismError
from organism.model.redact import Redactor
from organism.server.http.logs import configure_logs
from organism.server.serve import (
    ServerSettings,
    Serving,
    announced,
    exit_within,
    hangups,
    leave_to_this_process,
    listen,
    run,
    secrets_of,
    tune_interpreter,
)

PRIVATE_DIRECTORY: Final = 0o700
TOUR: Final[Mapping[str, Any]] = {"to": "greeter", "payload": {"name": "Dan"}}
CERTIFICATE: Final = re.compile("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
"""The first certificate of a chain is the server's own. Nothing else of the file is copied: it may hold the key too."""


def serve_with(options: Serve) -> None:
    """Serve until a signal or ``organism stop``; exit 1 with the reason if that cannot begin."""
    hosts, origins = tuple(options.allowed_host or ()), tuple(options.allowed_origin or ())
    settings = ServerSettings(options.host, options.port, options.tls_cert, options.tls_key, hosts, origins)
    certificate = _certificate(settings)
    redactor = Redactor()
    make_output_optional()
    configure_logs(sys.stderr, redactor, options.log_level)
    try:
        run(_serve(options, settings, certificate, redactor))
    except OrganismError as error:
        faults = [f"{fault.pointer}: {fault.message}" for fault in error.details]
        refuse(Exit.FAILED, error.message, error.remediation, faults)


def _certificate(settings: ServerSettings) -> str | None:
    """The server's own certificate (PEM). Ends the command if TLS cannot be served with it."""
    if settings.tls_cert is None:
        return None
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.tls_cert, settings.tls_key, password="")
        found = CERTIFICATE.search(settings.tls_cert.read_text("utf-8"))
    except (OSError, ValueError) as error:
        refuse(
            Exit.FAILED,
            f"{settings.tls_cert} and {settings.tls_key} cannot be served: {error}.",
            "Give a certificate and its own key, both PEM, the key without a passphrase.",
        )
    return found and found[0]


async def _serve(options: Serve, settings: ServerSettings, certificate: str | None, redactor: Redactor) -> None:
    data = options.data
    with _listen(settings) as listening:
        leave_to_this_process(listening)
        hangup = hangups()
        _make_directory(data)
        parts = Parts(key_path=options.key, redactor=redactor, tracing=partial(tracing_of, os.environ))
        organism = await bootstrap.start(options.config, data, parts)
        tune_interpreter()
        secrets = secrets_of(data, os.environ, organism)
        serving = Serving(organism, settings, listening, secrets, exit_within)
        reloading = asyncio.create_task(organism.reload_at(hangup))
        with announced(data, serving.url, certificate):
            await serving.run(lambda: _greet(organism, data, serving.url, secrets.tokens.page()))
        reloading.cancel()


def _make_directory(data: Path) -> None:
    """Make the data directory, readable by its owner only."""
    try:
        data.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
    except OSError as error:
        refuse(Exit.FAILED, f"{data} cannot be made a directory: {error.strerror}.", "Choose another one: --data DIR.")
    if not os.access(data, os.W_OK | os.X_OK):
        refuse(Exit.FAILED, f"{data} cannot be written by this user.", "Choose another one: --data DIR.")


def _listen(settings: ServerSettings) -> socket.socket:
    try:
        return listen(settings)
    except OSError as error:
        where = f"{settings.host}:{settings.port}"
        if error.errno == errno.EADDRINUSE:
            refuse(Exit.FAILED, f"{where} is taken.", "Stop what listens there, or choose another --port (0: any).")
        reason = error.strerror or str(error)
        refuse(Exit.FAILED, f"{where} cannot be listened on: {reason}.", "Choose another --host or --port.")


def _greet(organism: Organism, data: Path, url: str, page_token: str) -> None:
    """The address; on a terminal the page's ready link; and a line that sends the first message."""
    console = out()
    console.print(f"Organism serves at {url}")
    if awaited := organism.awaited_servers:
        console.print(f"Awaited: {', '.join(awaited)} (MCP). Their tools are there as soon as they answer.")
    if organism.status == "paused":
        console.print(
            "It is paused: an operator paused it, or it crashed several times without handling a message.\n"
            "Look at `organism threads`, kill the thread that causes it, then `organism resume --all`."
        )
    if sys.stdout.isatty():
        console.print(f"Open {url}/#token={page_token}")
    token = "$ORGANISM_TOKEN" if os.environ.get("ORGANISM_TOKEN") else f"$(cat {quote(str(data / 'token'))})"
    console.print(
        f'Try   curl {url}/api/v1/inject -H "Authorization: Bearer {token}" '
        f"-H 'Content-Type: application/json' -d {quote(_example(organism))}"
    )
    sys.stdout.flush()


def _example(organism: Organism) -> str:
    """A first message that this organism accepts: the tour's, else an example for the first listener."""
    listeners = {listener.name: listener.payload_class.__name__ for listener in organism.settings.listeners}
    codec = organism.codec
    with suppress(InvalidRequest, KeyError):
        codec.from_json(listeners[TOUR["to"]], TOUR["payload"])
        return compact(TOUR)
    to, name = next(iter(listeners.items()))
    payload = orjson.loads(codec.json(codec.from_xml(codec.schema(name).example_xml)))
    return compact({"to": to, "payload": payload})
