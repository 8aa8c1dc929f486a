"""Embeddings, asked by OpenAI's own client: of the built-in model, and of a server of the tests' own."""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import openai
import orjson
import pytest
import pytest_asyncio

from organism.model.ids import DEFAULT_TENANT
from tests.agents.peer.answers import Answer
from tests.agents.peer.steering import Peer
from tests.flows.world import World
from tests.server.served import TOKEN, Served, served
from tests.server.tenanted import token, write_tokens

PATH = "//v1/embeddings"
NOMIC = {"provider": "openai", "model": "nomic-embed-text", "dim": 2, "batch": 2, "api_key_env": "NOMIC_KEY"}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_builtin(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    """An organism that names no embeddings."""
    folder = tmp_path_factory.mktemp("builtin")
    made = World(folder, "", {})
    write_tokens(folder, {DEFAULT_TENANT: {"m-only": {"scopes": ["agents:chat"], "models": ["m"]}, "reads": ["read"]}})
    async with served(made.config) as server:
        yield server


@pytest.fixture
def priced(tmp_path: Path, peer: Peer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The configuration of an organism whose model is the peer's, and costs something."""
    monkeypatch.setenv("NOMIC_KEY", "key-of-nomic")
    retry = {"attempts": 2, "base_delay_s": 0.01, "max_delay_s": 0.02}
    nomic = {**NOMIC, "base_url": peer.url, "input_usd_per_million": 2000}
    made = World(tmp_path, "", {}, embeddings={"nomic": nomic}, retry=retry)
    write_tokens(tmp_path, {DEFAULT_TENANT: {"m-only": {"scopes": ["agents:chat"], "models": ["m"]}}})
    return made.config


@pytest.fixture
async def remote(priced: Path) -> AsyncIterator[Served]:
    """An organism whose model is the peer's."""
    async with served(priced) as server:
        yield server


def client_of(server: Served, key: str = TOKEN) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key=key, base_url=f"{server.url}/v1", max_retries=0, http_client=server.client)


def vectors(*given: list[float], **more: Any) -> Answer:
    """An answer of the embeddings API, the last vector first."""
    data = [{"object": "embedding", "index": at, "embedding": vector} for at, vector in enumerate(given)][::-1]
    return Answer(body=orjson.dumps({"object": "list", "data": data, "usage": {"prompt_tokens": 5}, **more}))


async def post(server: Served, **body: Any) -> httpx2.Response:
    return await server.call("POST", PATH, json=body)


def cosine(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True)) / math.hypot(*a) / math.hypot(*b)


async def test_the_built_in_model_finds_what_means_the_same_without_network(shared_builtin: Served) -> None:
    texts = [
        "Wie heißt die Hauptstadt von Deutschland?",
        "The capital of Germany is Berlin.",
        "Ein Rezept für Apfelkuchen mit Zimt.",
    ]
    answer = await client_of(shared_builtin).embeddings.create(model="builtin", input=texts)
    question, capital, cake = (item.embedding for item in answer.data)
    assert len(question) == 512
    assert cosine(question, capital) > cosine(question, cake) + 0.2
    assert answer.usage.prompt_tokens == answer.usage.total_tokens > 0


async def test_numbers_and_their_bytes_are_the_same(shared_builtin: Served) -> None:
    plain = (await post(shared_builtin, model="builtin", input="Hello!")).json()
    packed = (await post(shared_builtin, model="builtin", input=["Hello!"], encoding_format="base64")).json()
    (numbers,), (text,) = ([item["embedding"] for item in each["data"]] for each in (plain, packed))
    assert list(struct.unpack("<512f", base64.b64decode(text))) == pytest.approx(numbers)
    assert (plain["object"], plain["model"], plain["data"][0]["index"]) == ("list", "builtin", 0)


