"""The options of the verbs, as records: what each verb takes stands here, once, with its help."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar, get_type_hints

import typer

Options = TypeVar("Options")
LOCAL: Final = Path("data")


@dataclass(frozen=True, kw_only=True)
class Serve:
    """``organism serve``."""

    config: Annotated[Path, typer.Option(help="The organism's configuration.")] = Path("organism.yaml")
    data: Annotated[Path, typer.Option(help="The data directory.")] = LOCAL
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1"
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8080
    tls_cert: Annotated[Path | None, typer.Option(help="A certificate (PEM), with --tls-key.")] = None
    tls_key: Annotated[Path | None, typer.Option(help="Its key (PEM).")] = None
    behind_proxy: Annotated[bool, typer.Option("--behind-proxy", help="A proxy before this server does TLS.")] = False
    allowed_host: Annotated[list[str] | None, typer.Option(help="A further name to answer to; may be repeated.")] = None


@dataclass(frozen=True, kw_only=True)
class Remote:
    """What every verb takes that asks a server."""

    url: Annotated[
        str | None, typer.Option(envvar="ORGANISM_URL", help="The server's address; by default the local one's.")
    ] = None
    token: Annotated[
        str | None, typer.Option(envvar="ORGANISM_TOKEN", help="Its token; by default the data directory's.")
    ] = None
    data: Annotated[Path, typer.Option(help="The data directory of the local server.")] = LOCAL
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False


@dataclass(frozen=True, kw_only=True)
class Inject(Remote):
    """``organism inject``."""

    to: Annotated[str, typer.Argument(metavar="AGENT", help="Whom to send to.")]
    payload: Annotated[str, typer.Argument(help="JSON or XML; @FILE reads a file, - reads standard input.")] = "-"
    thread: Annotated[str | None, typer.Option(help="Send into this thread.")] = None
    wait: Annotated[
        float | None, typer.Option(min=0, max=60, help="Wait so many seconds for the thread's end, show the replies.")
    ] = None
    key: Annotated[str | None, typer.Option(help="An idempotency key: the same one sends only once.")] = None


@dataclass(frozen=True, kw_only=True)
class Threads(Remote):
    """``organism threads``."""

    status: Annotated[str | None, typer.Option(help="Only active, completed, error or killed ones.")] = None
    agent: Annotated[str | None, typer.Option(help="Only those in which this agent takes part.")] = None
    limit: Annotated[int, typer.Option(min=1, max=500, help="At most so many.")] = 20


@dataclass(frozen=True, kw_only=True)
class Tail(Remote):
    """``organism tail``."""

    since: Annotated[int | None, typer.Option(min=0, help="Begin after this position; 0 is the beginning.")] = None
    thread: Annotated[list[str] | None, typer.Option(help="Only this thread; may be repeated.")] = None
    agent: Annotated[list[str] | None, typer.Option(help="Only this agent; may be repeated.")] = None
    event: Annotated[list[str] | None, typer.Option(help="Only this event; may be repeated.")] = None


@dataclass(frozen=True, kw_only=True)
class Kill(Remote):
    """``organism kill``."""

    thread: Annotated[str, typer.Argument(metavar="THREAD", help="The thread's id.")]


@dataclass(frozen=True, kw_only=True)
class Control(Remote):
    """``organism pause`` and ``organism resume``."""

    agent: Annotated[str | None, typer.Argument(metavar="AGENT", help="The agent.")] = None
    thread: Annotated[str | None, typer.Option(help="A thread instead of an agent.")] = None
    everything: Annotated[bool, typer.Option("--all", help="The whole organism.")] = False


@dataclass(frozen=True, kw_only=True)
class Verify:
    """``organism log verify``."""

    data: Annotated[Path, typer.Option(help="The data directory.")] = LOCAL
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False


def spread(verb: Callable[[Options], None], kind: Any) -> Callable[..., None]:
    """The verb as a function that takes each field of ``kind`` by itself, as typer reads options off a signature."""

    def called(**given: Any) -> None:
        verb(kind(**given))

    hints = get_type_hints(kind, include_extras=True)
    own = inspect.get_annotations(kind)
    ordered = sorted(fields(kind), key=lambda field: field.name not in own)
    parameters = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in ordered
    ]
    described: Any = called
    described.__signature__ = inspect.Signature(parameters)
    described.__doc__ = verb.__doc__
    described.__name__ = verb.__name__
    return called
