"""``openapi-python-client``: the client that it generates is type-checked, and asks the server."""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from checks import HELLO, TOKEN, URL, check, tell

PACKAGE = "organism_client"
sys.path.insert(0, str(Path.cwd()))  # where it is generated


def run(program: str, *arguments: str | Path) -> str:
    """What a program of this environment prints; it must end well."""
    command = [Path(sys.executable).parent / program, *arguments]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return done.stdout


def generated(path: str) -> Any:
    """The generated module that asks this path."""
    (found,) = (each for each in Path(PACKAGE, "api").rglob("*.py") if f'"url": "{path}"' in each.read_text())
    return importlib.import_module(".".join(found.with_suffix("").parts))


def client() -> Any:
    return importlib.import_module(PACKAGE).AuthenticatedClient(base_url=URL, token=TOKEN)


@check("a client is generated, and no schema left out")
def generate() -> None:
    named = Path("config.json")
    # Without its hooks: the newest ruff would rewrite `client.py` into code that mypy refuses.
    named.write_text(json.dumps({"package_name_override": PACKAGE, "post_hooks": []}))
    given = ("--meta", "none", "--config", named, "--url", f"{URL}/openapi.json", "--output-path", PACKAGE)
    said = run("openapi-python-client", "generate", *given)
    assert (lost := said.partition("Unable to process")[2]) == "", lost


@check("it passes mypy")
def typed() -> None:
    run("mypy", PACKAGE)


@check("it reads a list")
def listed() -> None:
    assert "m" in [each.id for each in generated("/v1/models").sync(client=client()).data]


@check("it asks a model")
def asked() -> None:
    tell({"text": "Hello, you."})
    module = generated("/v1/chat/completions")
    answer = module.sync(client=client(), body=module.CompletionBody.from_dict({"model": "m", "messages": HELLO}))
    assert answer.choices[0].message.content == "Hello, you."


@check("it executes a tool, whose own error is a 422")
def executed() -> None:
    module = generated("/v1/tools/execute")
    for what, status in (("tea", 200), ("gold", 422)):
        body = module.ExecuteBody.from_dict({"name": "shop", "arguments": {"what": what}})
        answer = module.sync_detailed(client=client(), body=body)
        assert answer.status_code == status, answer
    assert json.loads(answer.content)["error"]["code"] == "tool_error", answer
