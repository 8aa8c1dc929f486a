"""How big things may be. Docstrings cost a function nothing: they are for the reader of its seam."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tests.house.tree import Finding, Rule, Source, dotted, each, sample

FILE_LINES = 400
FUNCTION_LINES = 40
NESTING = 3
PARAMETERS = 5
METHODS = 15
INHERITANCE = 2

CODE = (".css", ".html", ".js", ".py", ".sh", ".sql", ".svelte", ".ts")
GENERATED = ("schemas/", "web/dist/", "web/src/wire.ts", "tests/golden/")

Function = ast.FunctionDef | ast.AsyncFunctionDef
BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)


def _is_code(source: Source) -> bool:
    return source.path.endswith(CODE) or source.text.startswith("#!")


def _long_file(source: Source) -> Iterator[Finding]:
    lines = source.text.count("\n")
    if _is_code(source) and lines > FILE_LINES:
        yield Finding(
            source.path, lines, f"the file has {lines} lines, {FILE_LINES} are allowed: split it by its rooms"
        )


def _functions(tree: ast.Module) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def _lines(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _docstring_lines(function: Function) -> int:
    return _lines(function.body[0]) if ast.get_docstring(function, clean=False) is not None else 0


def _long_function(source: Source) -> Iterator[Finding]:
    for function in _functions(source.tree):
        lines = _lines(function) - _docstring_lines(function)
        if lines > FUNCTION_LINES:
            what = f"{function.name} has {lines} lines without its docstring, {FUNCTION_LINES} are allowed"
            yield Finding(source.path, function.lineno, what)


def _is_elif(child: ast.AST, parent: ast.AST) -> bool:
    """An ``elif`` is an ``if`` alone in its parent's ``else``, in the same column."""
    return (
        isinstance(child, ast.If)
        and isinstance(parent, ast.If)
        and parent.orelse == [child]
        and child.col_offset == parent.col_offset
    )


def _deep_blocks(parent: ast.AST, level: int) -> Iterator[ast.stmt]:
    for child in ast.iter_child_nodes(parent):
        if isinstance(child, Function | ast.ClassDef):
            yield from _deep_blocks(child, 0)
            continue
        inner = level + (isinstance(child, BLOCKS) and not _is_elif(child, parent))
        if inner > NESTING and isinstance(child, BLOCKS):
            yield child
        else:
            yield from _deep_blocks(child, inner)


def _deep_nesting(source: Source) -> Iterator[Finding]:
    for block in _deep_blocks(source.tree, 0):
        what = f"this block is nested deeper than {NESTING}: give it a function, or return early"
        yield Finding(source.path, block.lineno, what)


