"""The rules that ruff and import-linter do not know, each shown what it must and must not find."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pytest

from tests.house.tree import Source, read_repository

PRODUCT = ("organism/", "handlers/")
DECISIONS = (
    "organism/pump/decide/",
    *(f"organism/pump/{name}.py" for name in ("rules", "spending", "state")),
    "organism/codec/",
    "organism/config/",
    *(
        f"organism/views/{name}.py"
        for name in ("approvals", "dead_letters", "keyed", "organism", "run", "threads", "usage")
    ),
)
SAMPLE = "organism/pump/somewhere.py"
Found = Iterable[tuple[int, str]]
"""The lines where a rule is broken, and what stands there."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A sentence of the house, and the look that finds what breaks it, in ``places`` (none: everywhere) but ``but``.

    ``bad`` and ``good`` are samples, of a path or in the product: each bad one must be found, no good one may be.
    """

    sentence: str
    look: Callable[[Source], Found]
    bad: tuple[str | Source, ...]
    good: tuple[str | Source, ...] = ()
    places: tuple[str, ...] = ()
    but: tuple[str, ...] = ()

    def findings(self, source: Source) -> list[str]:
        if (self.places and not source.is_in(*self.places)) or source.is_in(*self.but):
            return []
        return [f"{source.path}:{line}: {what}" for line, what in self.look(source)]


def text(pattern: str) -> Callable[[Source], Found]:
    """A look at the text of a file."""
    compiled = re.compile(pattern, re.MULTILINE)
    return lambda source: (
        (source.text.count("\n", 0, found.start()) + 1, found[0].strip()) for found in compiled.finditer(source.text)
    )


def strings(pattern: str) -> Callable[[Source], Found]:
    """A look at each string that the program uses; docstrings, and what describes an attribute, are none."""
    compiled = re.compile(pattern, re.MULTILINE | re.DOTALL)

    def look(source: Source) -> Found:
        described = {node.value for node in source.nodes if isinstance(node, ast.Expr)}
        for node in source.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in described:
                yield from ((node.lineno, node.value[:40]) for _ in [None] if compiled.search(node.value))

    return look


def dotted(node: ast.AST) -> str:
    """``a.b.c`` for a name or a chain of attributes; what stands before a call or a subscript is left out: ``.c``."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def calls(pattern: str) -> Callable[[Source], Found]:
    """A look at the dotted name of whatever is called."""
    compiled = re.compile(pattern)
    return lambda source: (
        (node.lineno, dotted(node.func))
        for node in source.nodes
        if isinstance(node, ast.Call) and compiled.fullmatch(dotted(node.func))
    )


def imports(*modules: str) -> Callable[[Source], Found]:
    """A look at the modules that are imported."""

    def look(source: Source) -> Found:
        for node in source.nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
                yield from ((node.lineno, name) for name in names if name.partition(".")[0] in modules)

    return look


def both(*looks: Callable[[Source], Found]) -> Callable[[Source], Found]:
    return lambda source: (found for look in looks for found in look(source))


def true_options(*names: str) -> Callable[[Source], Found]:
    """A look at options that are given and are not plainly false."""
    return lambda source: (
        (node.value.lineno, f"{node.arg}=")
        for node in source.nodes
        if isinstance(node, ast.keyword) and node.arg in names
        if not (isinstance(node.value, ast.Constant) and not node.value.value)
    )


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────────

BANNED = re.compile(r"(manager|util|common|misc|base|core|data|info|v2|impl)s?")
CAMEL = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+")
LATER = "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"))
MACHINE = r"(?<![\w.~])/(?:work/(?:main|shared|\.library)|root/|home/\w+|opt/(?:pypi|wheels))|\.\./" + "shared"
REASONLESS = r"#\s*noqa(?::\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*)?\s*$|#\s*type:\s*ignore(?:\[[\w, -]+\])?\s*$"
SQL = r"\b(?:SELECT\s.+\sFROM|INSERT\s+(?:OR\s+\w+\s+)?INTO|UPDATE\s.+\sSET|DELETE\s+FROM|CREATE\s+TABLE)\s"
SENTENCE_WORDS = 3


