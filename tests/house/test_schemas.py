"""schemas/ is what the payload classes of organism.yaml and of the handlers that ship say, to the byte."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.house.tree import ROOT


def _texts(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.glob("*.xsd")}


def test_the_committed_schemas_are_the_generated_ones(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "scripts/write_schemas.py", "--into", tmp_path], cwd=ROOT, check=True)
    kept = _texts(ROOT / "schemas")
    assert "envelope.xsd" in kept
    assert kept == _texts(tmp_path), "run ./scripts/schemas and commit schemas/"
