"""``scripts/soak``: the long forms of the kill loop and of the power cuts."""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.campaign import Plan, campaign
from tests.log.power import survive
from tests.log.storm import Storm

CUTS_A_LOG = 4


def main() -> int:
    """Run, write the reports, and say by the exit status whether every law held."""
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__)
    parser.add_argument("--kills", type=int, default=0, help="how often the server is killed")
    parser.add_argument("--cuts", type=int, default=0, help="how often the power goes while a log is written")
    parser.add_argument("--seed", type=int, default=1, help="another seed: other instants")
    parser.add_argument("--report", type=Path, help="where to write NAME.json and NAME.md of the kills")
    parser.add_argument("--folder", type=Path, help="an empty folder that is kept; otherwise a temporary one")
    wanted = parser.parse_args()
    if not wanted.kills and not wanted.cuts:
        parser.error("say how many: --kills N, --cuts N or both")
    with tempfile.TemporaryDirectory() as temporary:
        folder = wanted.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if wanted.cuts:
            asyncio.run(_cut(wanted.cuts, wanted.seed, folder))
        return _kill(wanted, folder) if wanted.kills else 0


def _kill(wanted: argparse.Namespace, folder: Path) -> int:
    place = folder / "kills"
    place.mkdir()
    report = asyncio.run(campaign(Plan(wanted.kills, wanted.seed), place))
    if wanted.report is not None:
        wanted.report.parent.mkdir(parents=True, exist_ok=True)
        wanted.report.with_suffix(".json").write_bytes(report.json())
        wanted.report.with_suffix(".md").write_text(report.markdown())
    print(report.markdown())
    return 1 if report.findings else 0


async def _cut(cuts: int, seed: int, folder: Path) -> None:
    begun = time.monotonic()
    for number in range(0, cuts, CUTS_A_LOG):
        storm = Storm(f"storm-{number}")
        try:
            place = folder / f"log-{number}"
            await survive(storm, place, random.Random(seed + number), min(CUTS_A_LOG, cuts - number))
        finally:
            storm.unregister()
    print(f"{cuts} power cuts in {time.monotonic() - begun:.0f} s: nothing that was acknowledged is lost.")


if __name__ == "__main__":
    sys.exit(main())
