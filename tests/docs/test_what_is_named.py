"""What the documentation and docstrings name in backticks exists: words, members, files, commands and routes."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import typer

from organism.cli.app import make_app
from organism.server.app import BASE, ROUTES
from tests.house.tree import Source, read_repository

FENCED = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
QUOTED = re.compile(r"`([^`\n]+)`")
DOUBLE_QUOTED = re.compile(r"``([^`\n]+)``")
SETTING = re.compile(r"^\"((?:organism|handlers|tests|docs|scripts|bench)/[^\"]*)\" = \[", re.MULTILINE)
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")
DEFINED = re.compile(r"^ *(?:async def|def|class) (\w+)", re.MULTILINE)
MEMBER = re.compile(r"\b([A-Z]\w+)\.(\w+)")
PATH = re.compile(r"(?<![\w./:{-])(?:\./)?(?:[\w-]+/)+(?:[\w.-]*\w)?|(?<![\w./-])[\w-]+\.(?:py|md|sql|ts|svelte|xsd)\b")
CODE = (".py", ".md", ".sql", ".ts", ".svelte", ".xsd")
COMMAND = re.compile(r"(?:^|[\s(\"])organism ([a-z].*)")
DECISION = re.compile(r"\[(?:adr/0*|0*)(\d+)\]\((?:[\w./-]*/)?(\d{4})-[\w-]+\.md")
ROUTE = re.compile(r"\b(GET|POST|PUT|PATCH|DELETE) (/[^\s?]*)")
EXAMPLES = frozenset(
    {
        "courier",
        "parcel",
        "test_parcel",
        "test_a_killed_thread_delivers_nothing_more",
        "server__tool",
        "files__read_file",
        "files__write_file",
        "delete_file",
        "COPY",
    }
    | {"Ada", "_SECRET", "_PASSWORD", "OTEL_BSP_", "OTEL_EXPORTER_", "thought_", "_set", "_describe"}
    | {"dueDate", "due_date", "sport", "Lieblingssport", "LINE", "POINTER", "METHOD", "lowest", "highest"}
)
"""Names that a reader makes up, and beginnings and ends of names."""
OTHERS = frozenset(
    {"uuid7", "opentelemetry-exporter-otlp-proto-http", "proto", "ssh", "git", "NORMAL", "onmessage", "Basic"}
    | {
        "organism_messages_total",
        "ORGANISM_CORPORA",
        "DIGEST",
        "SSL_CERT_FILE",
        "NO_COLOR",
        "nohup",
        "is_global",
        "pyc",
    }
    | {"SQLITE_", "_meta", "e20", "noqa", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"}
)
"""Names of other programs and libraries, and names that the program puts together."""
MADE_UP_FILES = frozenset(
    {"handlers/parcel.py", "test_parcel.py", "config/agents/clerk.yaml", "config/tokens.yaml"}
    | {"organism/idempotency-key"}
)
"""Files that the reader makes, or the program, and a name that looks like one."""


@cache
def words() -> frozenset[str]:
    """Every word of the program's own code, of its clients' programs and of all files' names; each name of a test."""
    sources = [source for source in read_repository() if not source.path.endswith(".md")]
    texts = [
        code(source) for source in sources if source.is_in("tests/clients/programs/") or not source.is_in("tests/")
    ]
    tests = [name for source in sources if source.is_in("tests/") for name in DEFINED.findall(source.text)]
    paths = [source.path for source in read_repository()]
    return EXAMPLES | OTHERS | {word for text in (*texts, *tests, *paths) for word in WORD.findall(text)}


def docstrings(source: Source) -> Iterator[ast.Constant]:
    """Each text that stands alone: docstrings, and what is said of a constant below it."""
    for node in source.nodes:
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            if isinstance(statement, ast.Expr) and isinstance(value := statement.value, ast.Constant):
                yield value


def code(source: Source) -> str:
    """The file's text; of Python without comments and docstrings, which prove nothing."""
    if not source.path.endswith(".py"):
        return source.text
    said = {line for text in docstrings(source) for line in range(text.lineno, (text.end_lineno or text.lineno) + 1)}
    tokens = tokenize.generate_tokens(io.StringIO(source.text).readline)
    return " ".join(
        token.string
        for token in tokens
        if token.type != tokenize.COMMENT and not (token.type == tokenize.STRING and token.start[0] in said)
    )


@cache
def members() -> dict[str, frozenset[str]]:
    """The names that each class of the program has, of its own or from a base."""
    classes = [
        node
        for source in read_repository()
        if source.is_in("organism/") and source.path.endswith(".py")
        for node in source.nodes
        if isinstance(node, ast.ClassDef)
    ]
    own: dict[str, set[str]] = {}
    bases: dict[str, set[str]] = {}
    for cls in classes:
        names = own.setdefault(cls.name, set())
        bases.setdefault(cls.name, set()).update(ast.unparse(base).partition("[")[0] for base in cls.bases)
        for node in ast.walk(cls):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names.add(node.name)
            elif isinstance(node, ast.AnnAssign | ast.Assign):
                targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
                names.update(ast.unparse(target).removeprefix("self.") for target in targets)
    return {name: frozenset().union(*(own.get(each, ()) for each in (name, *bases[name]))) for name in own}


