"""``organism bench`` measures, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

from organism.cli.bench import percentile
from tests.cli.command import names, organism


async def test_bench_measures_the_disk_that_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    ran = await organism("bench", "--seconds", "0.1", "--dir", tmp_path, "--json")
    assert ran.err == ""
    assert ran.json["fsync_ms"] > 0
    assert [load["in_flight"] for load in ran.json["loads"]] == [1, 64]
    assert all(load["messages_per_second"] > 0 and load["p50_ms"] <= load["p99_ms"] for load in ran.json["loads"])
    assert names(tmp_path) == []


async def test_bench_is_a_table_for_people(tmp_path: Path) -> None:
    ran = await organism("bench", "--seconds", "0.1", "--dir", tmp_path)
    assert ran.out.splitlines()[0].startswith("THREADS AT ONCE  MESSAGES/S")


async def test_a_disk_that_is_not_there_is_told(tmp_path: Path) -> None:
    ran = await organism("bench", "--dir", tmp_path / "none")
    assert (ran.code, ran.out) == (1, "")
    assert "--dir" in ran.err


def test_a_percentile_is_the_nearest_rank() -> None:
    values = [float(number) for number in range(101)]
    assert (percentile(values, 50), percentile(values, 99), percentile([3.0], 99)) == (50.0, 99.0, 3.0)
