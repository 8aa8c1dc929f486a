"""The options of the verbs, as records: what each verb takes stands here, once, with its help."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

import typer

LOCAL: Final = Path("data")
CONFIG: Final = Path("organism.yaml")

Key = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        envvar="ORGANISM_KEY_FILE",
        help="Where the audit chain's key lies, if not in the data directory.",
    ),
]
Config = Annotated[Path, typer.Option(metavar="FILE", help="The organism's configuration.")]
Data = Annotated[Path, typer.Option(metavar="DIR", help="The data directory.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Limit = Annotated[int, typer.Option(metavar="N", min=1, help="At most so many.")]
LetterId = Annotated[str, typer.Argument(metavar="MESSAGE", help="The dead letter's id.")]
TokenName = Annotated[str, typer.Argument(metavar="NAME", help="The token's name.")]
IdempotencyKey = Annotated[
    str | None, typer.Option(metavar="KEY", help="An idempotency key: the same one acts only once.")
]
Since = Annotated[str | None, typer.Option(metavar="TIME", help="Only those since then (2026-01-31T12:00:00Z).")]
OfThread = Annotated[str | None, typer.Option(metavar="THREAD", help="Only those of this thread.")]


@dataclass(frozen=True, kw_only=True)
class Serve:
    config: Config = CONFIG
    data: Data = LOCAL
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1"
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="The port; 0 takes a free one.")] = 8080
    tls_cert: Annotated[Path | None, typer.Option(metavar="FILE", help="A certificate (PEM), with --tls-key.")] = None
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Its key (PEM).")] = None
    behind_proxy: Annotated[bool, typer.Option("--behind-proxy", help="A proxy before this server does TLS.")] = False
    allowed_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A further name to answer to; may be repeated.")
    ] = None
    allowed_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="A server whose pages may read the answers; may be repeated."),
    ] = None
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        typer.Option(help="From where on things are logged; `info` has a line for each request."),
    ] = "warning"
    key: Key = None


@dataclass(frozen=True, kw_only=True)
class Init:
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write it; made if it is not there.")]
    json: Json = False


@dataclass(frozen=True, kw_only=True)
class Offline:
    """What the verbs take that read a data directory themselves, with or without a server."""

    data: Data = LOCAL
    key: Key = None
    tenant: Annotated[str | None, typer.Option(metavar="ID", help="Only that tenant's log; by default all.")] = None
    config: Config = CONFIG
    json: Json = False


@dataclass(frozen=True, kw_only=True)
class Doctor(Offline):
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to be served on.")] = "127.0.0.1"
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="The port to be served on.")] = 8080


@dataclass(frozen=True, kw_only=True)
class Bench:
    seconds: Annotated[float, typer.Option(metavar="S", min=0.1, max=3600, help="How long each load is measured.")] = 3
    place: Annotated[
        Path | None, typer.Option("--dir", metavar="DIR", help="The disk to measure; by default the one of TMPDIR.")
    ] = None
    json: Json = False


@dataclass(frozen=True, kw_only=True)
class Remote:
    """What every verb takes that asks a server."""

    url: Annotated[
        str | None,
        typer.Option(metavar="URL", envvar="ORGANISM_URL", help="The server's address; by default the local one's."),
    ] = None
    token: Annotated[
        str | None,
        typer.Option(metavar="TOKEN", envvar="ORGANISM_TOKEN", help="Its token; by default the local one's."),
    ] = None
    data: Annotated[Path, typer.Option(metavar="DIR", help="The data directory of the local server.")] = LOCAL
    json: Json = False


@dataclass(frozen=True, kw_only=True)
class RunTool(Remote):
    name: Annotated[str, typer.Argument(metavar="TOOL", help="Which one.")]
    arguments: Annotated[
        str, typer.Argument(metavar="ARGUMENTS", help="A JSON object; @FILE reads a file, - reads standard input.")
    ] = "{}"
    key: IdempotencyKey = None


@dataclass(frozen=True, kw_only=True)
class Inject(Remote):
    to: Annotated[str, typer.Argument(metavar="AGENT", help="Whom to send to.")]
    payload: Annotated[
        str, typer.Argument(metavar="PAYLOAD", help="JSON or XML; @FILE reads a file, - reads standard input.")
    ] = "-"
    thread: Annotated[str | None, typer.Option(metavar="THREAD", help="Send into this thread.")] = None
    wait: Annotated[
        float | None,
        typer.Option(metavar="S", min=0, max=60, help="Wait so many seconds for the thread's end, show the replies."),
    ] = None
    key: IdempotencyKey = None


@dataclass(frozen=True, kw_only=True)
class Chat(Remote):
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="Whom to ask.")]
    message: Annotated[
        str | None,
        typer.Argument(
            metavar="MESSAGE", help="What to say; @FILE reads a file, - standard input. Without it: a talk."
        ),
    ] = None
    session: Annotated[str | None, typer.Option(metavar="SESSION", help="Go on with this session.")] = None
    key: IdempotencyKey = None


@dataclass(frozen=True, kw_only=True)
class Graph(Remote):
    mermaid: Annotated[bool, typer.Option("--mermaid", help="As a diagram that viewers of Markdown draw.")] = False


@dataclass(frozen=True, kw_only=True)
class Agents(Remote):
    agent: Annotated[str | None, typer.Argument(metavar="AGENT", help="Only this one, in full.")] = None
    config: Annotated[bool, typer.Option("--config", help="Its section of organism.yaml.")] = False
    schema: Annotated[bool, typer.Option("--schema", help="What it takes: the XSD; with --json the JSON Schema.")] = (
        False
    )


@dataclass(frozen=True, kw_only=True)
class Threads(Remote):
    thread: Annotated[str | None, typer.Argument(metavar="THREAD", help="Only this one, with its messages.")] = None
    status: Annotated[
        str | None, typer.Option(metavar="STATUS", help="Only active, completed, error or killed ones.")
    ] = None
    agent: Annotated[str | None, typer.Option(metavar="AGENT", help="Only those in which it takes part.")] = None
    since: Since = None
    limit: Limit = 20


@dataclass(frozen=True, kw_only=True)
class Usage(Remote):
    thread: OfThread = None
    agent: Annotated[str | None, typer.Option(metavar="AGENT", help="Only this agent's.")] = None
    at: Annotated[
        str | None, typer.Option(metavar="POSITION", help="As it stood at this position of the log, or at this time.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class Messages(Remote):
    message: Annotated[str | None, typer.Argument(metavar="MESSAGE", help="Only this one, in full.")] = None
    thread: OfThread = None
    agent: Annotated[str | None, typer.Option(metavar="AGENT", help="Only those from or to it.")] = None
    since: Since = None
    text: Annotated[str | None, typer.Option(metavar="TEXT", help="Only those whose payload holds it.")] = None
    why: Annotated[bool, typer.Option("--why", help="The one named, and what led to it, up to the injection.")] = False
    xml: Annotated[bool, typer.Option("--xml", help="With their envelopes, as they were recorded.")] = False
    limit: Limit = 20


@dataclass(frozen=True, kw_only=True)
class Tail(Remote):
    since: Annotated[
        int | None, typer.Option(metavar="POSITION", min=0, help="Begin after this position; 0 is the beginning.")
    ] = None
    thread: Annotated[list[str] | None, typer.Option(metavar="THREAD", help="Only this thread; may be repeated.")] = (
        None
    )
    agent: Annotated[list[str] | None, typer.Option(metavar="AGENT", help="Only this agent; may be repeated.")] = None
    event: Annotated[list[str] | None, typer.Option(metavar="EVENT", help="Only this event; may be repeated.")] = None


@dataclass(frozen=True, kw_only=True)
class Kill(Remote):
    thread: Annotated[str, typer.Argument(metavar="THREAD", help="The thread's id.")]


@dataclass(frozen=True, kw_only=True)
class Control(Remote):
    agent: Annotated[str | None, typer.Argument(metavar="AGENT", help="The agent.")] = None
    thread: Annotated[str | None, typer.Option(metavar="THREAD", help="A thread instead of an agent.")] = None
    everything: Annotated[bool, typer.Option("--all", help="The whole organism.")] = False


@dataclass(frozen=True, kw_only=True)
class OpenItems(Remote):
    thread: OfThread = None
    limit: Limit = 50


@dataclass(frozen=True, kw_only=True)
class Replay(Remote):
    message: LetterId
    payload: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="Another payload in its place; @FILE reads a file, - standard input."),
    ] = None
    key: IdempotencyKey = None


@dataclass(frozen=True, kw_only=True)
class Discard(Remote):
    message: LetterId


@dataclass(frozen=True, kw_only=True)
class Approvals(Remote):
    status: Annotated[
        str, typer.Option(metavar="STATUS", help="pending, approved, rejected, expired, cancelled, or all.")
    ] = "pending"
    thread: OfThread = None
    limit: Limit = 50


@dataclass(frozen=True, kw_only=True)
class Approval(Remote):
    approval: Annotated[str, typer.Argument(metavar="APPROVAL", help="The approval's id.")]
    decision: Annotated[str, typer.Argument(metavar="approve|reject", help="The word on it.")]
    edits: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="Approve this instead; @FILE reads a file, - standard input."),
    ] = None
    comment: Annotated[str, typer.Option(metavar="TEXT", help="Why.")] = ""


@dataclass(frozen=True, kw_only=True)
class Indeterminate(Remote):
    effect: Annotated[str, typer.Argument(metavar="EFFECT", help="The effect's id, MESSAGE:STEP.")]
    outcome: Annotated[str, typer.Argument(metavar="done|redo|fail", help="What became of it.")]
    result: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="What it gave, with done; @FILE reads a file, - standard input."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Events(Remote):
    after: Annotated[int, typer.Option(metavar="POSITION", min=0, help="Only those after it.")] = 0
    until: Annotated[int | None, typer.Option(metavar="POSITION", min=0, help="Only those up to it.")] = None
    thread: OfThread = None
    type: Annotated[str | None, typer.Option(metavar="TYPE", help="Only those of this type.")] = None
    content: Annotated[bool, typer.Option("--content", help="With the payloads.")] = False
    limit: Limit = 50


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """``organism token list``: the tokens stand beside the configuration, no server is asked."""

    config: Config = CONFIG
    json: Json = False


@dataclass(frozen=True, kw_only=True)
class RevokeToken(Tokens):
    name: TokenName
    tenant: Annotated[str, typer.Option(metavar="TENANT", help="Whose token it is.")] = "default"


@dataclass(frozen=True, kw_only=True)
class CreateToken(Tokens):
    name: TokenName
    tenant: Annotated[str, typer.Option(metavar="TENANT", help="Whose tenant it opens.")] = "default"
    scope: Annotated[
        list[str] | None,
        typer.Option(metavar="SCOPE", help="What it may do (read, inject, inject:agent:NAME, …); may be repeated."),
    ] = None
    model: Annotated[
        list[str] | None, typer.Option(metavar="MODEL", help="A model it may use (by default all); may be repeated.")
    ] = None
    tenant_admin: Annotated[bool, typer.Option("--tenant-admin", help="It administers its tenant.")] = False
    expires: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="When it ends: 90d, 12h or 2027-01-31T12:00:00Z; by default never."),
    ] = None
    rate: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Commands a second on the WebSocket; by default 20, or any with admin."),
    ] = 0


@dataclass(frozen=True, kw_only=True)
class Errors(Remote):
    code: Annotated[str | None, typer.Argument(metavar="CODE", help="Only this one, in full.")] = None