async def test_two_hundred_and_fifty_six_inputs_are_taken_at_once(shared_builtin: Served) -> None:
    answer = await post(shared_builtin, model="builtin", input=[f"Number {at}" for at in range(256)])
    assert [item["index"] for item in answer.json()["data"]] == list(range(256))
    assert (await post(shared_builtin, model="builtin", input=["x"] * 257)).status_code == 400


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "no model of that name": ({"model": "nope"}, "invalid_field", "/model"),
    "no input": ({"input": []}, "invalid_field", "/input"),
    "an empty input": ({"input": ["x", ""]}, "invalid_field", "/input/1"),
    "a number among texts": ({"input": ["x", 1]}, "invalid_field", "/input/1"),
    "a long input": ({"input": ["x", "ä" * 4097]}, "invalid_field", "/input/1"),
    "other dimensions": ({"dimensions": 64}, "invalid_field", "/dimensions"),
    "another form": ({"encoding_format": "hex"}, "invalid_field", "/encoding_format"),
    "an unknown parameter": ({"inputs": []}, "unknown_field", "/inputs"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_does_not_fit_is_a_400_that_names_it(shared_builtin: Served, case: str) -> None:
    body, code, param = REFUSED[case]
    answer = await post(shared_builtin, **{"model": "builtin", "input": "Hello!", **body})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, code)
    assert error["param"] == param


@pytest.mark.parametrize("tokens", [[1, 2], [[1, 2], [3]]], ids=["of one text", "of several"])
async def test_token_ids_are_refused_with_what_to_do_instead(shared_builtin: Served, tokens: Any) -> None:
    answer = await post(shared_builtin, model="builtin", input=tokens)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "invalid_field", "/input")
    assert "check_embedding_ctx_length=False" in error["message"]


async def test_null_is_as_if_it_were_not_there_and_a_user_is_taken_without_effect(shared_builtin: Served) -> None:
    nothing = dict.fromkeys(("encoding_format", "dimensions", "user"))
    answer = await post(shared_builtin, model="builtin", input="Hello!", **nothing)
    assert (answer.status_code, "spass-parameters-unused" in answer.headers) == (200, False)
    answer = await post(shared_builtin, model="builtin", input="Hello!", user="dan")
    assert (answer.status_code, answer.headers["spass-parameters-unused"]) == (200, "user")


async def test_the_models_own_dimensions_may_be_named(shared_builtin: Served) -> None:
    assert (await post(shared_builtin, model="builtin", input="Hello!", dimensions=512)).status_code == 200


async def test_a_token_that_may_not_chat_embeds_nothing(shared_builtin: Served) -> None:
    with pytest.raises(openai.PermissionDeniedError):
        await client_of(shared_builtin, token(DEFAULT_TENANT, "reads")).embeddings.create(model="builtin", input="x")


async def test_a_servers_model_is_asked_in_batches_with_its_key(remote: Served, peer: Peer) -> None:
    await peer.script(vectors([1, 2], [3, 4]), vectors([5, 6]))
    answer = await client_of(remote).embeddings.create(model="nomic", input=["a", "b", "c"])
    assert [item.embedding for item in answer.data] == [[1, 2], [3, 4], [5, 6]]
    assert answer.usage.prompt_tokens == 10
    asked = await peer.requests()
    assert [each["path"] for each in asked] == ["/v1/embeddings"] * 2
    assert [each["body"]["input"] for each in asked] == [["a", "b"], ["c"]]
    assert asked[0]["body"]["model"] == "nomic-embed-text"
    assert asked[0]["headers"]["authorization"] == "Bearer key-of-nomic"


@pytest.mark.parametrize("count", [-1_000_000, 10**18, 1e300, 1.5, True, "12", [], None])
async def test_a_count_of_tokens_that_is_none_gives_no_credit(remote: Served, peer: Peer, count: Any) -> None:
    await peer.script(vectors([1, 2], usage={"prompt_tokens": count}))
    answer = await post(remote, model="nomic", input="a few words")
    assert answer.status_code == 200
    assert 0 < answer.json()["usage"]["prompt_tokens"] < 100