def pages() -> list[Source]:
    return [page for page in read_repository() if page.path.endswith(".md") and page.path != "CHANGELOG.md"]


def unknown(quoted: str) -> Iterator[str]:
    """What of a text in backticks does not exist."""
    yield from (word for word in WORD.findall(quoted) if word not in words())
    for cls, name in MEMBER.findall(quoted):
        if cls in members() and name not in members()[cls]:
            yield f"{cls}.{name}"
    requests = ROUTE.findall(quoted)
    yield from (f"{method} {path}" for method, path in requests if not is_route(method, path))
    command = COMMAND.search(quoted)
    if command is not None:
        yield from unknown_command(command[1])
    elif not requests:
        yield from (path for path in PATH.findall(quoted) if path not in MADE_UP_FILES and not is_path(path))


@cache
def routes() -> re.Pattern[str]:
    """Any request that has a route, below the base path, with a name or an id in place of each brace."""
    return re.compile("|".join(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(route.operation)) for route in ROUTES))


def is_route(method: str, path: str) -> bool:
    """Whether a request is served."""
    return routes().fullmatch(f"{method} {path.removeprefix(BASE).removeprefix('/v1')}") is not None


def is_path(path: str) -> bool:
    """Whether a file or folder is called so; a path that begins with no folder of the repository is none of ours."""
    named = path.removeprefix("./").strip("/")
    places = [f"/{source.path}/" for source in read_repository()]
    is_ours = named.endswith(CODE) or any(f"/{named.partition('/')[0]}/" in place for place in places)
    return not is_ours or any(f"/{named}/" in place for place in places)


def unknown_command(line: str) -> Iterator[str]:
    """The first word of a command that names no verb, or the options that its verb does not take."""
    verb: Any = typer.main.get_command(make_app())
    said = re.split(r"\s(?:&&|#|\|)|\$\(", line)[0].split()
    taken = "organism"
    while hasattr(verb, "commands") and said and not said[0].startswith("-"):
        taken = f"{taken} {said[0]}"
        if (verb := verb.commands.get(said.pop(0))) is None:
            yield taken
            return
    options = {name for parameter in verb.params for name in parameter.opts}
    given = {word.partition("=")[0] for word in said if word.startswith("--")}
    yield from (f"{taken} {option}" for option in sorted(given - options - {"--help"}))


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.path)
def test_what_a_page_names_exists(page: Source) -> None:
    quoted = QUOTED.findall(FENCED.sub("", page.text))
    assert {each: missing for each in quoted if (missing := [*unknown(each)])} == {}


def test_what_a_docstring_names_exists() -> None:
    sources = [source for source in read_repository() if source.is_in("organism/", "handlers/", "scripts/", "bench/")]
    found = {
        f"{source.path}:{text.lineno}": missing
        for source in sources
        for text in docstrings(source)
        for quoted in DOUBLE_QUOTED.findall(str(text.value))
        if (missing := [word for word in WORD.findall(quoted) if word not in words()])
    }
    assert found == {}


def test_each_file_that_the_settings_of_the_checks_name_exists() -> None:
    (settings,) = [source.text for source in read_repository() if source.path == "pyproject.toml"]
    named = SETTING.findall(settings)
    assert len(named) > 10
    assert [path for path in named if not is_path(path.partition("*")[0])] == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.path)
def test_each_command_and_request_that_a_page_shows_can_be_given(page: Source) -> None:
    lines = [line.strip() for _, block in FENCED.findall(page.text) for line in block.splitlines()]
    commands = [found[1] for line in lines if (found := re.match(r"(?:\$ )?organism ([a-z].*)", line))]
    assert {each: missing for each in commands if (missing := [*unknown_command(each)])} == {}
    requests = [found.groups() for line in lines if (found := ROUTE.match(line))]
    assert [each for each in requests if not is_route(*each)] == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.path)
def test_each_decision_that_a_page_cites_has_that_number(page: Source) -> None:
    assert [cited for cited in DECISION.findall(page.text) if int(cited[0]) != int(cited[1])] == []


@pytest.mark.parametrize(
    "quoted",
    [
        "Pump" + "AndDump",
        "Codec." + "decrypt",
        "organism/pump/nowhere.py",
        "nowhere.py",
        "organism/nowhere/",
        "./scripts/nothing",
        "organism dance",
        "organism log dance",
        "organism log verify --twice",
        "POST /organism/dance",
    ],
)
def test_what_does_not_exist_is_found(quoted: str) -> None:
    assert [*unknown(quoted)]
