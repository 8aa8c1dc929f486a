"""What never happens to text that came from outside (S10, S12, S17)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from tests.house.tree import Finding, Rule, Source, dotted, each, sample

PRODUCT = ("organism/", "handlers/")
XML_PARSER = "organism/codec/xml.py"
COMPILED_CODEC = ("organism/codec/lexical.py", "organism/codec/forms.py")

RUNS_TEXT = frozenset({"eval", "exec", "compile", "__import__"})
RUNS_SHELL = frozenset(
    {"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "asyncio.create_subprocess_shell"}
)
UNSAFE_MODULES = frozenset(
    {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve", "yaml", "code", "codeop"}
)
XML_MODULES = frozenset({"lxml", "xml", "pyexpat", "defusedxml", "html5lib", "bs4"})
PARSES_XML = frozenset(
    {
        "fromstring",
        "fromstringlist",
        "XML",
        "XMLID",
        "HTML",
        "parse",
        "iterparse",
        "parseid",
        "XMLParser",
        "HTMLParser",
        "XMLPullParser",
        "ParserCreate",
    }
)

_MARKUP = re.compile(r"</|/>|<\?xml|\sxmlns[:=]")


def _calls(source: Source) -> Iterator[tuple[ast.Call, str]]:
    return ((node, dotted(node.func)) for node in source.nodes if isinstance(node, ast.Call))


def _imports(source: Source) -> Iterator[tuple[int, str]]:
    for node in source.nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module


def _text_that_runs(source: Source) -> Iterator[Finding]:
    for call, name in _calls(source):
        if name.removeprefix("builtins.") in RUNS_TEXT:
            yield Finding(source.path, call.lineno, f"{name} runs text")


def _is_true(keyword: ast.keyword) -> bool:
    return not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)


def _shells(source: Source) -> Iterator[Finding]:
    for call, name in _calls(source):
        asks = any(keyword.arg == "shell" and _is_true(keyword) for keyword in call.keywords)
        if name in RUNS_SHELL or asks:
            yield Finding(source.path, call.lineno, f"{name} goes through a shell: give the arguments as a list")


def _unsafe_loads(source: Source) -> Iterator[Finding]:
    for line, module in _imports(source):
        if module.split(".")[0] in UNSAFE_MODULES:
            yield Finding(source.path, line, f"{module} can make code of what it loads")
    for call, name in _calls(source):
        if any(keyword.arg == "allow_pickle" and _is_true(keyword) for keyword in call.keywords):
            yield Finding(source.path, call.lineno, f"{name} would unpickle")


def _transforms(source: Source) -> Iterator[Finding]:
    for call, name in _calls(source):
        last = name.rpartition(".")[2]
        if last in {"XSLT", "xslt"}:
            yield Finding(source.path, call.lineno, "XSLT is a program in a document")
        is_query = last in {"xpath", "XPath", "ETXPath", "XPathEvaluator"}
        if is_query and not (call.args and isinstance(call.args[0], ast.Constant)):
            yield Finding(source.path, call.lineno, "an XPath that is not written here may come from a document")


def _xml_elsewhere(source: Source) -> Iterator[Finding]:
    for line, module in _imports(source):
        if module.split(".")[0] in XML_MODULES:
            yield Finding(source.path, line, f"{module}: only the codec touches XML")


def _xml_names(source: Source) -> Iterator[str]:
    """The names that stand for an XML library, or for something out of one."""
    imports = (node for node in source.nodes if isinstance(node, ast.Import | ast.ImportFrom))
    named = ((alias, getattr(node, "module", None) or alias.name) for node in imports for alias in node.names)
    for alias, module in named:
        if module.split(".")[0] in XML_MODULES:
            yield alias.asname or alias.name.split(".")[0]


def _parses(source: Source) -> Iterator[tuple[int, str]]:
    """Where an XML parser is called, or made."""
    names = set(_xml_names(source))
    for call, name in _calls(source):
        if name.split(".")[0] in names and name.rpartition(".")[2] in PARSES_XML:
            yield call.lineno, name


def _second_parser(sources: Sequence[Source]) -> Iterator[Finding]:
    for source in sources:
        if source.is_in(*PRODUCT) and source.path != XML_PARSER:
            for line, name in _parses(source):
                yield Finding(source.path, line, f"{name}: one function parses XML, and it is in {XML_PARSER}")


def _formatted_text(node: ast.AST) -> str:
    """The fixed parts of a text that is put together from parts; empty if it is none."""
    if isinstance(node, ast.JoinedStr):
        fixed = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        return fixed if "{}" in fixed else ""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod):
        sides = [side.value for side in (node.left, node.right) if isinstance(side, ast.Constant)]
        return "".join(side for side in sides if isinstance(side, str)) if len(sides) == 1 else ""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        owner = node.func.value
        return owner.value if isinstance(owner, ast.Constant) and isinstance(owner.value, str) else ""
    return ""


def _formatted_markup(source: Source) -> Iterator[Finding]:
    for node in source.nodes:
        if _MARKUP.search(_formatted_text(node)):
            yield Finding(
                source.path, getattr(node, "lineno", 1), "markup put together as text: build elements, or ask the codec"
            )


RULES = (
    Rule(
        "no text is run as a program (S17)",
        each(_text_that_runs),
        bad=(sample("eval(x)"), sample("builtins.exec(x)"), sample("compile(x, '', 'exec')")),
        good=(sample("re.compile(x)"), sample("self.compile(x)")),
    ),
    Rule(
        "no command goes through a shell (S17)",
        each(_shells, but=("tests/e2e/",)),  # which pastes the line that the server prints, as a person does
        bad=(sample("os.system(x)"), sample("subprocess.run(x, shell=True)"), sample("run(x, shell=flag)")),
        good=(sample("subprocess.run([x], shell=False)"), sample("subprocess.run([x])")),
    ),
    Rule(
        "nothing is loaded that can hold code (S17)",
        each(_unsafe_loads),
        bad=(sample("import pickle"), sample("from yaml import load"), sample("numpy.load(x, allow_pickle=True)")),
        good=(sample("from ruamel.yaml import YAML"), sample("import codecs")),
    ),
    Rule(
        "no XSLT, and no XPath from input (S17)",
        each(_transforms, *PRODUCT),
        bad=(sample("etree.XSLT(x)"), sample("tree.xpath(path)"), sample("etree.XPath(f'//{x}')")),
        good=(sample("tree.xpath('/a/b')"),),
    ),
    Rule(
        "only the codec touches XML",
        each(_xml_elsewhere, *PRODUCT, but=("organism/codec/",)),
        bad=(sample("from lxml import etree"), sample("def f():\n    import xml.sax.saxutils")),
        good=(sample("from lxml import etree", "organism/codec/schema.py"), sample("from organism.codec import xml")),
    ),
    Rule(
        "one file parses XML (S10)",
        _second_parser,
        bad=(
            sample("from lxml import etree\netree.fromstring(x)", "organism/codec/schema.py"),
            sample("from lxml import etree\netree.parse(path)", "organism/codec/payload.py"),
            sample("from lxml import etree\netree.XMLParser()", "organism/codec/repair.py"),
            sample("import lxml.etree\nlxml.etree.XML(x)"),
            sample("from lxml.etree import fromstring as read, parse\nparse(x)"),
            sample("import pyexpat\npyexpat.ParserCreate()"),
        ),
        good=(
            sample("from lxml import etree\netree.fromstring(x)", XML_PARSER),
            sample("from lxml import etree\nfrom organism.codec import xml\nxml.parse(x)", "organism/codec/schema.py"),
            sample(
                "from lxml import etree\nfrom organism.codec.xml import parse\nparse(x)", "organism/codec/validate.py"
            ),
        ),
    ),
    Rule(
        "XML is built as elements or by the compiled codec, never by formatting (S12)",
        each(_formatted_markup, *PRODUCT, but=COMPILED_CODEC),
        bad=(
            sample('x = f"<a>{b}</a>"'),
            sample("x = '<a>%s</a>' % b"),
            sample("x = '<a b=\"{}\"/>'.format(b)"),
            sample("x = b + '</a>'"),
        ),
        good=(sample('x = f"expected <{a}>, got <{b}>"'), sample("x = 'a' + b"), sample('x = "<a></a>"')),
    ),
)
