"""``python -m tests.faults --kills N``: the long form of the kill loop (``scripts/soak``)."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.faults.campaign import Plan, campaign


def main() -> int:
    """Run, write the reports, and say by the exit status whether every law held."""
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, help="how often the server is killed")
    parser.add_argument("--seed", type=int, default=1, help="another seed kills at other instants")
    parser.add_argument("--report", type=Path, help="where to write NAME.json and NAME.md")
    parser.add_argument("--folder", type=Path, help="an empty folder that is kept; otherwise a temporary one")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = wanted.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        report = asyncio.run(campaign(Plan(wanted.kills, wanted.seed), folder))
    if wanted.report is not None:
        wanted.report.parent.mkdir(parents=True, exist_ok=True)
        wanted.report.with_suffix(".json").write_bytes(report.json())
        wanted.report.with_suffix(".md").write_text(report.markdown())
    print(report.markdown())
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
