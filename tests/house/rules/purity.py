"""Decisions are functions: what they need is given to them, what they decide is their answer."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from tests.house.tree import Finding, Rule, Source, dotted, each, sample

DECISIONS = (
    "organism/pump/inject.py",
    "organism/pump/route.py",
    "organism/pump/respond.py",
    "organism/pump/control.py",
    "organism/pump/spend.py",
    "organism/codec/",
    "organism/config/",
    "organism/projections/",
)
VOCABULARY = ("organism/model/", "organism/errors.py")
WRAPPED = {("organism/model/linear.py", "re2")}
"""The files that stand for a library, which their floor knows by them alone."""

IMPURE_MODULES = frozenset(
    {"asyncio", "logging", "random", "secrets", "socket", "structlog", "threading", "time", "uvloop"}
)
TELLS_THE_TIME = frozenset({"now", "utcnow", "today"})
MAKES_CHANCE = frozenset({"uuid1", "uuid4", "urandom", "getrandom"})


def _modules(source: Source) -> Iterator[tuple[int, str]]:
    for node in source.nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.lineno, node.module


def _impure_imports(source: Source) -> Iterator[Finding]:
    for line, module in _modules(source):
        if module.split(".")[0] in IMPURE_MODULES:
            yield Finding(source.path, line, f"{module}: a decision has no clock, no loop, no chance and no log call")


def _impure_calls(source: Source) -> Iterator[Finding]:
    for node in source.nodes:
        if isinstance(node, ast.Call):
            owner, _, last = dotted(node.func).rpartition(".")
            reads_clock = last in TELLS_THE_TIME and owner.rpartition(".")[2] in {"datetime", "date"}
            if reads_clock or last in MAKES_CHANCE or (last == "print" and not owner):
                yield Finding(source.path, node.lineno, f"{dotted(node.func)}: what a decision needs is given to it")


def _waits(source: Source) -> Iterator[Finding]:
    for node in source.nodes:
        if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith):
            yield Finding(source.path, node.lineno, "a decision waits for nothing")


def _foreign_words(source: Source) -> Iterator[Finding]:
    for line, module in _modules(source):
        first = module.split(".")[0]
        if (
            first not in sys.stdlib_module_names
            and first not in {"msgspec", "organism"}
            and (source.path, first) not in WRAPPED
        ):
            yield Finding(source.path, line, f"{module}: the vocabulary needs the standard library and msgspec alone")


RULES = (
    Rule(
        "decisions import no clock, no loop, no chance and no log",
        each(_impure_imports, *DECISIONS),
        bad=(
            sample("import asyncio", "organism/pump/route.py"),
            sample("from time import time", "organism/codec/xml.py"),
        ),
        good=(sample("import asyncio", "organism/pump/actor.py"), sample("import datetime", "organism/codec/xml.py")),
    ),
    Rule(
        "decisions read no clock, throw no dice and print nothing",
        each(_impure_calls, *DECISIONS),
        bad=(
            sample("datetime.now(UTC)", "organism/pump/inject.py"),
            sample("datetime.date.today()", "organism/projections/run.py"),
            sample("uuid.uuid4()", "organism/config/load.py"),
            sample("print(x)", "organism/pump/control.py"),
        ),
        good=(sample("clock.now()", "organism/pump/inject.py"), sample("datetime.now()", "organism/pump/actor.py")),
    ),
    Rule(
        "decisions wait for nothing",
        each(_waits, *DECISIONS),
        bad=(sample("async def f(): ...", "organism/pump/respond.py"),),
        good=(sample("async def f():\n    await g()", "organism/pump/actor.py"),),
    ),
    Rule(
        "the vocabulary needs the standard library and msgspec alone",
        each(_foreign_words, *VOCABULARY),
        bad=(
            sample("import orjson", "organism/model/events.py"),
            sample("from pydantic import x", "organism/errors.py"),
            sample("import re2", "organism/model/redact.py"),
        ),
        good=(
            sample("import json\nfrom organism.model import ids", "organism/model/events.py"),
            sample("import re2", "organism/model/linear.py"),
        ),
    ),
)
