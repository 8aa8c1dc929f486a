"""The machine in general terms: what a reader needs to compare the table with one of their own."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pysqlite3

KIB_A_GIB = 1024 * 1024


def describe() -> str:
    """One line: processor, cores, memory, system, Python, SQLite."""
    parts = (
        _field(Path("/proc/cpuinfo"), "model name", ":") or platform.processor() or platform.machine(),
        f"{os.cpu_count()} cores",
        f"{_memory_gib()} GiB",
        f"{_field(Path('/etc/os-release'), 'PRETTY_NAME', '=') or platform.system()}, kernel {platform.release()}",
        f"Python {platform.python_version()}",
        f"SQLite {pysqlite3.sqlite_version}",
    )
    return " · ".join(parts)


def _memory_gib() -> int:
    kib = _field(Path("/proc/meminfo"), "MemTotal", ":").removesuffix(" kB")
    return round(int(kib) / KIB_A_GIB) if kib else 0


def _field(path: Path, name: str, separator: str) -> str:
    """The value of the first line ``name<separator>value``; empty where the system has no such file or line."""
    if not path.exists():
        return ""
    for line in path.read_text("utf-8").splitlines():
        key, _, value = line.partition(separator)
        if key.strip() == name:
            return value.strip().strip('"')
    return ""
