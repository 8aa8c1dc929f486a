"""Collections of hostile inputs that others keep, where they are at hand: ``ORGANISM_CORPORA`` names their folder.

They are not part of the project. In the folder lie ``json-test-suite/`` (the ``test_parsing`` of nst/JSONTestSuite),
``naughty-strings.json`` (minimaxir/big-list-of-naughty-strings) and ``xml-attacks/`` (the ``xmltestdata`` of
tiran/defusedxml). What is hostile by our own making stands in ``hostile/`` and runs everywhere.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

import orjson
import pytest

from tests.server.hostile.client import fault_of, faults_of, lives
from tests.server.served import Served

CORPORA = Path(os.environ.get("ORGANISM_CORPORA", "nowhere"))
JSON = {"Content-Type": "application/json"}
XML = {"Content-Type": "application/xml"}
pytestmark = pytest.mark.skipif(not CORPORA.is_dir(), reason="ORGANISM_CORPORA names no folder")


def kept_in(folder: str) -> dict[str, bytes]:
    """The files of a folder by their names."""
    return {path.name: path.read_bytes() for path in sorted((CORPORA / folder).iterdir()) if path.is_file()}


async def refused(server: Served, name: str, address: str, content: bytes, kind: dict[str, str]) -> tuple[str, str]:
    """The code that was answered (or none), and what is wrong with the answer."""
    answer = await server.call("POST", address, content=content, headers=kind)
    if answer.status_code < 400:
        return "", ""
    fault = fault_of(answer.json(), answer.status_code)
    if answer.status_code >= 500 or fault:
        return "", f"{name}: {answer.status_code} {fault}"
    return str(answer.json()["error"]["code"]), ""


async def test_json_that_must_be_refused_is_and_json_that_must_be_taken_is(hello: Served) -> None:
    async def misjudged(name: str, body: bytes) -> str:
        code, fault = await refused(hello, name, "/inject", body, JSON)
        is_twice = "duplicated_key" in name  # RFC 8259 leaves it open; S14 refuses it
        expected = {"y": is_twice, "n": True}.get(name[0], code == "invalid_json")
        return fault or ("" if (code == "invalid_json") == expected else f"{name}: {code}")

    bodies = kept_in("json-test-suite")
    assert len(bodies) > 300
    assert await faults_of(misjudged(name, body) for name, body in bodies.items() if body) == []  # none is an empty one
    assert await lives(hello)


async def test_naughty_strings_do_no_harm_in_any_field(hello: Served) -> None:
    texts = orjson.loads(kept_in(".")["naughty-strings.json"])
    assert len(texts) > 500

    async def harmed(text: str) -> str:
        payload = orjson.dumps({"to": "greeter", "payload": {"name": text}})
        named = orjson.dumps({"to": text, "payload": {}, "thread_id": text})
        faults = [(await refused(hello, text, "/inject", body, JSON))[1] for body in (payload, named)]
        for address in ("/agents/{}", "/messages?q={}", "/messages?agent={}", "/threads?status={}"):
            answer = await hello.call("GET", address.format(quote(text, safe="")))
            if answer.status_code >= 400:
                faults.append(fault_of(answer.json(), answer.status_code))
        return "".join(faults)

    assert await faults_of(map(harmed, texts)) == []
    assert await lives(hello)


async def test_attacks_by_xml_are_refused_as_documents(hello: Served) -> None:
    documents = kept_in("xml-attacks")
    assert len(documents) > 10
    for name, document in documents.items():
        code, fault = await refused(hello, name, "/inject?to=greeter", document, XML)
        assert (name, code, fault) == (name, "invalid_payload", "")
    assert await lives(hello)
