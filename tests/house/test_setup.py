"""`scripts/setup` says what is wrong and what to do. The interpreters here are doubles that speak set words."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.house.tree import ROOT

PIP_FAILS = (
    ("[Errno -3] Temporary failure in name resolution", "index cannot be reached"),
    ("Failed to establish a new connection: Network is unreachable", "index cannot be reached"),
    ("error: command 'gcc' failed: No such file or directory", "apt-get install build-essential python3-dev"),
    ("OSError: [Errno 28] No space left on device", "disk is full"),
    ("THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE", "differs from the locked one"),
    ("PermissionError: [Errno 13] Permission denied", "not writable"),
    ("something unheard of", "remove .venv first"),
)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What `scripts/setup` reads, in a folder of its own with a space in its name."""
    clone = tmp_path / "a clone"
    (clone / "scripts").mkdir(parents=True)
    for name in ("scripts/setup", "scripts/uv.txt", "pyproject.toml", "uv.lock"):
        shutil.copy(ROOT / name, clone / name)
    return clone


def _program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def _environment(clone: Path, python: str) -> None:
    """A .venv that takes itself for one made here; its interpreter does as ``python`` says."""
    folder = clone / ".venv/bin"
    _program(folder / "pip", f"exec '{folder}/python' -m pip")
    _program(folder / "python", python)


def _setup(clone: Path, purpose: str = "run", **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [clone / "scripts/setup", purpose],
        env={**os.environ, "CXX": "true", **environment},
        capture_output=True,
        check=False,
        text=True,
    )


def test_an_old_python_is_named_with_the_remedy(clone: Path) -> None:
    old = _program(clone / "old", '[ "$1" = --version ] && echo "Python 3.9.2" && exit\nexit 1')
    run = _setup(clone, PYTHON=str(old))
    assert run.returncode == 1
    assert "Python 3.11 or newer is needed; found: Python 3.9.2." in run.stderr
    assert "apt-get install python3 python3-venv" in run.stderr


def test_a_missing_python_is_called_none(clone: Path) -> None:
    run = _setup(clone, PYTHON=str(clone / "nowhere"))
    assert run.returncode == 1
    assert "found: none." in run.stderr


@pytest.mark.parametrize(("words", "remedy"), PIP_FAILS)
def test_a_failed_install_shows_its_words_and_the_remedy(clone: Path, words: str, remedy: str) -> None:
    _environment(clone, f'[ "$1" = -c ] && exit\necho "{words}"\nexit 1')
    run = _setup(clone)
    assert run.returncode == 1
    assert words in run.stderr
    assert remedy in run.stderr


def test_a_lock_that_lags_behind_is_named(clone: Path) -> None:
    _environment(clone, "exit 0")
    _program(clone / ".venv/bin/uv", 'echo "The lockfile needs to be updated, but --locked was provided."\nexit 1')
    run = _setup(clone)
    assert run.returncode == 1
    assert "uv lock" in run.stderr


def test_the_second_run_installs_nothing(clone: Path) -> None:
    _environment(clone, "exit 0")
    _program(clone / ".venv/bin/uv", "exit 0")
    _program(clone / ".venv/bin/organism", "exit 0")
    first, second = _setup(clone), _setup(clone)
    assert "Installing" in first.stderr
    assert (second.returncode, second.stderr) == (0, "")


def test_a_changed_lock_is_installed_again(clone: Path) -> None:
    _environment(clone, "exit 0")
    _program(clone / ".venv/bin/uv", "exit 0")
    _program(clone / ".venv/bin/organism", "exit 0")
    _setup(clone)
    (clone / "uv.lock").write_text("version = 2\n")
    assert "Installing what uv.lock names" in _setup(clone).stderr


def _installed(clone: Path, uv: str = "exit 0") -> None:
    _environment(clone, "exit 0")
    _program(clone / ".venv/bin/uv", uv)
    _program(clone / ".venv/bin/organism", "exit 0")


def test_the_graph_is_installed_where_a_compiler_is_there(clone: Path) -> None:
    _installed(clone, f'echo "$@" >> "{clone}/asked"')
    assert "hnswlib" in _setup(clone).stderr
    assert (clone / "asked").read_text().splitlines()[-1].endswith("--extra hnsw")


@pytest.mark.parametrize("compiler", ["false", "/nowhere/g++"])
def test_without_a_compiler_a_line_says_what_is_slower_and_what_to_install(clone: Path, compiler: str) -> None:
    _installed(clone)
    _setup(clone)
    (clone / ".venv/.installed-graph").unlink()
    run = _setup(clone, CXX=compiler)
    assert (run.returncode, len(run.stderr.splitlines())) == (0, 1)
    assert "10,000 documents" in run.stderr
    assert "apt-get install g++ python3-dev" in run.stderr


def test_a_graph_that_cannot_be_compiled_ends_no_start_and_is_tried_again(clone: Path) -> None:
    _installed(clone, 'case "$*" in *hnsw*) echo "error: command failed"; exit 1 ;; esac')
    for _ in range(2):
        run = _setup(clone)
        assert run.returncode == 0
        assert "hnswlib could not be installed (why: .venv/hnswlib.log)" in run.stderr
    assert "command failed" in (clone / ".venv/hnswlib.log").read_text()


def test_an_unknown_purpose_is_refused(clone: Path) -> None:
    run = _setup(clone, "everything")
    assert run.returncode == 1
    assert "run, tests, browser" in run.stderr
