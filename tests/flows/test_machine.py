"""Random lives: injects, asks, pauses, kills, crashes and reloads in any order keep every law."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from organism.model import commands as c
from tests.flows.machine import AGENTS, Machine

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]
agents = st.sampled_from(AGENTS)


class Lives(RuleBasedStateMachine):
    """One life after another of one organism."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[str] = []
        self.machine: Machine | None = None

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        self.machine = Machine(seed)

    def _thread(self, pick: int) -> str | None:
        return self.threads[pick % len(self.threads)] if self.threads else None

    def _do(self, command: c.Command) -> None:
        assert self.machine is not None
        self.machine.control(command)

    @rule(agent=agents, pick=st.integers(-20, 20))
    def inject(self, agent: str, pick: int) -> None:
        assert self.machine is not None
        thread = self.machine.inject(agent, self._thread(pick) if pick > 0 else None)
        if thread is not None and thread not in self.threads:
            self.threads.append(thread)

    @rule(agent=agents)
    def pause_agent(self, agent: str) -> None:
        self._do(c.PauseAgent(agent=agent))

    @rule(agent=agents)
    def resume_agent(self, agent: str) -> None:
        self._do(c.ResumeAgent(agent=agent))

    @rule(pick=st.integers(0, 20), on=st.booleans())
    def pause_or_resume_thread(self, pick: int, *, on: bool) -> None:
        thread = self._thread(pick)
        if thread is not None:
            self._do(c.PauseThread(thread_id=thread) if on else c.ResumeThread(thread_id=thread))

    @rule(on=st.booleans())
    def pause_or_resume_the_organism(self, *, on: bool) -> None:
        self._do(c.PauseOrganism() if on else c.ResumeOrganism())

    @rule(pick=st.integers(0, 20))
    def kill(self, pick: int) -> None:
        thread = self._thread(pick)
        if thread is not None:
            self._do(c.KillThread(thread_id=thread))

    @rule()
    def crash(self) -> None:
        assert self.machine is not None
        self.machine.crash()

    @rule()
    def reload(self) -> None:
        assert self.machine is not None
        self.machine.reload()

    @rule()
    def open_gate(self) -> None:
        assert self.machine is not None
        self.machine.open_gate()

    def teardown(self) -> None:
        if self.machine is not None:
            self.machine.end()


TestLives = Lives.TestCase
TestLives.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
