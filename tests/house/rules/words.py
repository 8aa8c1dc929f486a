"""Which words stand in names, in comments and in the text of the repository."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.house.tree import Finding, Rule, Source, each, sample

BANNED = frozenset(
    f"{word}{ending}"
    for word in ("manager", "util", "common", "misc", "base", "core", "data", "info", "v2", "impl")
    for ending in ("", "s")
)
SENTENCE_WORDS = 3

_CAMEL = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+")
_PROMISE = re.compile(r"\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK")) + r")\b")
_MACHINE = re.compile(
    r"(?<![\w.~])/(?:work/(?:main|shared|\.library)|root/|home/\w+|opt/(?:pypi|wheels))|\.\./" + "shared"
)
_UNSEEN = re.compile(r"\bspe" + r"c \d|\bse" + r"ed 00\d")
_REASONLESS = re.compile(
    r"#\s*noqa(?::\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*)?\s*$|#\s*type:\s*ignore(?:\[[\w, -]+\])?\s*$", re.MULTILINE
)
_PERSONA = re.compile(r"^\s*You are ", re.MULTILINE)
_SQL = re.compile(
    r"\b(?:SELECT\s.+\sFROM|INSERT\s+(?:OR\s+\w+\s+)?INTO|UPDATE\s.+\sSET|DELETE\s+FROM|CREATE\s+TABLE)\s", re.DOTALL
)


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def _file_names(source: Source) -> Iterator[Finding]:
    *folders, name = source.path.split("/")
    for part in (*folders, name.partition(".")[0] or name):
        words = set(re.split(r"[_\-.\s]", part.lower()))
        for word in sorted(words & BANNED):
            yield Finding(source.path, 1, f"“{word}” says nothing of what is inside: name the thing or the act")


def _class_names(source: Source) -> Iterator[Finding]:
    for node in source.nodes:
        if isinstance(node, ast.ClassDef):
            words = {word.lower() for word in _CAMEL.findall(node.name)}
            for word in sorted(words & BANNED):
                yield Finding(source.path, node.lineno, f"{node.name}: “{word}” is no word of the field")


def _found(pattern: re.Pattern[str], source: Source, what: str) -> Iterator[Finding]:
    for match in pattern.finditer(source.text):
        yield Finding(source.path, _line(source.text, match.start()), f"“{match.group().strip()}”: {what}")


def _promises(source: Source) -> Iterator[Finding]:
    return _found(_PROMISE, source, "do it, or write down elsewhere that it is not done")


def _machine_paths(source: Source) -> Iterator[Finding]:
    return _found(_MACHINE, source, "a path of one machine; the repository stands on any")


def _unseen_documents(source: Source) -> Iterator[Finding]:
    return _found(_UNSEEN, source, "a document that readers do not have; cite what is in the repository")


def _reasonless_exceptions(source: Source) -> Iterator[Finding]:
    return _found(_REASONLESS, source, "name the rule and write the reason beside it")


def _docstrings(source: Source) -> Iterator[ast.expr]:
    """Docstrings, and the texts that stand below an attribute to describe it."""
    return (node.value for node in source.nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _texts(source: Source) -> Iterator[tuple[int, str]]:
    """Each string that the program uses, with its line."""
    described = set(_docstrings(source))
    for node in source.nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in described:
            yield node.lineno, node.value


def _personas(source: Source) -> Iterator[Finding]:
    for line, text in _texts(source):
        if _PERSONA.search(text):
            yield Finding(source.path, line, "a prompt: it belongs into a file of its own")


def _sql(source: Source) -> Iterator[Finding]:
    for line, text in _texts(source):
        if _SQL.search(text):
            yield Finding(source.path, line, "SQL: it belongs into a .sql file, with a name and a line of description")


def _test_names(source: Source) -> Iterator[Finding]:
    for node in source.nodes:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name.startswith("test_") and len(node.name.split("_")) <= SENTENCE_WORDS:
            yield Finding(source.path, node.lineno, f"{node.name}: say in a sentence what must hold")


RULES = (
    Rule(
        "file and folder names say what is inside",
        each(_file_names, but=("bench/rivals/",)),  # which are called what others called them
        bad=(
            sample("", "organism/pump/utils.py"),
            sample("", "organism/core/pump.py"),
            sample("", "web/src/api_v2.ts"),
        ),
        good=(sample("", "organism/database.py"), sample("", "organism/model/metadata.py"), sample("", ".gitignore")),
    ),
    Rule(
        "class names are words of the field",
        each(_class_names),
        bad=(sample("class SessionManager: ..."), sample("class BaseLog: ..."), sample("class LogV2: ...")),
        good=(sample("class HandlerMetadata: ..."), sample("class BasementDoor: ..."), sample("class XMLError: ...")),
    ),
    Rule(
        "nothing is promised for later in the code",
        each(_promises),
        bad=(sample("# TO" + "DO: later"), sample("# FIX" + "ME", "docs/design.md")),
        good=(sample("class TodoUntil: ..."),),
    ),
    Rule(
        "the repository does not speak of one machine's paths",
        each(_machine_paths),
        bad=(
            sample('x = "/wor' + 'k/main/organism"'),
            sample("see ../" + "shared/spec", "docs/design.md"),
            sample("/ro" + "ot/.cache", "scripts/run"),
            sample("file:///op" + "t/pypi/simple", "uv.lock"),
        ),
        good=(sample("framework/main", "README.md"), sample("the store's /data folder", "README.md")),
    ),
    Rule(
        "the repository cites only what is in it",
        each(_unseen_documents),
        bad=(sample('"""As spec' + ' 4.3 says."""'), sample("See se" + "ed 004.", "docs/design.md")),
        good=(sample("the seed 42 of a spec", "README.md"),),
    ),
    Rule(
        "each exception from a check names its rule and its reason",
        each(_reasonless_exceptions),
        bad=(
            sample("x = 1  # no" + "qa"),
            sample("x = 1  # no" + "qa: S603"),
            sample("x = 1  # type:" + " ignore[misc]"),
        ),
        good=(sample("x = 1  # no" + "qa: S603 - ours"), sample("x = 1  # type:" + " ignore[misc]  # untyped there")),
    ),
    Rule(
        "prompts are files, not Python",
        each(_personas, "organism/"),
        bad=(sample('PROMPT = "You are a greeter."'),),
        good=(sample('def f():\n    """You are at the front door."""'),),
    ),
    Rule(
        "SQL lies in .sql files",
        each(
            _sql, "organism/", but=("organism/log/tables.py",)
        ),  # which makes statements from the read models' columns
        bad=(sample('x = "SELECT a FROM b WHERE c"'), sample('x = f"INSERT OR REPLACE INTO {table} VALUES (1)"')),
        good=(sample('x = "BEGIN IMMEDIATE"'), sample('"""One INSERT INTO the view."""'), sample('x = "select one"')),
    ),
    Rule(
        "a test's name is a sentence",
        each(_test_names, "tests/"),
        bad=(sample("def test_kill(): ...", "tests/pump/test_kill.py"),),
        good=(sample("async def test_a_killed_thread_delivers_nothing_more(): ...", "tests/pump/test_kill.py"),),
    ),
)