async def test_it_is_asked_again_where_that_may_help(remote: Served, peer: Peer) -> None:
    await peer.script(Answer(status=503, error="Busy."), vectors([1, 2]))
    assert (await post(remote, model="nomic", input="a")).status_code == 200
    assert len(await peer.requests()) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        Answer(status=500, error="Out of order.", times=0),
        vectors([1, 2, 3]),
        vectors([1, 2], [3, 4]),
        Answer(body=b'{"data": [{"index": 0}]}'),
        Answer(body=b"[]"),
    ],
    ids=["failing", "another dimension", "another count", "no vector", "no object"],
)
async def test_an_answer_that_does_not_fit_is_a_502(remote: Served, peer: Peer, wrong: Answer) -> None:
    await peer.script(wrong)
    answer = await post(remote, model="nomic", input="a")
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_error")


async def test_what_the_models_server_refuses_is_reported_as_what_it_is(remote: Served, peer: Peer) -> None:
    refused = {
        400: ("No.", (400, "upstream_refused", None)),
        413: ("the input length exceeds the context length", (400, "context_length_exceeded", None)),
        429: ("Slow down.", (429, "rate_limit_exceeded", "3600")),
    }
    for status, (error, expected) in refused.items():
        await peer.script(Answer(status=status, error=error, headers={"retry-after": "3600"}))
        answer = await post(remote, model="nomic", input="a")
        assert (answer.status_code, answer.json()["error"]["code"], answer.headers.get("retry-after")) == expected


async def test_a_token_uses_the_models_that_it_may_and_the_built_in_one(remote: Served) -> None:
    narrow = client_of(remote, token(DEFAULT_TENANT, "m-only"))
    with pytest.raises(openai.BadRequestError, match="may not use"):
        await narrow.embeddings.create(model="nomic", input="a")
    assert len((await narrow.embeddings.create(model="builtin", input="a")).data) == 1


async def test_each_call_is_billed_and_audited_one_that_failed_too(priced: Path, peer: Peer) -> None:
    await peer.script(vectors([1.0, 0.0]), Answer(status=400, error="No."))
    async with served(priced, priced.parent / "data") as server:
        answer = await post(server, model="nomic", input="a")
        cost = [answer.headers[f"spass-cost-{name}"] for name in ("usd", "source", "sub-calls")]
        assert cost == ["0.01", "price", "1"]
        refused = await post(server, model="nomic", input="b")
        assert (refused.status_code, refused.headers["spass-cost-usd"]) == (400, "0.00")
        total = (await server.get("/usage"))["total"]
        assert (total["calls"], total["failed_calls"], total["tokens"], total["cost_usd"]) == (2, 1, 5, "0.01")
        billed = (await server.call("GET", "//v1/billing/usage?granularity=day")).json()["total"]
        assert (billed["calls"], billed["cost_usd"]) == (2, "0.01")
    lines = [orjson.loads(line) for line in next(priced.parent.glob("data/audit/*")).read_bytes().splitlines()]
    first, second = (line["fields"] for line in lines if line["event"] == "model_call")
    assert (first["model"], first["texts"], first["cost_usd"], "error" in first) == ("nomic", 1, "0.01", False)
    assert (first["parent_request_id"], second["error"]) == (answer.headers["spass-request-id"], "upstream_refused")


async def test_no_live_secret_is_sent(remote: Served, peer: Peer) -> None:
    await peer.script(vectors([1, 2]))
    await post(remote, model="nomic", input=f"My token is {TOKEN}.")
    assert TOKEN not in orjson.dumps((await peer.requests())[0]["body"]).decode()


async def test_a_reload_serves_other_models(remote: Served) -> None:
    config = remote.organism.config_path
    settings = orjson.loads(config.read_bytes())
    config.write_bytes(orjson.dumps({**settings, "embeddings": {"own": {"provider": "builtin", "default": True}}}))
    assert (await remote.call("POST", "/organism/reload")).status_code == 200
    assert (await post(remote, model="own", input="a")).status_code == 200
    assert (await post(remote, model="nomic", input="a")).status_code == 400
    assert remote.organism.embeddings.default == "own"
