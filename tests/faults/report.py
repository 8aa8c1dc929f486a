"""What a campaign found, as JSON for machines and Markdown for people."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Final

import orjson

METHOD: Final = """\
A real server with its disk and sockets is killed by SIGKILL at random instants, while it starts or under load;
one life in ten is the command as a user starts it, the others are forked from a process that has imported it. The load
are chains, fans, asks that overlap and come back, effects that may be repeated and effects that may not, failures, keys
sent again, an operator who pauses agents and kills threads, messages that kill the process, and three followers who
resume by position. At the end everything is let come to its rest, all that is disposable is deleted and made anew, and
an oracle outside holds the answers, the effects' own file, the followers' frames and the audit chain against the log
(`tests/faults/oracle.py` has the laws). A kill of the process loses nothing that the kernel was given: power cuts are
another harness.
"""


def this_machine() -> str:
    """The machine, as far as it matters here."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


@dataclass(frozen=True, slots=True)
class Report:
    """``counts`` are numbers by name, ``findings`` the sentences of the oracle: none, if all is well."""

    kills: int
    seed: int
    seconds: float
    kills_with_open_work: int
    counts: dict[str, int]
    findings: list[str] = field(default_factory=list)
    day: str = field(default_factory=lambda: f"{datetime.now(UTC):%Y-%m-%d}")
    machine: str = field(default_factory=this_machine)

    @property
    def share_with_open_work(self) -> float:
        """The share of the kills at which something accepted was not handled yet."""
        return self.kills_with_open_work / max(1, self.kills)

    def json(self) -> bytes:
        """The report for machines."""
        said = {**asdict(self), "share_with_open_work": self.share_with_open_work}
        return orjson.dumps(said, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

    def markdown(self) -> str:
        """The report for people."""
        rows = "\n".join(f"| {name.replace('_', ' ')} | {count:,} |" for name, count in self.counts.items())
        found = "\n".join(f"- {finding}" for finding in self.findings) or "None: every law held."
        return f"""# Kill loop: {self.kills} kills

`scripts/soak --kills {self.kills} --seed {self.seed}`, {self.day}, {self.machine}: {self.seconds:.0f} s, \
{self.seconds / max(1, self.kills):.2f} s a kill. At {self.kills_with_open_work} of {self.kills} kills \
({self.share_with_open_work:.1%}) injections were acknowledged and not handled yet.

{METHOD}
| counted | |
|---|---|
{rows}

## What broke

{found}
"""