def file_names(source: Source) -> Found:
    *folders, name = source.path.split("/")
    words = re.split(r"[_\-.\s/]", "/".join((*folders, name.partition(".")[0] or name)).lower())
    return ((1, word) for word in words if BANNED.fullmatch(word))


def class_names(source: Source) -> Found:
    classes = (node for node in source.nodes if isinstance(node, ast.ClassDef))
    return (
        (node.lineno, node.name)
        for node in classes
        if any(BANNED.fullmatch(word.lower()) for word in CAMEL.findall(node.name))
    )


def short_test_names(source: Source) -> Found:
    functions = (node for node in source.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return (
        (node.lineno, node.name)
        for node in functions
        if node.name.startswith("test_") and len(node.name.split("_")) <= SENTENCE_WORDS
    )


WORDS = (
    Rule(
        "file and folder names say what is inside",
        file_names,
        but=("bench/rivals/",),  # which are called what others called them
        bad=(
            Source("organism/pump/utils.py", ""),
            Source("organism/core/pump.py", ""),
            Source("web/src/api_v2.ts", ""),
        ),
        good=(Source("organism/database.py", ""), Source("organism/model/metadata.py", ""), Source(".gitignore", "")),
    ),
    Rule(
        "class names are words of the field",
        class_names,
        but=("organism/events/vocabulary.py",),  # where a class is called as its event is on the wire
        bad=("class SessionManager: ...", "class BaseLog: ...", "class LogV2: ..."),
        good=("class HandlerMetadata: ...", "class BasementDoor: ...", "class XMLError: ..."),
    ),
    Rule(
        "nothing is promised for later",
        text(rf"\b(?:{LATER})\b"),
        bad=("# TO" + "DO: later", Source("docs/design.md", "# FIX" + "ME")),
        good=("class TodoUntil: ...",),
    ),
    Rule(
        "the repository does not speak of one machine's paths",
        text(MACHINE),
        bad=(
            'x = "/wor' + 'k/main/organism"',
            Source("docs/design.md", "see ../" + "shared/spec"),
            "/ro" + "ot/.cache",
        ),
        good=(Source("README.md", "framework/main; the store's /data folder"),),
    ),
    Rule(
        "the repository cites only what is in it",
        text(r"\bspe" + r"c \d|\bse" + r"ed 00\d"),
        bad=('"""As spec' + ' 4.3 says."""', Source("docs/design.md", "See se" + "ed 004.")),
        good=(Source("README.md", "the seed 42 of a spec"),),
    ),
    Rule(
        "each exception from a check names its rule and its reason",
        text(REASONLESS),
        bad=("x = 1  # no" + "qa", "x = 1  # no" + "qa: S603", "x = 1  # type:" + " ignore[misc]"),
        good=("x = 1  # no" + "qa: S603 - ours", "x = 1  # type:" + " ignore[misc]  # untyped there"),
    ),
    Rule(
        "prompts are files, not Python",
        strings(r"^\s*You are "),
        places=("organism/",),
        bad=('PROMPT = "You are a greeter."',),
        good=('def f():\n    """You are at the front door."""',),
    ),
    Rule(
        "SQL lies in .sql files",
        strings(SQL),
        places=("organism/",),
        but=("organism/log/rows/tables.py",),  # which makes statements from the read models' columns
        bad=('x = "SELECT a FROM b WHERE c"', 'x = f"INSERT OR REPLACE INTO {table} VALUES (1)"'),
        good=('x = "BEGIN IMMEDIATE"', '"""One INSERT INTO the view."""', 'x = "select one"'),
    ),
    Rule(
        "a test's name is a sentence",
        short_test_names,
        places=("tests/",),
        bad=(Source("tests/pump/test_kill.py", "def test_kill(): ..."),),
        good=(Source("tests/pump/test_kill.py", "async def test_a_killed_thread_delivers_nothing_more(): ..."),),
    ),
)

# ── habits ───────────────────────────────────────────────────────────────────────────────────────────────────────────

MUTABLE = re.compile(r"(.*\.)?(list|dict|set|bytearray|deque|defaultdict|Counter|OrderedDict|count|ContextVar)")
READ_ONLY = re.compile("Mapping|Sequence|AbstractSet|frozenset")


def is_state(name: str, value: ast.expr | None) -> bool:
    """A filled table in capitals is a constant; a container in small letters, an empty or made one will be changed."""
    if isinstance(value, ast.Call):
        return MUTABLE.fullmatch(dotted(value.func)) is not None
    is_display = isinstance(value, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp)
    is_empty = is_display and ast.unparse(value) in {"[]", "{}"} if value is not None else False
    return is_display and not name.startswith("__") and (is_empty or not name.isupper())


def module_state(source: Source) -> Found:
    for node in source.tree.body:
        if isinstance(node, ast.AnnAssign) and READ_ONLY.search(ast.unparse(node.annotation)):
            continue  # of a kind that the type checker lets nobody change
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            if isinstance(target, ast.Name) and is_state(target.id, getattr(node, "value", None)):
                yield node.lineno, f"{target.id} is state of the module: give it to who needs it"


def waits(source: Source) -> Found:
    kinds = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    return ((node.lineno, "a decision waits for nothing") for node in source.nodes if isinstance(node, kinds))


HABITS = (
    Rule(
        "no test sleeps: it waits for an event in the log, or turns the clock",
        calls(r"(.*\.)?sleep"),
        places=("tests/",),
        bad=tuple(Source("tests/pump/test_pump.py", f"{module}.sleep(0)") for module in ("time", "asyncio")),
        good=("time.sleep(1)", Source("tests/pump/test_pump.py", "gate.wait()")),
    ),
    Rule(
        "only CR and LF end a line of a stream: `httpx2.EventSource` reads events, and `served.lines_of` any lines",
        calls(r"(.*\.)?a?iter_lines"),
        bad=("answer.iter_lines()", Source("tests/pump/test_pump.py", "answer.aiter_lines()")),
        good=("answer.aiter_text()",),
    ),
    Rule(
        "modules hold no state",
        module_state,
        places=PRODUCT,
        # What a handling has from its configuration, where a call cannot carry it (docs/topics/model-calls.md); which
        # record locks this process holds, since they belong to the process as a whole.
        but=("organism/config/prompts.py", "organism/log/directory.py"),
        bad=(
            "seen = set()",
            "LINES: dict[str, str] = {}",
            "CACHE = defaultdict(list)",
            "table = {1: 2}",
            "PLACE: Final[ContextVar[int]] = ContextVar('place')",
        ),
        good=(
            "ROUTES = [1, 2]\n__all__ = ['a']\nnames = ('a',)\nIds = dict[str, str]",
            "NONE: Final[Mapping[str, str]] = {}",
            "def f():\n    seen = set()",
        ),
    ),
    Rule(
        "decisions read no clock, throw no dice, print nothing and wait for nothing",
        both(calls(r"(.*\.)?(datetime|date)\.(now|utcnow|today)|(.*\.)?(uuid1|uuid4|urandom|getrandom)|print"), waits),
        places=DECISIONS,
        bad=(
            Source("organism/pump/decide/inject.py", "datetime.now(UTC)"),
            Source("organism/views/run.py", "datetime.date.today()"),
            Source("organism/config/load.py", "uuid.uuid4()"),
            Source("organism/pump/decide/spend.py", "print(x)"),
            Source("organism/pump/decide/respond.py", "async def f(): ..."),
        ),
        good=(Source("organism/pump/decide/inject.py", "clock.now()"), "datetime.now()\nasync def f():\n    await g()"),
    ),
)

# ── safety: what never happens to text from outside ──────────────────────────────────────────────────────────────────

MARKUP = re.compile(r"</|/>|<\?xml|\sxmlns[:=]")


def queries(source: Source) -> Found:
    """XPath that is not written out."""
    for node in source.nodes:
        is_call = isinstance(node, ast.Call) and re.fullmatch(r"(.*\.)?(xpath|E?T?XPath\w*)", dotted(node.func))
        if isinstance(node, ast.Call) and is_call and not (node.args and isinstance(node.args[0], ast.Constant)):
            yield node.lineno, "an XPath that is not written here may come from a document"


def formatted_markup(source: Source) -> Found:
    for node in source.nodes:
        if isinstance(node, ast.expr) and MARKUP.search(formatted_text(node)):
            yield node.lineno, "markup put together as text: build elements, or ask the codec"


def formatted_text(node: ast.expr) -> str:
    """The fixed parts of a text that is put together from parts; empty if it is none."""
    match node:
        case ast.JoinedStr(values):
            fixed = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in values)
            return fixed if "{}" in fixed else ""
        case ast.BinOp(left, ast.Add() | ast.Mod(), right):
            sides = [side.value for side in (left, right) if isinstance(side, ast.Constant)]
            return str(sides[0]) if len(sides) == 1 else ""
        case ast.Call(ast.Attribute(ast.Constant(str(fixed)), "format")):
            return fixed
        case _:
            return ""


