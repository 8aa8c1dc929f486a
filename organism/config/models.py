"""``models`` of organism.yaml: which model answers under which name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final

from organism.config.agents import AgentFiles
from organism.config.check import Section
from organism.config.faults import lies_within, near
from organism.config.host_rules import wrong_address
from organism.config.settings import Model

MAX_NAME: Final = 200

_NAME: Final = re.compile(r"[^\s\x00-\x1f\x7f]+")
_VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]*")


USUAL: Final = ("offline", "builtin", "gpt-4.1-mini", "llama-4-scout", "claude-opus-4.7")
"""The names that the offline model serves where no models are configured; `builtin` is its older one."""


def read_models(root: Section, folder: Path) -> Mapping[str, Model]:
    """``models`` by name, in the order of the file. ``folder`` is that of organism.yaml; all faults are noted."""
    sections = {str(each.place[-1]): each for each in root.mappings("models")}
    models = {name: _model(name, section, folder) for name, section in sections.items()}
    ways: dict[str, list[str]] = {}
    for name, model in models.items():
        ways[name] = [other for other in model.fallback if other in models]
        for other in model.fallback:
            if other not in models:
                sections[name].add(f"there is no model `{other}`{near(other, models)}", "fallback")
    for way in _circles(ways):
        sections[way[-1]].add(f"this leads in a circle: {' → '.join((way[-1], *way))}", "fallback")
    return models


def served_models(configured: Mapping[str, Model], files: AgentFiles) -> Mapping[str, Model]:
    """The configured models; without any, and for bundled agents, the offline model serves the usual names."""
    bundled = (entry.agent.model for entry in files.agents.values() if entry.is_bundled)
    missing = [name for name in (*bundled, *(() if configured else USUAL)) if name not in configured]
    return {**configured, **{name: Model(provider="offline", model=name) for name in sorted(missing)}}


def _model(name: str, section: Section, folder: Path) -> Model:
    """The model. A value that may contain a credential is not repeated in a fault."""
    model = section.record(Model)
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        section.add(f"expected a name of at most {MAX_NAME} characters without spaces")
    if model.base_url and (wrong := wrong_address(model.base_url, "https://models.example/v1")):
        section.add(wrong, "base_url")
    if model.api_key_env and not _VARIABLE.fullmatch(model.api_key_env):
        expected = "expected the name of an environment variable such as `OPENAI_API_KEY`"
        section.add(f"{expected} (capitals, digits, `_`), never the key itself", "api_key_env")
    if wrong := _wrong_script(model, folder, is_given=section.has("script")):
        section.add(wrong, "script")
    return replace(model, model=model.model or name, script=folder / model.script if model.script else None)


def _wrong_script(model: Model, folder: Path, *, is_given: bool) -> str | None:
    script = model.script
    if script is None:
        is_missing = model.provider == "scripted" and not is_given
        return "`script` is missing: name the YAML file with the answers" if is_missing else None
    if model.provider != "scripted":
        return f"a model of the provider `{model.provider}` has no script; leave it out"
    if not lies_within(folder / script, folder):
        return f"expected a file next to organism.yaml or below; `{script}` leads elsewhere"
    if not (folder / script).is_file():
        return f"there is no file `{script}` next to organism.yaml"
    return None


def _circles(ways: Mapping[str, Sequence[str]]) -> Iterator[list[str]]:
    """Ways whose last step leads back to their first: one for each circle that has to be cut."""
    left = {name: list(others) for name, others in ways.items()}
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            way: list[str] = error.args[1][:0:-1]
            yield way
            left[way[-1]].remove(way[0])
        else:
            return
