"""Who commits: the writing thread, and while there is much to commit a process beside this one."""

from __future__ import annotations

from typing import Final

from organism.log.commits import Commit
from organism.log.committer import Committer, Done
from organism.log.crew import Crew

MANY_COMMITS: Final = 64
"""So many commits between two looks are worth a process."""


class Committers:
    """One commit at a time, by whoever can take it. ``committer`` is None where no process can help."""

    def __init__(self, crew: Crew, committer: Committer | None) -> None:
        self._crew = crew
        self._committer = committer
        self._may_hire = True
        self._commits = 0

    def write(self, commit: Commit, done: Done) -> None:
        """Begin to write it; ``done`` is called later, in the loop's thread."""
        self._commits += 1
        committer = self._committer
        if committer is not None and committer.takes(commit):
            committer.commit(commit, done)
        else:
            self._crew.writer.post(done, self._crew.commits.write, commit)

    def checkpoint(self, done: Done) -> None:
        """Begin to move the WAL into the database, before the next commit if that is written by the same hands."""
        committer = self._committer
        if committer is not None and committer.is_ready:
            committer.checkpoint(done)
        else:
            self._crew.writer.post(done, self._crew.commits.checkpoint)

    def look(self) -> None:
        """Hire, if there were many commits since the last look."""
        commits, self._commits = self._commits, 0
        if self._committer is not None and self._may_hire and commits >= MANY_COMMITS:
            self._committer.hire()

    async def alone(self) -> None:
        """Let the other process go, and have none until ``together``; return once it has closed its file."""
        self._may_hire = False
        if self._committer is not None:
            await self._committer.dismiss()

    def together(self) -> None:
        """There may be another process from now on."""
        self._may_hire = True
