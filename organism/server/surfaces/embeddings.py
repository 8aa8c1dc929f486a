"""Vectors of texts, in the form of OpenAI's API."""

from __future__ import annotations

import base64
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, Strict
from pydantic_core import PydanticCustomError
from starlette.responses import Response
from typing_extensions import TypedDict  # pydantic wants this one below Python 3.12

from organism import errors
from organism.errors import InvalidField, ModelNotInAllowlist
from organism.model import words
from organism.server.http.bodies import Name, body
from organism.server.http.call import CALLER, USER, Call, JsonResponse, Route, Tag, caller_fields, tagged, unused_header
from organism.server.http.contract import EMBEDDING_REFUSED, gives
from organism.server.http.rights import Right
from organism.server.turns.answer import embedded

MOST_INPUTS: Final = 256
MOST_INPUT_BYTES: Final = 8192
"""Of UTF-8."""
Input = Annotated[str, Field(min_length=1, max_length=MOST_INPUT_BYTES)]
NO_TOKENS: Final = (
    "texts are taken here, no token ids, whose meaning depends on the model: send the text itself; with LangChain's "
    "OpenAIEmbeddings set check_embedding_ctx_length=False"
)


def _texts(given: Any) -> Any:
    """The input, unless it is of token ids, as some clients send instead of texts."""
    first = given[0] if isinstance(given, list) and given else None
    inner = first[0] if isinstance(first, list) and first else first
    if isinstance(inner, int):
        raise PydanticCustomError("token_ids", NO_TOKENS)
    return given


@body
class EmbeddingsBody:
    """``POST /v1/embeddings``: ``dimensions`` may only say what the model has."""

    model: Annotated[Name, Field(examples=["builtin"])]
    input: Annotated[
        Input | Annotated[list[Input], Field(min_length=1, max_length=MOST_INPUTS, fail_fast=True)],
        Field(examples=[["Hello!"]]),
        BeforeValidator(_texts),
    ]
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Annotated[int, Strict(), Field(ge=1)] | None = None
    user: Annotated[str, Field(max_length=1000)] | None = None


class EmbeddingShown(TypedDict):
    """The vector of one input."""

    object: Literal["embedding"]
    index: words.Count
    embedding: Annotated[
        list[float] | str, Field(description="Numbers, or as `base64` their bytes: float32, little-endian.")
    ]


class EmbeddingUsage(TypedDict):
    """Tokens, as the provider counted them; those of the built-in model are estimated."""

    prompt_tokens: words.Count
    total_tokens: words.Count


class EmbeddingList(TypedDict):
    """The vectors, in the order of the inputs."""

    object: Literal["list"]
    data: list[EmbeddingShown]
    model: str
    usage: EmbeddingUsage


async def embed(call: Call) -> Response:
    """A vector for each input."""
    asked = await call.body_as(EmbeddingsBody)
    caller_fields(call)
    embeddings, allowed = call.process.organism.embeddings, call.who.models
    dim = embeddings.dim(asked.model)
    if allowed is not None and asked.model not in allowed and not embeddings.is_builtin(asked.model):
        raise ModelNotInAllowlist(f"This token may not use {asked.model[:80]!r}.", param="/model")
    if asked.dimensions not in {None, dim}:
        raise InvalidField(f"{asked.model} gives {dim} numbers; leave `dimensions` out.", param="/dimensions")
    texts = [asked.input] if isinstance(asked.input, str) else asked.input
    for at, text in enumerate(texts):
        if (size := len(text.encode())) > MOST_INPUT_BYTES:
            place = "/input" if isinstance(asked.input, str) else f"/input/{at}"
            raise InvalidField(f"An input has at most {MOST_INPUT_BYTES} bytes; {size} came.", param=place)
    found = await embedded(call, asked.model, texts)
    is_text = asked.encoding_format == "base64"
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": base64.b64encode(vector.astype("<f4").tobytes()).decode() if is_text else vector.tolist(),
        }
        for index, vector in enumerate(found.vectors)
    ]
    usage = {"prompt_tokens": found.tokens, "total_tokens": found.tokens}
    unused = () if asked.user is None else ("user",)
    whole = {"object": "list", "data": data, "model": asked.model, "usage": usage}
    return JsonResponse(whole, headers=unused_header(unused))


ROUTES: Final = tagged(
    Tag("embeddings", __doc__),
    Route(
        "POST /embeddings",
        embed,
        right=Right("agents:chat"),
        gives=gives(EmbeddingList),
        takes=EmbeddingsBody,
        headers=(*CALLER, USER),
        refuses=(errors.ModelNotInAllowlist, *EMBEDDING_REFUSED, errors.UpstreamTimeout),
    ),
)
"""Mounted below /v1. They only ask, so they take no idempotency key."""
