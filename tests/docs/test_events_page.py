"""docs/events.md is made of the vocabulary."""

from __future__ import annotations

import re
from pathlib import Path

from organism.events.vocabulary import EVENTS
from scripts.write_events import text

PAGE = Path(__file__).parents[2] / "docs" / "events.md"


def test_the_page_in_the_repository_is_the_present_one() -> None:
    assert PAGE.read_text("utf-8") == text(), "run ./scripts/schemas and commit docs/events.md"


def test_every_event_has_a_section_of_its_own() -> None:
    sections = re.findall(r"^### `([a-z_]+)`$", text(), re.MULTILINE)
    assert sorted(sections) == sorted(EVENTS)
