"""How things are done here: where imports, excepts and state stand, and that nobody waits by the clock."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.house.tree import Finding, Rule, Source, dotted, each, sample

# Optional extras, and what is too heavy for `organism --help` or for `import organism`.
MAY_IMPORT_INSIDE = (
    "organism/bootstrap.py",
    "organism/agents/providers/",
    "organism/cli/",
    "organism/config/json_schema.py",
    "bench/rivals/",
)
# Where foreign code runs (handlers; the modules that organism.yaml names), and where a request ends: only there
# does every failure become a record.
MAY_CATCH_ALL = (
    "organism/pump/actor.py",
    "organism/pump/respond.py",
    "organism/pump/runtime.py",  # a fault of the pump itself: its state is folded again
    "organism/config/foreign.py",
    "organism/server/edge.py",
    "organism/server/live_tokens.py",  # whoever watches revocations must not end by a fault of one edit
    "organism/server/socket.py",
)
# What a handling has from its configuration, where a call cannot carry it (docs/adr/0028-served-prompts.md).
MAY_HOLD_CONTEXT = ("organism/config/prompts.py",)

MUTABLE = frozenset(
    {"list", "dict", "set", "bytearray", "deque", "defaultdict", "Counter", "OrderedDict", "count", "ContextVar"}
)
BARE = "(bare)"
READ_ONLY = ("Mapping", "Sequence", "AbstractSet", "frozenset")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _inner_imports(source: Source) -> Iterator[Finding]:
    functions = (node for node in source.nodes if isinstance(node, Function))
    lines = {
        inner.lineno
        for outer in functions
        for inner in ast.walk(outer)
        if isinstance(inner, ast.Import | ast.ImportFrom)
    }
    for line in sorted(lines):
        yield Finding(source.path, line, "an import inside a function: write it at the top of the file")


def _caught(handler: ast.ExceptHandler) -> list[str]:
    if handler.type is None:
        return [BARE]
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return [dotted(kind).rpartition(".")[2] for kind in kinds]


def _handlers_of_all(source: Source) -> Iterator[ast.ExceptHandler]:
    for node in source.nodes:
        if isinstance(node, ast.ExceptHandler) and {BARE, "Exception", "BaseException"} & set(_caught(node)):
            yield node


def _bare_excepts(source: Source) -> Iterator[Finding]:
    for handler in _handlers_of_all(source):
        if BARE in _caught(handler):
            yield Finding(source.path, handler.lineno, "a bare except: name what may fail here")


def _catches_all(source: Source) -> Iterator[Finding]:
    for handler in _handlers_of_all(source):
        what = "only the actor and the server's edge catch everything: name what may fail here"
        yield Finding(source.path, handler.lineno, what)


def _is_recorded(handler: ast.ExceptHandler) -> bool:
    """The caught exception is used by name, raised on, or logged with its trace."""
    inside = [node for statement in handler.body for node in ast.walk(statement)]
    uses = any(isinstance(node, ast.Name) and node.id == handler.name for node in inside)
    logs = any(isinstance(node, ast.Attribute) and node.attr == "exception" for node in inside)
    return uses or logs or any(isinstance(node, ast.Raise) for node in inside)


def _swallows(source: Source) -> Iterator[Finding]:
    for handler in _handlers_of_all(source):
        if not _is_recorded(handler):
            yield Finding(
                source.path, handler.lineno, "who catches everything records it: use the exception or raise it"
            )


def _sleeps(source: Source) -> Iterator[Finding]:
    for node in source.nodes:
        if isinstance(node, ast.Call) and dotted(node.func).rpartition(".")[2] == "sleep":
            yield Finding(source.path, node.lineno, "a sleep: wait for an event in the log, or turn the clock")


def _is_mutable(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call):
        return dotted(value.func).rpartition(".")[2] in MUTABLE
    return isinstance(value, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp)


def _is_empty(value: ast.expr | None) -> bool:
    is_display = isinstance(value, ast.List | ast.Set | ast.Dict)
    return is_display and not any(ast.iter_child_nodes(value)) if value is not None else False


def _is_read_only(node: ast.stmt) -> bool:
    """Whether the annotation is of a kind that the type checker lets nobody change."""
    return isinstance(node, ast.AnnAssign) and any(kind in ast.unparse(node.annotation) for kind in READ_ONLY)


def _bindings(tree: ast.Module) -> Iterator[tuple[str, ast.expr | None, int]]:
    for node in filter(lambda node: not _is_read_only(node), tree.body):
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for target in targets:
            if isinstance(target, ast.Name) and isinstance(node, ast.Assign | ast.AnnAssign):
                yield target.id, node.value, node.lineno


def _module_state(source: Source) -> Iterator[Finding]:
    """A filled table in capitals is a constant; a container in small letters, an empty or made one will be changed."""
    for name, value, line in _bindings(source.tree):
        is_table = name.isupper() and not _is_empty(value) and not isinstance(value, ast.Call)
        if _is_mutable(value) and not is_table and not name.startswith("__"):
            yield Finding(
                source.path, line, f"{name} is state of the module: give it to who needs it (a table: in CAPITALS)"
            )
    for node in source.nodes:
        if isinstance(node, ast.Global):
            yield Finding(source.path, node.lineno, f"global {', '.join(node.names)}: give state to who needs it")


RULES = (
    Rule(
        "imports stand at the top of the file",
        each(_inner_imports, but=MAY_IMPORT_INSIDE),
        bad=(sample("def f():\n    import os"), sample("class A:\n    async def f(self):\n        from a import b")),
        good=(
            sample(
                "import os\nif TYPE_CHECKING:\n    import sys\ntry:\n    import a\nexcept ImportError:\n    a = None"
            ),
            sample("def f():\n    import os", "organism/cli/serve.py"),
        ),
    ),
    Rule(
        "no except is bare",
        each(_bare_excepts),
        bad=(sample("try:\n    f()\nexcept:\n    raise", "organism/pump/actor.py"),),
        good=(sample("try:\n    f()\nexcept (*FAULTS, ValueError):\n    g()"),),
    ),
    Rule(
        "only the actor and the server's edge catch everything",
        each(_catches_all, but=MAY_CATCH_ALL),
        bad=(
            sample("try:\n    f()\nexcept Exception as e:\n    log(e)"),
            sample("try:\n    f()\nexcept (ValueError, builtins.BaseException) as e:\n    log(e)"),
        ),
        good=(sample("try:\n    f()\nexcept Exception as e:\n    log(e)", "organism/pump/actor.py"),),
    ),
    Rule(
        "who catches everything records it",
        each(_swallows),
        bad=(
            sample("try:\n    f()\nexcept Exception:\n    pass", "organism/pump/actor.py"),
            sample("try:\n    f()\nexcept BaseException as e:\n    g()", "organism/pump/actor.py"),
        ),
        good=(
            sample("try:\n    f()\nexcept Exception as e:\n    record(e)", "organism/pump/actor.py"),
            sample("try:\n    f()\nexcept BaseException:\n    close()\n    raise", "organism/pump/actor.py"),
            sample("try:\n    f()\nexcept Exception:\n    log.exception('f failed')", "organism/server/edge.py"),
        ),
    ),
    Rule(
        "no test sleeps",
        each(_sleeps, "tests/"),
        bad=(
            sample("import time\ntime.sleep(1)", "tests/pump/test_pump.py"),
            sample("async def f():\n    await asyncio.sleep(0)", "tests/pump/test_pump.py"),
        ),
        good=(
            sample("import time\ntime.sleep(1)"),
            sample("async def f():\n    await gate.wait()", "tests/pump/test_pump.py"),
        ),
    ),
    Rule(
        "modules hold no state",
        each(_module_state, "organism/", "handlers/", but=MAY_HOLD_CONTEXT),
        bad=(
            sample("seen = set()"),
            sample("LINES: dict[str, str] = {}"),
            sample("CACHE = defaultdict(list)"),
            sample("table = {1: 2}"),
            sample("PLACE: Final[ContextVar[int]] = ContextVar('place')"),
            sample("def f():\n    global x\n    x = 1"),
        ),
        good=(
            sample("ROUTES = [1, 2]\n__all__ = ['a']\nnames = ('a',)\nIds = dict[str, str]"),
            sample("NONE: Final[Mapping[str, str]] = {}"),
            sample("def f():\n    seen = set()"),
        ),
    ),
)
