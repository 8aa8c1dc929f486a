"""What the doctor knows, fact by fact."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from organism.cli import checks
from organism.cli.checks import FREE_BYTES, Entry, Finding
from organism.log.driver import SQLITE_VERSION

NOW_US = 1_800_000_000_000_000


def told(finding: Finding) -> str:
    """All that a finding says is wrong, and each with a remedy."""
    assert all(fault.remedy for fault in finding.faults)
    return " ".join(fault.what for fault in finding.faults)


def test_an_old_python_is_a_fault() -> None:
    assert "3.10.9 is too old" in told(checks.python((3, 10, 9)))
    assert told(checks.python((3, 11, 0))) == told(checks.python((4, 0, 0))) == ""


def test_the_floor_is_what_the_package_asks_for_or_what_is_safe() -> None:
    asked = ["lxml>=6.0", "starlette>=1.10", "rich>=15", 'tomli>=2; python_version < "3.11"', "odd"]
    assert checks.floors(asked) == {"lxml": "6.1.0", "rich": "15", "starlette": "1.10"}


def test_each_dependency_below_its_floor_or_missing_is_a_fault() -> None:
    least = {"lxml": "6.1.0", "rich": "15", "orjson": "3.13"}
    said = told(checks.dependencies(least, {"lxml": "6.0.9", "rich": "15.0.0", "orjson": None}))
    assert "lxml 6.0.9 is installed." in said
    assert "orjson is not installed." in said
    assert "rich" not in said


def test_what_this_package_is_installed_with_is_above_every_floor() -> None:
    least = checks.floors(metadata.requires("organism") or ())
    assert {"lxml", "starlette", "pysqlite3", "orjson"} <= set(least)
    assert told(checks.dependencies(least, {name: metadata.version(name) for name in least})) == ""
    assert told(checks.sqlite(SQLITE_VERSION)) == ""


@pytest.mark.parametrize(
    ("version", "is_old"), [("3.40.1", True), ("3.51.2", True), ("3.51.3", False), ("3.52", False)]
)
def test_a_sqlite_that_can_damage_a_log_is_a_fault(version: str, is_old: bool) -> None:  # noqa: FBT001 - a table's cell
    assert bool(checks.sqlite(version).faults) == is_old


def test_little_room_is_a_fault() -> None:
    assert told(checks.disk(FREE_BYTES, Path("data"))) == ""
    assert "12 MB are free" in told(checks.disk(12_000_000, Path("data")))


def test_what_others_can_read_or_own_is_a_fault_with_the_very_command() -> None:
    entries = [Entry(Path("data"), 0o040755, 7), Entry(Path("data/token"), 0o100640, 7), Entry(Path("ok"), 0o100600, 7)]
    found = checks.permissions(entries, 7)
    assert [fault.remedy for fault in found.faults] == ["chmod 700 data", "chmod 600 data/token"]
    assert told(checks.permissions(entries[2:], 8)) == "ok belongs to user 7, not to you (8)."
    assert told(checks.permissions(entries[2:], 0)) == ""


def test_a_clock_that_runs_forward_is_well() -> None:
    assert told(checks.clock([NOW_US, NOW_US, NOW_US + 1], NOW_US)) == ""
    assert told(checks.clock([NOW_US], NOW_US + 500_000)) == "", "an event of a moment ago may be a little ahead"


def test_a_clock_that_goes_back_was_never_set_or_is_behind_the_log_is_a_fault() -> None:
    assert "went back by 5 µs" in told(checks.clock([NOW_US, NOW_US - 5, NOW_US], 0))
    assert "never set" in told(checks.clock([1_000_000], 0))
    assert "3,600 s behind" in told(checks.clock([NOW_US], NOW_US + 3_600_000_000))
