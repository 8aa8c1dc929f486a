"""Start the server, print its address and how to try it, and serve until stopped."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import socket
import ssl
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Any, Final

from organism import bootstrap
from organism.bootstrap import Organism, Parts, tracing_of
from organism.cli.exits import Exit
from organism.cli.options import Serve
from organism.cli.output import compact, out, refuse
from organism.cli.streams import make_output_optional
from organism.config.json_schema import JsonSchema
from organism.errors import LogUnavailable, OrganismError
from organism.model.redact import Redactor
from organism.server.http.server_log import configure_logs
from organism.server.runner import (
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
    with _listen(settings) as listening, ExitStack() as announcing:
        leave_to_this_process(listening)
        hangup = hangups()
        with _disk_refusals(data):
            _make_directory(data)
            parts = Parts(key_path=options.key, redactor=redactor, tracing=partial(tracing_of, os.environ))
            organism = await bootstrap.start(options.config, data, parts)
            secrets = secrets_of(data, os.environ, organism)
            serving = Serving(organism, settings, listening, secrets, exit_within)
            announcing.enter_context(announced(data, serving.url, certificate))
        tune_interpreter()
        reloading = asyncio.create_task(organism.reload_at(hangup))

        def ready() -> None:
            _greet(organism, data, serving.url, secrets.tokens.page())
            organism.prepare_models()

        await serving.run(ready)
        reloading.cancel()


@contextmanager
def _disk_refusals(data: Path) -> Iterator[None]:
    """Ends the command if the disk does not take what a start writes."""
    remedy = (
        f"Make room on the disk of {data} or correct its permissions, then start again; or choose another --data DIR."
    )
    try:
        yield
    except LogUnavailable as error:
        refuse(Exit.FAILED, error.message, remedy)
    except OSError as error:
        refuse(Exit.FAILED, f"{error.filename or data} cannot be written: {error.strerror or error}.", remedy)


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
    console.print(f"Try   {_first_step(organism, data, url)}")
    sys.stdout.flush()


def _first_step(organism: Organism, data: Path, url: str) -> str:
    """A line for a shell that sends the first message, or what comes before that."""
    example = _example(organism)
    if example is None:
        return f"a first listener in {organism.config_path}, then `organism reload`"
    token = "$ORGANISM_TOKEN" if os.environ.get("ORGANISM_TOKEN") else f"$(cat {quote(str(data / 'token'))})"
    return (
        f'curl {url}/api/v1/inject -H "Authorization: Bearer {token}" '
        f"-H 'Content-Type: application/json' -d {quote(compact(example))}"
    )


def _example(organism: Organism) -> Mapping[str, Any] | None:
    """A first message that fits its receiver's schema: the tour's, else an example for the first listener, if any.

    It is only shown, so no code of a payload class runs for it.
    """
    schemas = {each.name: organism.codec.schema(each.payload_class.__name__) for each in organism.settings.listeners}
    with suppress(KeyError, ValueError):  # there is no greeter, or its schema's patterns are too large to compile
        if JsonSchema(schemas[TOUR["to"]].json_schema).is_valid(TOUR["payload"]):
            return TOUR
    return next(({"to": name, "payload": schema.example()} for name, schema in schemas.items()), None)
