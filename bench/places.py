"""Where the bench keeps what it makes: environments, results and logs, all below `.bench/`."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
SCRATCH = ROOT / ".bench"
RESULTS = SCRATCH / "results"
PAGE = ROOT / "docs" / "benchmarks.md"

EVENTS, QUICK_EVENTS = 1_000_000, 100_000
"""How many events the log of the restart rows holds, at least."""

TENANT = Path("tenants", "default")
LOG_FILE = TENANT / "log.sqlite"
"""The product's file below its data directory."""


def events_wanted(*, is_quick: bool) -> int:
    return QUICK_EVENTS if is_quick else EVENTS


def log_folder(*, is_quick: bool) -> Path:
    """The data directory that the restart rows start from."""
    return SCRATCH / f"log-{events_wanted(is_quick=is_quick)}"
