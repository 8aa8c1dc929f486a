"""Which names this server answers to, and which pages may open its socket (S15).

A page of any other site can make a browser ask a server on this machine, and by rebinding a name of its own it can
even read the answer. So the Host must be a name that was meant, and an Origin must be the page's own server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import urlsplit

from organism.errors import Forbidden
from organism.server.cors import Origins

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
FITTING: Final = 64
"""So many Host headers that were found to fit are not looked at again."""


class Hosts:
    """The names that are served: the loopback ones, that of ``--host``, and those of ``--allowed-host``.

    Beside the server's own page those of the listed ``origins`` may open its socket.
    """

    def __init__(self, names: Iterable[str], origins: Origins | None = None) -> None:
        self.origins = origins or Origins()
        self._names = LOOPBACK | {name.lower() for name in names}
        self._fitting: set[bytes] = set()

    def check_host(self, headers: Mapping[bytes, bytes]) -> None:
        """Raise ``Forbidden`` if the request was meant for another name."""
        said = headers.get(b"host", b"")
        if said in self._fitting:
            return
        if _name(said) not in self._names:
            shown = said.decode("latin-1")[:100]
            raise Forbidden(
                f"This server does not answer to the name {shown!r}; if it should, start it with --allowed-host.",
                param="headers.host",
            )
        if len(self._fitting) < FITTING:
            self._fitting.add(said)

    def check_origin(self, headers: Mapping[bytes, bytes]) -> None:
        """Raise ``Forbidden`` for a browser's page that this server did not serve. Programs send no Origin."""
        said = headers.get(b"origin")
        if said is None or self.origins.knows(said):
            return
        origin = urlsplit(said.decode("latin-1").lower())
        if (
            origin.scheme not in {"http", "https"}
            or origin.netloc != headers.get(b"host", b"").decode("latin-1").lower()
        ):
            raise Forbidden(
                f"A page of {said.decode('latin-1')[:100]!r} may not open this server's socket.", param="headers.origin"
            )


def _name(host: bytes) -> str:
    """The name of a Host header, without its port; the empty text if it is none."""
    try:
        split = urlsplit("//" + host.decode("ascii").lower())
        _ = split.port
    except ValueError:
        return ""
    return "" if split.username or split.path or split.query or split.fragment else split.hostname or ""