def _parameters(function: Function, methods: set[Function]) -> list[str]:
    arguments = function.args
    taken = [*arguments.posonlyargs, *arguments.args]
    is_static = any(dotted(decorator) == "staticmethod" for decorator in function.decorator_list)
    if function in methods and not is_static:
        taken = taken[1:]
    gathered = [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
    return [argument.arg for argument in (*taken, *arguments.kwonlyargs, *gathered)]


def _methods(owner: ast.ClassDef) -> list[Function]:
    return [node for node in owner.body if isinstance(node, Function)]


def _classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def _many_parameters(source: Source) -> Iterator[Finding]:
    methods = {method for owner in _classes(source.tree) for method in _methods(owner)}
    for function in _functions(source.tree):
        names = _parameters(function, methods)
        if len(names) > PARAMETERS:
            what = f"{function.name} takes {len(names)} parameters ({', '.join(names)}), {PARAMETERS} are allowed"
            yield Finding(source.path, function.lineno, what)


def _many_methods(source: Source) -> Iterator[Finding]:
    for owner in _classes(source.tree):
        names = {method.name for method in _methods(owner)}  # overloads, and a property's setter, are one
        if len(names) > METHODS:
            yield Finding(source.path, owner.lineno, f"{owner.name} has {len(names)} methods, {METHODS} are allowed")


def _deep_inheritance(sources: Sequence[Source]) -> Iterator[Finding]:
    """How many classes of ours stand in a line; errors form one tree and are let off."""
    found = [(source, owner) for source in sources for owner in _classes(source.tree)]
    bases = {owner.name: [dotted(base).rpartition(".")[2] for base in owner.bases] for _, owner in found}

    def line(name: str, seen: tuple[str, ...] = ()) -> tuple[str, ...]:
        if name not in bases or name in seen:
            return (name,) if name.endswith(("Error", "Exception")) else ()
        above = max((line(base, (*seen, name)) for base in bases[name]), key=len, default=())
        return (name, *above)

    for source, owner in found:
        ancestry = line(owner.name)
        is_error = ancestry[-1].endswith(("Error", "Exception"))
        if len(ancestry) > INHERITANCE and not is_error:
            what = f"{' < '.join(ancestry)}: {INHERITANCE} classes of ours in a line are allowed; compose instead"
            yield Finding(source.path, owner.lineno, what)


RULES = (
    Rule(
        "files have at most 400 lines",
        each(_long_file, but=GENERATED),
        bad=(
            sample("\n" * 401),
            sample("\n" * 401, "web/src/fold.ts"),
            sample("#!/bin/sh\n" + "\n" * 401, "scripts/run"),
        ),
        good=(sample("\n" * 400), sample("\n" * 401, "docs/design.md"), sample("\n" * 401, "web/dist/app.js")),
    ),
    Rule(
        "functions have at most 40 lines without their docstring",
        each(_long_function),
        bad=(sample("def f():\n" + "    x = 1\n" * 40), sample("class A:\n  async def f():\n" + "    x = 1\n" * 40)),
        good=(
            sample("def f():\n" + "    x = 1\n" * 39),
            sample('def f():\n    """One\n    two."""\n' + "    x = 1\n" * 39),
        ),
    ),
    Rule(
        "blocks are nested at most 3 deep",
        each(_deep_nesting),
        bad=(
            sample("def f():\n if a:\n  for b in c:\n   with d:\n    while e:\n     pass"),
            sample("def f():\n if a:\n  pass\n else:\n  if b:\n   try:\n    g()\n   except E:\n    if c:\n     pass"),
            sample("def f():\n match a:\n  case 1:\n   if b:\n    if c:\n     if d:\n      pass"),
        ),
        good=(
            sample("def f():\n if a:\n  for b in c:\n   if d:\n    pass\n   elif e:\n    pass\n   elif g:\n    pass"),
            sample("def f():\n if a:\n  if b:\n   if c:\n    def g():\n     if d:\n      pass"),
        ),
    ),
    Rule(
        "functions take at most 5 parameters",
        each(_many_parameters, but=("organism/cli/app.py",)),  # whose parameters are the options of the command line
        bad=(
            sample("def f(a, b, c, d, e, g): ..."),
            sample("def f(a, b, /, c, *d, e, **g): ..."),
            sample("class A:\n def __init__(self, a, b, c, d, *, e, g): ..."),
            sample("class A:\n @staticmethod\n def f(a, b, c, d, e, g): ..."),
        ),
        good=(sample("def f(a, b, c, d, e): ..."), sample("class A:\n def f(self, a, b, c, d, e): ...")),
    ),
    Rule(
        "classes have at most 15 methods",
        each(_many_methods),
        bad=(sample("class A:\n" + "".join(f" def m{n}(self): ...\n" for n in range(16))),),
        good=(
            sample("class A:\n" + "".join(f" def m{n}(self): ...\n" for n in range(15))),
            sample("class A:\n" + " @overload\n def m(self): ...\n" * 16),
        ),
    ),
    Rule(
        "at most 2 classes of ours stand in a line of inheritance, errors apart",
        _deep_inheritance,
        bad=(sample("class A: ...\nclass B(x.A): ...\nclass C(B): ..."),),
        good=(
            sample("class A(BaseModel): ...\nclass B(A): ..."),
            sample("class A(Exception): ...\nclass B(A): ...\nclass C(B): ...\nclass D(C): ..."),
        ),
    ),
)
