"""Who acts, and what they may: scopes, and the principal that a token stands for.

A grant is a scope, whole (``inject``) or narrowed to one object (``inject:agent:greeter``). Operations on no single
object, such as lists and sockets, need the whole scope. ``admin`` implies every scope, and may be narrowed too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from organism.model.ids import TenantId

ADMIN: Final = "admin"
SCOPES: Final = (
    "read", "inject", "control", "agents:chat", "rag:read", "rag:write", "tools:execute", "tenant_config:read",
    "tenant_config:write", "act-as", ADMIN,
)  # fmt: skip
KINDS: Final = (
    "agent", "thread", "message", "dead_letter", "approval", "indeterminate", "session", "index", "tool", "user",
)  # fmt: skip
"""The kinds of objects that a scope can be narrowed to."""
COMMANDS_PER_SECOND: Final = 20
OPERATOR: Final = "operator"
PAGE: Final = "page"
"""The names of the tokens that the server makes by itself."""
_NAME: Final = r"[A-Za-z0-9._@:-]{1,128}"
_GRANT: Final = re.compile(rf"({'|'.join(SCOPES)})(:({'|'.join(KINDS)}):{_NAME})?")

Object = tuple[str, str]
"""What an operation acts on: its kind and its name."""


def is_grant(text: str) -> bool:
    """Whether the text is a scope, whole or narrowed."""
    return _GRANT.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Principal:
    """Who holds a token: the tenant that it opens, the token's name, and its grants.

    ``credential`` identifies the token: the SHA-256 of its text. ``models`` are the models that it may use (None: all),
    ``tools`` the tools that it may call, and that may be called in what follows from its injections (None: all).
    ``rate`` is how many requests and commands it may send a second, if the file says so. ``ends`` is when it expires,
    in seconds since 1970.
    """

    tenant: TenantId
    name: str
    grants: frozenset[str]
    credential: bytes = field(default=b"", repr=False)
    models: frozenset[str] | None = None
    tools: frozenset[str] | None = None
    is_tenant_admin: bool = False
    rate: int | None = None
    ends: float | None = None

    def rate_or(self, usual: int) -> int | None:
        """How many of something it may send a second, which is ``usual`` for others than admins; None: no limit."""
        return self.rate or (None if ADMIN in self.grants else usual)

    def may(self, scope: str, objects: Iterable[Object] = ()) -> bool:
        """Whether it may perform an operation that needs ``scope`` on any one of ``objects``."""
        narrowed = (f"{each}:{kind}:{name}" for kind, name in objects for each in (scope, ADMIN))
        return ADMIN in self.grants or scope in self.grants or any(each in self.grants for each in narrowed)

    def may_act_as(self, user: str) -> bool:
        """Whether it may act for that user of its tenant: a grant of ``act-as`` that names users narrows it to them."""
        if self.may("act-as", [("user", user)]):
            return True
        is_narrowed = any(grant.startswith("act-as:") for grant in self.grants)
        return not is_narrowed and any(grant.startswith(("agents:", "rag:")) for grant in self.grants)

    def may_some(self, scope: str) -> bool:
        """Whether it has a narrowed grant of ``scope``."""
        return any(grant.startswith((f"{scope}:", f"{ADMIN}:")) for grant in (f"{each}:" for each in self.grants))
