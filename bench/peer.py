"""The server of models that every side asks: the one of the tests, a process of its own with the product's interpreter.

Standard library only: it runs in every environment.
"""

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

PYTHON = "BENCH_PYTHON"
"""The variable in which the harness says which interpreter has the product's packages."""
MODEL = "m"
TOOL_ANSWERED = '"tool_call_id"'
LAST_WORDS = "It is 42."
WORDS = "Hello, and welcome to the society. How can I help you?"

Told = Mapping[str, Any]

ONE_ANSWER: Sequence[Told] = ({"text": WORDS, "pieces": 8},)
"""Each call gets the same few words."""
ONE_TOOL: Sequence[Told] = (
    {"text": LAST_WORDS, "pieces": 3, "contains": TOOL_ANSWERED},
    {"calls": [{"name": "add", "arguments": {"left": 40, "right": 2}, "id": "call_1"}], "pieces": 2},
)
"""A run of two calls: the first one asks for a tool, the second one has what it gave."""


@contextmanager
def peer(answers: Sequence[Told]) -> Iterator[str]:
    """A peer that gives these answers for ever: the first one that fits a request. Gives its ``base_url``."""
    command = [os.environ.get(PYTHON, sys.executable), "-m", "tests.agents.peer"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None  # noqa: S101 - narrows the type
            place = process.stdout.readline().strip()
            _script(place, [{"body": None, "calls": [], **answer, "times": 0} for answer in answers])
            yield f"{place}/v1"
        finally:
            process.kill()


def _script(place: str, answers: Sequence[Told]) -> None:
    connection = http.client.HTTPConnection(place.removeprefix("http://"))
    connection.request("POST", "/_peer/script", json.dumps(answers))
    connection.getresponse().read()
    connection.close()
