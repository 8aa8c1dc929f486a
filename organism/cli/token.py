"""``organism token``: edits config/tokens.yaml. A running server takes the edit over within a second."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import typer

from organism.cli.client import DEFAULT_HOST, DEFAULT_PORT, DEFAULT_URL, checked_url
from organism.cli.exits import Exit
from organism.cli.options import CreateToken, LinkToken, RevokeToken, Tokens
from organism.cli.output import Columns, cells, clock_time, note, print_json, refuse, show_text, table
from organism.config.token_edit import added, edit_tokens, removed
from organism.config.tokens import EVERY, TOKENS_FILE, TokenSection, read_tokens
from organism.errors import ConfigInvalid, Conflict, NotFound
from organism.model.principal import Principal

PREFIX: Final = "org_"
SECRET_BYTES: Final = 32
NAME_BYTES: Final = 4
"""A link's token is named at random: nobody chooses a name for a link."""
_SPAN: Final = re.compile(r"(\d{1,5})([dhm])")
_UNITS: Final[Mapping[str, str]] = {"d": "days", "h": "hours", "m": "minutes"}


def create(options: CreateToken) -> None:
    """Make a token, store its digest, and print its text, which is stored nowhere."""
    if not options.scope:
        raise typer.BadParameter("name what it may do, such as --scope read.", param_hint="--scope")
    token = _text(options.name)
    new = TokenSection(
        name=options.name,
        sha256=_digest(token),
        scopes=tuple(dict.fromkeys(options.scope)),
        models=tuple(options.model or (EVERY,)),
        tools=tuple(options.tool or ()),
        tenant_admin=options.tenant_admin,
        expires=_end(options.expires or ""),
        rate=options.rate,
    )
    with _file_of(options) as path:
        edit_tokens(path, lambda text: added(text, options.tenant, new))
    show_text(
        options, {"token": token, "tenant": options.tenant, "name": new.name, "expires": new.expires or None}, token
    )
    if not options.json:
        note(f"Copy it now: it is shown only once, {path} has only its digest.")


def link(options: LinkToken) -> None:
    """Make a token that ends by itself, and print the address at which the page opens with it."""
    if options.host is not None or options.port is not None:
        host = options.host or DEFAULT_HOST
        url = checked_url(f"http://{f'[{host}]' if ':' in host else host}:{options.port or DEFAULT_PORT}")
    else:
        url = checked_url(options.url) if options.url else DEFAULT_URL
    name = f"link-{secrets.token_hex(NAME_BYTES)}"
    token, scopes, end = _text(name), tuple(dict.fromkeys(options.scope or ("read",))), _end(f"{options.hours}h")
    new = TokenSection(name=name, sha256=_digest(token), scopes=scopes, models=(EVERY,), expires=end)
    with _file_of(options) as path:
        edit_tokens(path, lambda text: added(text, options.tenant, new))
    address = f"{url}/#token={token}"  # the fragment reaches no server, so it stands in no log
    show_text(options, {"url": address, "tenant": options.tenant, "name": name, "expires": end}, address)
    if not options.json:
        rights = ", ".join(scopes)
        note(f"Who has it may {rights} until {clock_time(end)}; `organism token revoke {name}` ends it before.")


def _text(name: str) -> str:
    return f"{PREFIX}{name}_{secrets.token_hex(SECRET_BYTES)}"


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def revoke(options: RevokeToken) -> None:
    """Remove the entry; the token is refused from then on."""
    with _file_of(options) as path:
        edit_tokens(path, lambda text: removed(text, options.tenant, options.name))
    answer = {"tenant": options.tenant, "name": options.name, "revoked": True}
    show_text(options, answer, f"revoked {options.name} of {options.tenant}")


TOKENS: Final[Columns] = {
    "TENANT": "tenant",
    "TOKEN": "name",
    "EXPIRES": lambda row: "expired" if row["expired"] else clock_time(row["expires"]) if row["expires"] else "never",
    "MODELS": lambda row: "all" if row["models"] is None else ", ".join(row["models"]) or "none",
    "TOOLS": lambda row: "all" if row["tools"] is None else ", ".join(row["tools"]) or "none",
    "SCOPES": lambda row: ", ".join(row["scopes"]),
}


def listed(options: Tokens) -> None:
    """Every token of the file, by tenant."""
    with _file_of(options) as path:
        rows = [_row(token) for tenant in read_tokens(path) for token in tenant.tokens]
    if options.json:
        print_json(rows)
    else:
        table([*TOKENS], (cells(row, TOKENS) for row in rows), "no tokens but the operator's")


def _row(token: Principal) -> dict[str, Any]:
    return {
        "tenant": token.tenant,
        "name": token.name,
        "scopes": sorted(token.grants),
        "models": None if token.models is None else sorted(token.models),
        "tools": None if token.tools is None else sorted(token.tools),
        "tenant_admin": token.is_tenant_admin,
        "expires": None if token.ends is None else _iso(datetime.fromtimestamp(token.ends, UTC)),
        "expired": token.ends is not None and token.ends <= datetime.now(UTC).timestamp(),
        "rate": token.rate,
    }


def _end(text: str) -> str:
    """The end of a span from now; any other text unchanged, since the file is checked as a whole."""
    if not (span := _SPAN.fullmatch(text)):
        return text
    return _iso(datetime.now(UTC).replace(microsecond=0) + timedelta(**{_UNITS[span[2]]: int(span[1])}))


def _iso(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


@contextmanager
def _file_of(options: Tokens) -> Iterator[Path]:
    """The file next to the configuration; ends the command if it cannot be read or changed as asked."""
    if not options.config.is_file():
        refuse(Exit.NOT_FOUND, f"There is no {options.config}.", "Name the organism's configuration: --config FILE.")
    path = options.config.parent / TOKENS_FILE
    try:
        yield path
    except OSError as error:
        refuse(Exit.FAILED, f"{path} cannot be read or written: {error.strerror}.", "Run as its owner.")
    except ConfigInvalid as error:
        faults = [f"{fault.pointer}: {fault.message}" for fault in error.details]
        refuse(Exit.FAILED, error.message, "Correct each fault; nothing was written.", faults)
    except (Conflict, NotFound) as error:
        code = Exit.CONFLICT if isinstance(error, Conflict) else Exit.NOT_FOUND
        refuse(code, error.message, "`organism token list` lists the tokens.")
