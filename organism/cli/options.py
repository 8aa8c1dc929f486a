"""The options of each verb, as a class whose fields carry their help."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal, dataclass_transform

from typer import Argument, Option

LOCAL: Final = Path("data")
CONFIG: Final = Path("organism.yaml")


def option(metavar: str | None, text: str, default: Any = None, *names: str, **more: Any) -> Any:
    """A field that is an option; its name is the field's unless ``names`` say otherwise."""
    return field(default=default, metadata={"taken": Option(*names, metavar=metavar, help=text, **more)})


def flag(name: str, text: str) -> Any:
    """A field that is true if the option is there."""
    return option(None, text, False, name)


def argument(metavar: str, text: str, default: Any = MISSING) -> Any:
    """A field that is an argument."""
    return field(default=default, metadata={"taken": Argument(metavar=metavar, help=text)})


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Record:
    """The options of a verb: each subclass is a frozen dataclass with keyword arguments."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)


_KEY_TEXT: Final = "The audit chain's key file, if outside the data directory."
Key = Annotated[Path | None, Option(metavar="FILE", envvar="ORGANISM_KEY_FILE", help=_KEY_TEXT)]
Config = Annotated[Path, Option(metavar="FILE", help="The organism's configuration.")]
Data = Annotated[Path, Option(metavar="DIR", help="The data directory.")]
Json = Annotated[bool, Option("--json", help="Print JSON for programs.")]
Limit = Annotated[int, Option(metavar="N", min=1, help="The most to list.")]
LetterId = Annotated[str | None, Argument(metavar="MESSAGE", help="The dead letter's id.")]
LettersOf = Annotated[str | None, Option(metavar="THREAD", help="All of this thread instead of one.")]
LettersLike = Annotated[str | None, Option("--group", metavar="GROUP", help="All that are alike instead of one.")]
TokenName = Annotated[str, Argument(metavar="NAME", help="The token's name.")]
IdempotencyKey = Annotated[str | None, Option(metavar="KEY", help="An idempotency key: the same one acts only once.")]
IndexName = Annotated[str, Argument(metavar="INDEX", help="The index's id.")]
Since = Annotated[str | None, Option(metavar="TIME", help="Only those since then (2026-01-31T12:00:00Z).")]
OfThread = Annotated[str | None, Option(metavar="THREAD", help="Only those of this thread.")]


class Serve(Record):
    config: Config = CONFIG
    data: Data = LOCAL
    host: str = option("ADDRESS", "The address to listen on.", "127.0.0.1")
    port: int = option("N", "The port; 0 takes a free one.", 8080, min=0, max=65535)
    tls_cert: Path | None = option("FILE", "A certificate (PEM), with --tls-key.")
    tls_key: Path | None = option("FILE", "Its key (PEM).")
    behind_proxy: bool = flag("--behind-proxy", "A proxy in front of this server does TLS.")
    allowed_host: list[str] | None = option("NAME", "Another name to answer to; repeatable.")
    allowed_origin: list[str] | None = option(
        "URL", "An origin whose pages may read answers and open the socket; repeatable."
    )
    log_level: Literal["debug", "info", "warning", "error"] = option(
        None, "The least severe level that is logged; `info` has a line per request.", "warning"
    )
    key: Key = None


class Init(Record):
    directory: Path = argument("DIR", "Where to write it; made if missing.")
    json: Json = False


class Offline(Record):
    """The options of verbs that read a data directory themselves, with or without a server."""

    data: Data = LOCAL
    key: Key = None
    config: Config = CONFIG
    json: Json = False


class OfTenant(Offline):
    tenant: str | None = option("ID", "Only this tenant's log; by default all.")


class Backup(Offline):
    file: Path = argument("FILE", "The file to write; there must be none of that name.")


class Restore(Record):
    file: Path = argument("FILE", "What `organism log backup` wrote.")
    until: int | None = option("POSITION", "End the log with the unit that holds this position.", min=1)
    tenant: str = option("ID", "With --until: whose log.", "default")
    force: bool = flag("--force", "Replace the logs that are there; they are kept beside the new ones.")
    data: Data = LOCAL
    key: Key = None
    json: Json = False


class Doctor(OfTenant):
    host: str = option("ADDRESS", "The address to serve on.", "127.0.0.1")
    port: int = option("N", "The port to serve on.", 8080, min=0, max=65535)


class Bench(Record):
    seconds: float = option("S", "Seconds to measure each load.", 3, min=0.1, max=3600)
    place: Path | None = option("DIR", "A directory on the disk to measure; by default TMPDIR.", None, "--dir")
    json: Json = False


class Remote(Record):
    """The options of every verb that asks a server."""

    url: str | None = option("URL", "The server's address; default: the local server's.", envvar="ORGANISM_URL")
    token: str | None = option("TOKEN", "Its token; default: the local server's.", envvar="ORGANISM_TOKEN")
    data: Path = option("DIR", "The data directory of the local server.", LOCAL)
    json: Json = False


class RunTool(Remote):
    name: str = argument("TOOL", "Which one.")
    arguments: str = argument("ARGUMENTS", "A JSON object; @FILE reads a file, - reads standard input.", "{}")
    key: IdempotencyKey = None


class AcceptTool(Remote):
    name: str | None = argument("TOOL", "Which one; without it, those that wait are shown as they are now.", None)
    digest: str | None = option("DIGEST", "Only if it is still what was shown under this digest.")
    key: IdempotencyKey = None


class Inject(Remote):
    to: str = argument("AGENT", "The receiver.")
    payload: str = argument("PAYLOAD", "JSON or XML; @FILE reads a file, - reads standard input.", "-")
    thread: str | None = option("THREAD", "Send into this thread.")
    wait: float | None = option(
        "S", "Wait this many seconds at most for the thread's end; show the replies.", min=0, max=60
    )
    key: IdempotencyKey = None


class Chat(Remote):
    agent: str = argument("AGENT", "The agent to ask.")
    message: str | None = argument(
        "MESSAGE", "What to say; @FILE reads a file, - standard input. Without it: a conversation.", None
    )
    session: str | None = option("SESSION", "Go on with this session.")
    user: str | None = option("NAME", "For whom; by default the user of this machine.", envvar="ORGANISM_USER")
    wait: bool = flag("--wait", "Wait if the agent, or what its turn needs, is paused.")
    key: IdempotencyKey = None


class Graph(Remote):
    mermaid: bool = flag("--mermaid", "As a Mermaid diagram.")


class Agents(Remote):
    agent: str | None = argument("AGENT", "Only this one, in full.", None)
    config: bool = flag("--config", "Its section of organism.yaml.")
    schema: bool = flag("--schema", "What it accepts: the XSD; with --json the JSON Schema.")


class Threads(Remote):
    thread: str | None = argument("THREAD", "Only this one, with its messages.", None)
    status: str | None = option("STATUS", "Only active, completed, error or killed ones.")
    agent: str | None = option("AGENT", "Only those it takes part in.")
    since: Since = None
    waiting: bool = flag("--waiting", "Only those that wait for a person.")
    limit: Limit = 20


class Usage(Remote):
    thread: OfThread = None
    agent: str | None = option("AGENT", "Only this agent's.")
    at: str | None = option("POSITION", "As of this position of the log, or of this time.")
    by: Literal["hour", "day"] | None = option(None, "By hour or by day, of at most 31 days.")
    since: str | None = option("TIME", "With --by: from then on; by default 31 days.", None, "--from")
    until: str | None = option("TIME", "With --by: up to then; by default now.", None, "--to")


class TenantConfig(Remote):
    changes: list[str] | None = argument("KEY=VALUE", "Write these; null takes a key back.", None)


class Messages(Remote):
    message: str | None = argument("MESSAGE", "Only this one, in full.", None)
    thread: OfThread = None
    agent: str | None = option("AGENT", "Only those from or to it.")
    since: Since = None
    text: str | None = option("TEXT", "Only those whose payload contains it.")
    why: bool = flag("--why", "The named message and what led to it, up to the injection.")
    xml: bool = flag("--xml", "With their envelopes as recorded.")
    limit: Limit = 20


class Find(Remote):
    text: str = argument("TEXT", "A part of a name or of what was said, or the beginning or end of an id.")
    limit: int = option("N", "The most to list of each kind.", 10, min=1, max=50)


class Tail(Remote):
    since: int | None = option("POSITION", "Begin after this position; 0 is the beginning.", min=0)
    thread: list[str] | None = option("THREAD", "Only this thread; repeatable.")
    agent: list[str] | None = option("AGENT", "Only this agent; repeatable.")
    event: list[str] | None = option("EVENT", "Only this event; repeatable. handling, step and rates come only so.")


class Kill(Remote):
    thread: str = argument("THREAD", "The thread's id.")


class Control(Remote):
    agent: str | None = argument("AGENT", "The agent.", None)
    thread: str | None = option("THREAD", "A thread instead of an agent.")
    everything: bool = flag("--all", "The whole organism.")


class OpenItems(Remote):
    thread: OfThread = None
    limit: Limit = 50


class DeadLetters(OpenItems):
    group: bool = flag("--group", "Those that are alike as one row: same agent, code and line.")


class Replay(Remote):
    message: LetterId = None
    thread: LettersOf = None
    group: LettersLike = None
    payload: str | None = option("JSON", "Another payload in its place; @FILE reads a file, - standard input.")
    key: IdempotencyKey = None


class Discard(Remote):
    message: LetterId = None
    thread: LettersOf = None
    group: LettersLike = None


class Approvals(Remote):
    status: str = option("STATUS", "pending, approved, rejected, expired, cancelled, or all.", "pending")
    thread: OfThread = None
    limit: Limit = 50


class Approval(Remote):
    approval: str = argument("APPROVAL", "The approval's id.")
    decision: str = argument("approve|reject", "The decision.")
    edits: str | None = option("JSON", "Approve this instead; @FILE reads a file, - standard input.")
    comment: str = option("TEXT", "Why.", "")


class ApprovalCheck(Remote):
    approval: str = argument("APPROVAL", "The approval's id.")
    edits: str | None = option("JSON", "What would be approved instead; @FILE reads a file, - standard input.")


class Indeterminate(Remote):
    effect: str = argument("EFFECT", "The effect's id, MESSAGE:STEP.")
    outcome: str = argument("done|redo|fail", "What happened.")
    result: str | None = option("JSON", "Its result, with done; @FILE reads a file, - standard input.")


class Documents(Remote):
    index: IndexName
    document: str | None = argument("ID", "Only this one, in full.", None)
    limit: Limit = 50


class RemoveDocuments(Remote):
    index: IndexName
    document: str | None = argument("ID", "Only this document; else the index with all of them.", None)


class ReembedIndex(Remote):
    index: IndexName
    model: str = argument("MODEL", "One of `embeddings` of organism.yaml, or builtin.")


class QueryIndex(Remote):
    index: IndexName
    text: str = argument("TEXT", "What is looked for, in words.")
    top_k: int = option("N", "How many at most.", 5, min=1, max=50)
    mode: Literal["vector", "keyword", "hybrid"] | None = option(None, "How to search; by default hybrid.")


class AddDocuments(Remote):
    index: IndexName
    path: list[Path] = argument("PATH...", "Files (text, Markdown, HTML, PDF), and folders of them.")


class Events(Remote):
    after: int = option("POSITION", "Only those after it.", 0, min=0)
    until: int | None = option("POSITION", "Only those up to it.", min=0)
    thread: OfThread = None
    type: str | None = option("TYPES", "Only those of these types, separated by commas.")
    newest: bool = flag("--newest", "The newest first.")
    content: bool = flag("--content", "With the payloads.")
    limit: Limit = 50


class Tokens(Record):
    """The options of ``organism token list``, which reads a file next to the configuration and asks no server."""

    config: Config = CONFIG
    json: Json = False


class RevokeToken(Tokens):
    name: TokenName
    tenant: str = option("TENANT", "The token's tenant.", "default")


class CreateToken(Tokens):
    name: TokenName
    tenant: str = option("TENANT", "The tenant it opens.", "default")
    scope: list[str] | None = option("SCOPE", "What it may do (read, inject, inject:agent:NAME, …); repeatable.")
    model: list[str] | None = option("MODEL", "A model it may use (by default all); repeatable.")
    tool: list[str] | None = option("TOOL", "A tool it and its agents may call (by default all); repeatable.")
    tenant_admin: bool = flag("--tenant-admin", "It administers its tenant.")
    expires: str | None = option("TIME", "When it expires: 90d, 12h or 2027-01-31T12:00:00Z; by default never.")
    rate: int = option(
        "N",
        "Requests a second; by default 1 (/v1, /a1) or 50, unlimited with admin.",
        0,
        min=0,
    )


class LinkToken(Tokens):
    scope: list[str] | None = option("SCOPE", "What the page may do; by default read; repeatable.")
    hours: int = option("N", "After how many hours the link expires.", 12, min=1, max=8760)
    tenant: str = option("TENANT", "The tenant it opens.", "default")
    host: str | None = option("ADDRESS", "The server's host in the link.", None)
    port: int | None = option("N", "The server's port in the link.", None, min=1, max=65535)
    url: str | None = option("URL", "The server's whole address, if it is not as above.", None, envvar="ORGANISM_URL")


class Errors(Remote):
    code: str | None = argument("CODE", "Only this one, in full.", None)
