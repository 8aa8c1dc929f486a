"""The texts that every embedder of the bench is given. Standard library only: it runs in every environment."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "golden" / "retrieval"


def texts(name: str) -> list[str]:
    """The ``passages``, or the ``questions``."""
    return [json.loads(line)["text"] for line in (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines()]


def file_of(embedder: str) -> Path:
    """Where the vectors of all passages and then all questions lie, for ``bench.measures.retrieval``."""
    folder = ROOT / ".bench" / "vectors"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{embedder}.npy"
