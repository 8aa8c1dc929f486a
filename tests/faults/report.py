"""What a campaign found, as JSON for machines and Markdown for people."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass, field

import orjson


@dataclass(frozen=True, slots=True)
class Report:
    """``counts`` are numbers by name, ``findings`` the sentences of the oracle: none, if all is well."""

    kills: int
    seed: int
    seconds: float
    kills_with_open_work: int
    counts: dict[str, int]
    findings: list[str] = field(default_factory=list)

    @property
    def share_with_open_work(self) -> float:
        """The share of the kills at which something accepted was not handled yet."""
        return self.kills_with_open_work / max(1, self.kills)

    def json(self) -> bytes:
        """The report for machines."""
        said = {**asdict(self), "share_with_open_work": self.share_with_open_work, "machine": machine()}
        return orjson.dumps(said, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

    def markdown(self) -> str:
        """The report for people."""
        rows = "\n".join(f"| {name.replace('_', ' ')} | {count:,} |" for name, count in self.counts.items())
        found = "\n".join(f"- {finding}" for finding in self.findings) or "None: every law held."
        return f"""# Kill loop: {self.kills} kills

`scripts/soak --kills {self.kills} --seed {self.seed}` on {machine()}: {self.seconds:.0f} s, \
{self.seconds / max(1, self.kills):.2f} s a kill. At {self.kills_with_open_work} kills \
({self.share_with_open_work:.0%}) injections were acknowledged and not handled yet.

| counted | |
|---|---|
{rows}

## What broke

{found}
"""


def machine() -> str:
    """The machine, as far as it matters here."""
    return f"{platform.system()} {platform.release()}, {os.cpu_count()} cores, Python {platform.python_version()}"
