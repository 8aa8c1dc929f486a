"""What is compiled is what pyproject.toml lists; run by the compiled copy itself, it is what is imported."""

from __future__ import annotations

import tomllib
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import organism
from tests.house.tree import ROOT

HOOK = ("tool", "hatch", "build", "targets", "wheel", "hooks", "custom")
IS_COMPILED = Path(organism.__file__).parent.parent != ROOT


@pytest.fixture(scope="module")
def modules() -> list[str]:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    for key in HOOK:
        table = table[key]
    found: list[str] = table["modules"]
    return found


def test_each_module_that_is_to_be_compiled_exists_and_is_named_once(modules: list[str]) -> None:
    assert all((ROOT / "organism" / f"{module}.py").is_file() for module in modules)
    assert len(set(modules)) == len(modules)


def test_what_meets_a_handlers_work_or_recurses_over_a_payload_is_not_compiled(modules: list[str]) -> None:
    assert not {"codec/json_form", "codec/payload", "pump/actor", "pump/outgoing"} & set(modules)


@pytest.mark.skipif(not IS_COMPILED, reason="these are the sources; scripts/test runs the compiled copy too")
def test_each_of_them_is_compiled(modules: list[str]) -> None:
    files = [import_module(f"organism.{module.replace('/', '.')}").__file__ or "" for module in modules]
    assert [file for file in files if not file.endswith(EXTENSION_SUFFIXES[0])] == []
