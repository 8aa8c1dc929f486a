"""What a right is, and those that many share (S3). Each route and each WebSocket command is declared with its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from organism.errors import Forbidden
from organism.model.ids import DEFAULT_TENANT
from organism.model.principal import Object, Principal

_NOTHING: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class Right:
    """What an operation needs: a ``scope`` (None: any token), which a token may narrow to ``objects`` (field → kind).

    ``in_body``: they come with the body or the query, so the endpoint checks them. ``of_process``: for the tenant
    ``default`` alone.
    """

    scope: str | None
    objects: Mapping[str, str] = field(default_factory=dict)
    in_body: bool = False
    of_process: bool = False
    needs_token: bool = True

    def check(self, who: Principal, fields: Mapping[str, Any] = _NOTHING) -> None:
        """Raise ``Forbidden`` unless ``who`` may do it to what ``fields`` name."""
        if self.scope is None:
            return
        if self.of_process and who.tenant != DEFAULT_TENANT:
            raise Forbidden("This concerns the whole process, and is the operator's alone.", param=_AUTHORIZATION)
        named: list[Object] = [(kind, str(fields[name])) for name, kind in self.objects.items() if fields.get(name)]
        if not who.may(self.scope, named):
            narrow = "".join(f", or {f'{self.scope}:{kind}:{name}'!r}" for kind, name in named)
            raise Forbidden(f"This needs a token with the scope {self.scope!r}{narrow}.", param=_AUTHORIZATION)

    def check_early(self, who: Principal, params: Mapping[str, str]) -> None:
        """Raise ``Forbidden`` if that is known before the body is read, which may name an object that is granted."""
        if not self.in_body or self.scope is None or not who.may_some(self.scope):
            self.check(who, params)


_AUTHORIZATION: Final = "headers.authorization"

OPEN: Final = Right(None, needs_token=False)
ANY_TOKEN: Final = Right(None)
READ: Final = Right("read")
SOCKET: Final = READ
"""What opens ``/ws``."""
