"""Finding a route: plain paths by one look-up, those with parameters by the patterns starlette compiles of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from re import Pattern
from typing import Final

from starlette.routing import compile_path

from organism.errors import Fault, MethodNotAllowed, NotFound
from organism.server.call import Route

_NO_PARAMS: Final[Mapping[str, str]] = {}

ByMethod = dict[str, Route]


class Table:
    """The routes, found by method and path."""

    def __init__(self, routes: Sequence[Route]) -> None:
        by_path: dict[str, ByMethod] = {}
        for route in routes:
            by_path.setdefault(route.address, {})[route.method] = route
        self._plain = {path: methods for path, methods in by_path.items() if "{" not in path}
        self._patterns: list[tuple[Pattern[str], ByMethod]] = [
            (compile_path(path)[0], methods) for path, methods in by_path.items() if "{" in path
        ]

    def find(self, method: str, path: str) -> tuple[Route, Mapping[str, str]]:
        """The route and the path's parameters. Raises ``NotFound`` or ``MethodNotAllowed``."""
        methods, params = self._methods(path)
        route = methods.get("GET" if method == "HEAD" else method)
        if route is None:
            allowed = ", ".join(sorted(methods))
            # `problems` makes the Allow header of the fault's text.
            raise MethodNotAllowed(f"{path[:200]} takes {allowed}; came {method}.", details=(Fault("method", allowed),))
        return route, params

    def _methods(self, path: str) -> tuple[ByMethod, Mapping[str, str]]:
        if (plain := self._plain.get(path)) is not None:
            return plain, _NO_PARAMS
        for pattern, methods in self._patterns:
            if match := pattern.match(path):
                return methods, match.groupdict()
        raise NotFound(f"There is no route {path[:200]!r}.")
