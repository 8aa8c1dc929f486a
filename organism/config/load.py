"""organism.yaml → settings: all of it is checked, and all that is wrong is told at once.

The way: read the text (S16), hold each section against its table, import the modules that it names as one new set,
check the code. Settings are made only if nothing was wrong anywhere; else ``ConfigInvalid`` carries every fault with
its line and key, and what was loaded before stays as it was (G12).
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from organism.config.agents import read_agent_files
from organism.config.code import CheckPayload, Code
from organism.config.faults import Faults
from organism.config.listeners import Beside, names_used, read_listeners
from organism.config.models import served_models
from organism.config.modules import Importer
from organism.config.plan import part, read_plan
from organism.config.settings import Settings
from organism.config.shipped import Ship, nothing_shipped
from organism.config.text import read_text
from organism.config.tool_settings import Tools
from organism.config.tools import read_tools
from organism.config.yaml import Node, read_yaml
from organism.errors import ConfigInvalid


def load(
    path: Path,
    *,
    check_payload: CheckPayload,
    imports: Importer | None = None,
    ship: Ship = nothing_shipped,
    bundled: Path | None = None,
) -> Settings:
    """Read the file and the files of agents, and import what they name.

    ``check_payload`` says what keeps a dataclass from becoming a schema. ``imports`` is the organism's importer, the
    same at each reload; without one the load stands for itself. ``ship`` gives the shipped tools, ``bundled`` is
    the folder of the agents that are served where there are none. Raises ``ConfigInvalid`` with all faults, in the
    order of their lines, each with the pointer ``organism.yaml:LINE:KEY``. Must not run in two threads at the same
    time.
    """
    faults = Faults(path.name)
    text, root = _read(path, faults)
    importer = imports or Importer()
    folder = path.parent.resolve()
    plan = read_plan(root, folder, importer.allows, faults)
    files = read_agent_files(folder, bundled, faults)
    models = served_models(plan.models, files)
    with importer.fresh(folder, plan.prefixes or ()) as modules:
        code = Code(modules, plan.prefixes, check_payload, faults)
        beside = Beside(ship(plan.tools), files, models)
        listeners = read_listeners(part(root, "listeners"), plan.limits, code, faults, beside)
        code.complete()
        faults.refuse_if_any()
    return Settings(
        name=plan.organism.name,
        imports=plan.organism.imports,
        limits=plan.limits,
        retry=plan.retry,
        models=models,
        embeddings=plan.sections.embeddings,
        tools=plan.tools,
        fx=plan.sections.fx,
        listeners=listeners.named,
        shelf=listeners.shelf,
        off=listeners.off,
        prompts=files.prompts,
        source_text=text,
        digest=_digest(text, code.digest(), files.digest, (plan.charter.text or "").encode()),
        folder=modules.sources.folder,
        charter=plan.charter,
        modules=modules,
    )


def foresee(path: Path, bundled: Path | None = None) -> tuple[Tools, frozenset[str]]:
    """Of a file that names MCP servers: what it says of tools, and every name that it and the agents name.

    That is known before all else is read. What is wrong is told by ``load``; where nothing can be read is nothing.
    """
    faults = Faults(path.name)
    try:
        if "mcp" not in path.read_text("utf-8", "replace"):  # most files: so they are not read twice
            return Tools(), frozenset()
        _, root = _read(path, faults)
    except (ConfigInvalid, OSError):
        return Tools(), frozenset()
    files = read_agent_files(path.parent.resolve(), bundled, faults)
    return read_tools(part(root, "tools"), faults), names_used(part(root, "listeners"), files)


def _digest(text: str, *others: bytes) -> str:
    """Of all that was read."""
    return hashlib.sha256(text.encode() + b"\0" + b"".join(others)).hexdigest()


def _read(path: Path, faults: Faults) -> tuple[str, Node]:
    """The text of the file, and what it says. Raises ``ConfigInvalid`` if there is nothing to go on with."""
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
    return text, root
