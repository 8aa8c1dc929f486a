"""The wheel's build packs the page."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PackPage(BuildHookInterface):  # type: ignore[misc]  # hatchling is there only while a wheel is built
    """Runs before the wheel's files are gathered."""

    def initialize(self, version: str, _build_data: dict[str, Any]) -> None:
        """Pack web/dist; an installation that runs the clone leaves that to scripts/setup."""
        if version != "editable":
            root = Path(self.root)
            runpy.run_path(str(root / "scripts" / "pack_page.py"))["pack"](root / "web" / "dist")
