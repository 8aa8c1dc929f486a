"""organism.yaml → settings, all of it checked (S16).

``ConfigInvalid`` carries every fault; what was loaded before stays in force (G12).
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, TypeVar

from pydantic import Field

from organism.config.agents import read_agent_files
from organism.config.check import Amount, Count, Money, Prefix, Section, Text, Title, came
from organism.config.code import CheckPayload, Code
from organism.config.faults import Faults, lies_within, read_text
from organism.config.host_rules import is_address
from organism.config.listeners import ListenerReader, names_used
from organism.config.models import read_models, served_models
from organism.config.modules import Importer
from organism.config.settings import Charter, Limits, Retry, Settings, Ship
from organism.config.tools import McpServer, read_tools
from organism.config.yaml import read_yaml
from organism.errors import ConfigInvalid

CHARTER_FILE: Final = "prompts/charter.md"
BUILTIN_DIM: Final = 512

Kind = TypeVar("Kind")


# Every field has a default, so that what is left of a faulty section can still be read and the rest of its faults be
# found; ``REQUIRED`` names the keys that must be there. Empty text and 0 stand for "left out".


@dataclass(frozen=True, slots=True)
class OrganismSection:
    """``organism``: its name, the prefixes of the modules that the file may name, and its charter."""

    REQUIRED: ClassVar = ("name",)

    name: Title = ""
    imports: tuple[Prefix, ...] = ()
    charter: Any = True


@dataclass(frozen=True, slots=True)
class EmbeddingSection:
    """One of ``embeddings``: ``batch`` texts at once become vectors of ``dim`` numbers. An index takes the default."""

    REQUIRED: ClassVar = ("provider",)

    provider: Literal["openai", "builtin"] = "builtin"
    model: Text = ""
    base_url: Text = ""
    api_key_env: Text = ""
    dim: Count = BUILTIN_DIM
    batch: Annotated[int, Field(ge=1, le=256)] = 32
    input_usd_per_million: Money = Decimal(0)
    default: bool = False


@dataclass(frozen=True, slots=True)
class Root:
    """The whole file; each section is checked against its own record."""

    REQUIRED: ClassVar = ("organism",)

    organism: dict[str, Any] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)
    retry: dict[str, Any] = field(default_factory=dict)
    models: dict[str, dict[str, Any]] = field(default_factory=dict)
    embeddings: dict[str, dict[str, Any]] = field(default_factory=dict)
    tools: dict[str, dict[str, Any]] = field(default_factory=dict)
    fx: dict[str, Amount] = field(default_factory=dict)
    listeners: tuple[dict[str, Any], ...] = ()


def load(
    path: Path,
    *,
    check_payload: CheckPayload,
    imports: Importer | None = None,
    ship: Ship = lambda *_: (),
    bundled: Path | None = None,
) -> Settings:
    """Read the file and the files of agents, and import what they name.

    ``check_payload`` says what keeps a dataclass from becoming a schema. ``imports`` is the organism's importer, the
    same at each reload; without one the load is independent. ``ship`` gives the shipped tools, ``bundled`` is
    the folder of the agents that are served where there are none. Raises ``ConfigInvalid`` with all faults, in the
    order of their lines, each with the pointer ``organism.yaml:LINE:KEY``. Must not run in two threads at the same
    time.
    """
    faults = Faults(path.name)
    text, root = _read(path, faults)
    importer = imports or Importer()
    folder = path.parent.resolve()
    whole = root.record(Root)
    _check_embeddings(root)
    organism, limits, retry = _record(root, "organism", OrganismSection), _record(root, "limits", Limits), _retry(root)
    tools = read_tools(root)
    charter = _charter(organism.charter, root, folder)
    prefixes = _prefixes(organism, root, importer.allows)
    files = read_agent_files(folder, bundled, faults)
    models = served_models(read_models(root, folder), files)
    with importer.fresh(folder, prefixes or ()) as modules:
        code = Code(modules, prefixes, check_payload)
        listeners = ListenerReader(ship(tools, names_used(root, files)), files, models, limits, code).read(root)
        code.complete()
        faults.refuse_if_any()
    read = (text.encode(), b"\0", code.digest(), files.digest, (charter.text or "").encode())
    return Settings(
        name=organism.name,
        imports=organism.imports,
        limits=limits,
        retry=retry,
        models=models,
        embeddings=whole.embeddings,
        tools=tools,
        fx=whole.fx,
        listeners=listeners.named,
        unlisted=listeners.unlisted,
        off=listeners.off,
        prompts=files.prompts,
        digest=hashlib.sha256(b"".join(read)).hexdigest(),
        folder=modules.sources.folder,
        charter=charter,
        modules=modules,
    )


def mcp_servers(path: Path) -> Mapping[str, McpServer]:
    """The MCP servers that a file names: they are asked before the rest is read. ``load`` reports what is wrong."""
    faults = Faults(path.name)
    try:
        if "mcp" not in path.read_text("utf-8", "replace"):  # as in most files, which then are not read twice
            return {}
        return read_tools(_read(path, faults)[1]).mcp
    except (ConfigInvalid, OSError):
        return {}


def _read(path: Path, faults: Faults) -> tuple[str, Section]:
    """The text of the file, and its root. Raises ``ConfigInvalid`` if it cannot be read at all."""
    text = read_text(
        path,
        faults,
        if_missing="`organism init DIR` writes a first one",
        if_large="put long prompts into their own files",
    )
    faults.refuse_if_any()
    root = read_yaml(text, faults)
    if root is None:
        raise faults.refusal()
    return text, Section(root, (), faults)


def _record(root: Section, key: str, kind: type[Kind]) -> Kind:
    """The section of a top-level key; one that is missing, or no mapping, has its defaults."""
    section = root.at(key)
    return kind() if section is None or not isinstance(section.node.value, dict) else section.record(kind)


def _check_embeddings(root: Section) -> None:
    """Note what is wrong with ``embeddings``. The built-in model has one dimension; others say theirs."""
    defaults = []
    for section in root.mappings("embeddings"):
        embedding = section.record(EmbeddingSection)
        for key in ("model", "dim") if embedding.provider == "openai" else ():
            if not section.has(key):
                section.add(f"`{key}` is missing", key)
        if embedding.provider == "openai" and embedding.base_url and not is_address(embedding.base_url):
            section.add("expected an address such as https://models.example/v1", "base_url")
        if embedding.provider == "builtin" and embedding.dim != BUILTIN_DIM:
            section.add(f"the built-in model gives {BUILTIN_DIM} numbers; leave `dim` out", "dim")
        defaults += [section] if embedding.default else []
    for section in defaults[1:]:
        section.add("another one is the default already", "default")


def _prefixes(organism: OrganismSection, root: Section, allows: Callable[[str], bool]) -> tuple[str, ...] | None:
    """The prefixes, or None if one of them is not valid; the record has reported wrong types already."""
    written = root.at("organism", "imports")
    if written is None:
        return () if root.at("organism") is not None else None
    if written.node.plain() != list(organism.imports):
        return None
    wrong = {index: _wrong_prefix(prefix, allows) for index, prefix in enumerate(organism.imports)}
    for index, message in wrong.items():
        if message is not None:
            written.add(message, index)
    return None if any(wrong.values()) else organism.imports


def _wrong_prefix(prefix: str, allows: Callable[[str], bool]) -> str | None:
    if prefix.partition(".")[0] in sys.stdlib_module_names:
        return f"`{prefix}` is a module of Python itself; name the package of your handlers"
    if not allows(prefix):
        return f"`{prefix}` was not allowed when the organism started; restart it to allow another prefix"
    return None


def _retry(root: Section) -> Retry:
    retry = _record(root, "retry", Retry)
    if retry.max_delay_s < retry.base_delay_s:
        expected = f"expected at least base_delay_s ({retry.base_delay_s:g})"
        root.add(f"{expected}, came {retry.max_delay_s:g}", "retry", "max_delay_s")
    return retry


def _charter(written: Any, root: Section, folder: Path) -> Charter:
    """What every prompt begins with: ``true`` is ``CHARTER_FILE`` if it is there, else the shipped one."""
    if written is False:
        return Charter(written=False, text="")
    name = CHARTER_FILE if written is True else written
    wrong = None
    if not isinstance(name, str) or not name.strip():
        wrong = f"expected the path of a file such as `{CHARTER_FILE}`, or false for none; came {came(written)}"
    elif not lies_within(folder / name, folder):
        wrong = f"expected a file next to organism.yaml or below; `{name}` leads elsewhere"
    elif (folder / name).is_file():
        own = root.faults.of(name)
        text = read_text(folder / name, own, if_missing="see that it may be read", if_large="shorten it")
        if own.are_none and not text.strip():
            own.add(1, (), "the file is empty; write what every prompt begins with, or set `organism.charter: false`")
        return Charter(written=written, text=text)
    elif written is not True:
        wrong = f"there is no file `{name}` next to organism.yaml"
    if wrong is not None:
        root.add(wrong, "organism", "charter")
    return Charter()
