"""What is compiled is what pyproject.toml lists; run by the compiled copy itself, it is what is imported."""

from __future__ import annotations

import ast
import tomllib
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import organism
from tests.house.tree import ROOT

HOOK = ("tool", "hatch", "build", "targets", "wheel", "hooks", "custom")
BOUNDED = {("codec/envelope", "_inside"), ("codec/validate", "seal")}
"""The first walks the shapes of our own classes, the second calls itself once."""
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


def test_what_meets_a_handlers_work_or_walks_a_payload_is_not_compiled(modules: list[str]) -> None:
    assert not {"pump/actor", "pump/outgoing", "codec/json_form", "codec/payload"} & set(modules)


def test_nothing_that_is_compiled_calls_itself(modules: list[str]) -> None:
    """Compiled code has no recursion limit: what comes from outside could end the process."""
    found = {(module, name) for module in modules for name in _recursive(ROOT / "organism" / f"{module}.py")}
    assert found == BOUNDED


def _recursive(path: Path) -> list[str]:
    """The functions that call themselves, by name or on ``self``, nested ones too."""
    walk = ast.walk(ast.parse(path.read_text("utf-8")))
    functions = [node for node in walk if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [function.name for function in functions if function.name in _called(function)]


def _called(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    calls = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
    plain = {call.id for call in calls if isinstance(call, ast.Name)}
    return plain | {call.attr for call in calls if isinstance(call, ast.Attribute) and _is_self(call.value)}


def _is_self(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id == "self"


@pytest.mark.skipif(not IS_COMPILED, reason="these are the sources; scripts/test runs the compiled copy too")
def test_each_of_them_is_compiled(modules: list[str]) -> None:
    files = [import_module(f"organism.{module.replace('/', '.')}").__file__ or "" for module in modules]
    assert [file for file in files if not file.endswith(EXTENSION_SUFFIXES[0])] == []