SAFETY = (
    Rule(
        "no text is run as a program (S17)",
        calls(r"(builtins\.)?(eval|exec|compile|__import__)"),
        bad=("eval(x)", "builtins.exec(x)", "compile(x, '', 'exec')"),
        good=("re.compile(x)", "self.compile(x)"),
    ),
    Rule(
        "no command goes through a shell (S17)",
        both(
            calls(r"os\.system|os\.popen|subprocess\.get(status)?output|asyncio\.create_subprocess_shell"),
            true_options("shell"),
        ),
        but=("tests/e2e/",),  # which pastes the line that the server prints, as a person does
        bad=("os.system(x)", "subprocess.run(x, shell=True)", "run(x, shell=flag)"),
        good=("subprocess.run([x], shell=False)", "subprocess.run([x])"),
    ),
    Rule(
        "nothing is loaded that can hold code (S17)",
        both(
            imports("pickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve", "yaml", "code", "codeop"),
            true_options("allow_pickle"),
        ),
        bad=("import pickle", "from yaml import load", "numpy.load(x, allow_pickle=True)"),
        good=("from ruamel.yaml import YAML", "import codecs"),
    ),
    Rule(
        "no XSLT, and no XPath from input (S17)",
        both(calls(r"(.*\.)?(XSLT|xslt)"), queries),
        places=PRODUCT,
        bad=("etree.XSLT(x)", "tree.xpath(path)", "etree.XPath(f'//{x}')"),
        good=("tree.xpath('/a/b')",),
    ),
    Rule(
        "XML is built as elements or by the compiled codec, never by formatting (S12)",
        formatted_markup,
        places=PRODUCT,
        but=("organism/codec/lexical.py", "organism/codec/forms.py"),
        bad=('x = f"<a>{b}</a>"', "x = '<a>%s</a>' % b", "x = '<a b=\"{}\"/>'.format(b)", "x = b + '</a>'"),
        good=('x = f"expected <{a}>, got <{b}>"', "x = 'a' + b", 'x = "<a></a>"'),
    ),
)

RULES = (*WORDS, *HABITS, *SAFETY)
SENTENCES = [rule.sentence for rule in RULES]


def as_source(sample: str | Source) -> Source:
    return sample if isinstance(sample, Source) else Source(SAMPLE, sample)


@pytest.mark.parametrize("rule", RULES, ids=SENTENCES)
def test_the_house_is_kept(rule: Rule) -> None:
    findings = [finding for source in read_repository() for finding in rule.findings(source)]
    if findings:
        pytest.fail(f"The house says: {rule.sentence}.\n" + "\n".join(findings), pytrace=False)


@pytest.mark.parametrize("rule", RULES, ids=SENTENCES)
def test_each_rule_finds_what_breaks_it_and_nothing_else(rule: Rule) -> None:
    assert rule.bad
    assert [bad for bad in rule.bad if not rule.findings(as_source(bad))] == []
    assert [finding for good in rule.good for finding in rule.findings(as_source(good))] == []


def test_the_walk_reaches_the_code_and_its_tests() -> None:
    paths = {source.path for source in read_repository()}
    assert {"organism/errors.py", "tests/house/test_rules.py", "scripts/test", "pyproject.toml"} <= paths
