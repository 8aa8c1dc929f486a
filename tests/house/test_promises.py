"""docs/guarantees.md and docs/security.md name tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"([a-z0-9_/]+/test_[a-z_0-9]+\.py)(?:::(test_\w+))?")


@pytest.mark.parametrize(("page", "least"), [("guarantees.md", 30), ("security.md", 40)])
def test_each_test_that_a_promise_names_exists(page: str, least: int) -> None:
    named = {(file.removeprefix("tests/"), name) for file, name in NAMED.findall((ROOT / "docs" / page).read_text())}
    missing = [f"{file}::{name}" for file, name in sorted(named) if not _is_there(ROOT / "tests" / file, name)]
    assert len(named) > least
    assert missing == []


def _is_there(file: Path, name: str) -> bool:
    return file.is_file() and f"def {name}" in file.read_text()
