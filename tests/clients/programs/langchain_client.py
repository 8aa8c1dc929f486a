"""LangChain's ``ChatOpenAI`` and ``OpenAIEmbeddings``."""

from typing import Any

import openai
from checks import ORDER, SPENT_TOKEN, TOKEN, URL, asked, check, raised, refuse, tell
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel


class City(BaseModel):
    """A city."""

    name: str


@tool
def find(id: int) -> str:  # noqa: A002 - the argument's name
    """Find an order."""
    return f"{id} is paid"


GIVEN: Any = {"base_url": f"{URL}/v1", "api_key": TOKEN, "timeout": 30}
chat = ChatOpenAI(model="m", **GIVEN)


@check("invoke() gives text, finish and usage")
def batch() -> None:
    tell({"text": "Hello, you."})
    said = chat.invoke("Hello!")
    assert (said.content, said.response_metadata["finish_reason"]) == ("Hello, you.", "stop")
    assert said.usage_metadata["total_tokens"] == 10


@check("stream() gives the same, as does astream()")
async def stream() -> None:
    tell(*[{"text": "Hello, you."}] * 2)
    whole: Any = None
    for chunk in chat.stream("Hello!", stream_usage=True):
        whole = chunk if whole is None else whole + chunk
    assert (whole.content, whole.usage_metadata["total_tokens"]) == ("Hello, you.", 10)
    assert "".join([str(chunk.content) async for chunk in chat.astream("Hello!")]) == "Hello, you."


@check("a bound tool is called, and its result answered")
def tools() -> None:
    tell({"text": "I look.", "calls": [ORDER]}, {"text": "It is paid."})
    bound = chat.bind_tools([find], strict=True)
    talk: list[Any] = [HumanMessage("Is 7 paid?")]
    talk.append(said := bound.invoke(talk))
    (call,) = said.tool_calls
    talk.append(ToolMessage(find.invoke(call["args"]), tool_call_id=call["id"]))
    assert bound.invoke(talk).content == "It is paid."
    assert asked()[-1]["messages"][-1]["content"] == "7 is paid"
    assert asked()[-1]["tools"][0]["function"]["strict"] is True


@check("a bound tool is called in a stream")
def streamed_tools() -> None:
    tell({"calls": [ORDER]})
    calls = [call for chunk in chat.bind_tools([find]).stream("Is 7 paid?") for call in chunk.tool_calls]
    assert [(call["name"], call["args"]) for call in calls] == [("find", {"id": 7})]


@check("with_structured_output() gives an object, by a schema and by a function")
def structured() -> None:
    tell({"text": '{"name":"Kiel"}'}, {"calls": [{"name": "City", "arguments": {"name": "Kiel"}, "id": "call_a"}]})
    for method in ("json_schema", "function_calling"):
        assert chat.with_structured_output(City, method=method).invoke("Where?") == City(name="Kiel")


@check("texts are embedded")
def embeddings() -> None:
    embedder = OpenAIEmbeddings(model="builtin", check_embedding_ctx_length=False, **GIVEN)
    assert [len(each) for each in embedder.embed_documents(["a cat", "a dog"])] == [512, 512]


@check("a wrong token is an AuthenticationError")
def wrong_token() -> None:
    wrong = ChatOpenAI(model="m", **{**GIVEN, "api_key": "org_wrong"})
    assert raised(openai.AuthenticationError, lambda: wrong.invoke("Hello!")).status_code == 401


@check("a context that is too long is a BadRequestError with its code, and not repeated")
def too_long() -> None:
    tell(refuse(400, message="This model's maximum context length is 100000 tokens."))
    assert raised(openai.BadRequestError, lambda: chat.invoke("Hello!")).code == "context_length_exceeded"
    assert len(asked()) == 1


@check("a spent budget is a RateLimitError")
def spent() -> None:
    poor = ChatOpenAI(model="m", **{**GIVEN, "api_key": SPENT_TOKEN})
    assert raised(openai.RateLimitError, lambda: poor.invoke("Hello!")).code == "budget_exhausted"
