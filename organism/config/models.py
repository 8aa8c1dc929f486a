"""``models`` of organism.yaml: which model answers under which name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from organism.config.agents import AgentFiles
from organism.config.check import held
from organism.config.faults import Faults, Place
from organism.config.host_rules import wrong_address
from organism.config.settings import Model
from organism.config.text import lies_within, near
from organism.config.yaml import Node

MAX_NAME: Final = 200

_NAME: Final = re.compile(r"[^\s\x00-\x1f\x7f]+")
_VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]*")


USUAL: Final = ("offline", "builtin", "gpt-4.1-mini", "llama-4-scout", "claude-opus-4.7")
"""The names that the offline model serves where no models are configured; `builtin` is its older one."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """One item of ``models``: its name, where it stands, and what of it could be read."""

    name: str
    node: Node
    section: Model

    def add(self, faults: Faults, key: str, message: str) -> None:
        place: Place = ("models", self.name, key)
        faults.add(self.node.nearest((key,)).line, place, message)


def read_models(node: Node | None, folder: Path, faults: Faults) -> Mapping[str, Model]:
    """The models by name, in the order of the file. ``folder`` is that of organism.yaml; all faults are noted."""
    items = node.value.items() if node is not None and isinstance(node.value, dict) else ()
    entries = {
        name: _Entry(name, item, held(Model, item, ("models", name), faults))
        for name, item in items
        if isinstance(item.value, dict)
    }
    for entry in entries.values():
        if len(entry.name) > MAX_NAME or not _NAME.fullmatch(entry.name):
            expected = f"expected a name of at most {MAX_NAME} characters without spaces"
            faults.add(entry.node.line, ("models", entry.name[:MAX_NAME]), expected)
        _check_address(entry, faults)
        _check_key(entry, faults)
        _check_script(entry, folder, faults)
    _check_fallbacks(entries, faults)
    return {name: _model(entry, folder) for name, entry in entries.items()}


def served_models(configured: Mapping[str, Model], files: AgentFiles) -> Mapping[str, Model]:
    """The configured models. Without any, the offline model serves the usual names.

    It also serves a bundled agent's model that is not configured.
    """
    bundled = (entry.agent.model for entry in files.agents.values() if entry.is_bundled)
    missing = [name for name in (*bundled, *(() if configured else USUAL)) if name not in configured]
    return {**configured, **{name: Model(provider="offline", model=name) for name in sorted(missing)}}


def _model(entry: _Entry, folder: Path) -> Model:
    model, script = entry.section, entry.section.script
    return replace(model, model=model.model or entry.name, script=folder / script if script else None)


def _check_address(entry: _Entry, faults: Faults) -> None:
    """An address that may carry a credential is not told again: whoever reads the fault need not know it."""
    url = entry.section.base_url
    if url and (wrong := wrong_address(url, "https://models.example/v1")):
        entry.add(faults, "base_url", wrong)


def _check_key(entry: _Entry, faults: Faults) -> None:
    """What is no variable's name may be the key itself, so it is not told again."""
    name = entry.section.api_key_env
    if name and not _VARIABLE.fullmatch(name):
        expected = "expected the name of an environment variable such as `OPENAI_API_KEY`"
        entry.add(faults, "api_key_env", f"{expected} (capitals, digits, `_`), never the key itself")


def _check_script(entry: _Entry, folder: Path, faults: Faults) -> None:
    section = entry.section
    if section.script and section.provider != "scripted":
        entry.add(faults, "script", f"a model of the provider `{section.provider}` has no script; leave it out")
    elif section.script and not lies_within(folder / section.script, folder):
        leads = f"expected a file beside organism.yaml or below; `{section.script}` leads elsewhere"
        entry.add(faults, "script", leads)
    elif section.script and not (folder / section.script).is_file():
        entry.add(faults, "script", f"there is no file `{section.script}` beside organism.yaml")
    elif section.provider == "scripted" and not section.script and "script" not in entry.node.plain():
        entry.add(faults, "script", "`script` is missing: name the YAML file with the answers")


def _check_fallbacks(entries: Mapping[str, _Entry], faults: Faults) -> None:
    """Note models that are not there, and each fallback that leads back to where it came from."""
    known = list(entries)
    for entry in entries.values():
        for other in entry.section.fallback:
            if other not in entries:
                entry.add(faults, "fallback", f"there is no model `{other}`{near(other, known)}")
    ways = {name: [other for other in entry.section.fallback if other in entries] for name, entry in entries.items()}
    for way in _circles(ways):
        entries[way[-1]].add(faults, "fallback", f"this leads in a circle: {' → '.join((way[-1], *way))}")


def _circles(ways: Mapping[str, Sequence[str]]) -> Iterator[list[str]]:
    """Each way whose last step leads back to its first; walked without recursion, each step once."""
    done: set[str] = set()
    for start in ways:
        ahead = {} if start in done else {start: iter(ways[start])}  # where we stand, with the steps that are left
        done.add(start)
        while ahead:
            here = next(reversed(ahead))
            step = next(ahead[here], None)
            if step is None:
                del ahead[here]
            elif step in ahead:
                way = list(ahead)
                yield way[way.index(step) :]
            elif step not in done:
                done.add(step)
                ahead[step] = iter(ways[step])
