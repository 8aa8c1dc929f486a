"""LiteLLM, the library."""

import os
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it fetches its prices from the network

import litellm
from checks import HELLO, ORDER, SPENT_TOKEN, TOKEN, URL, asked, check, raised, refuse, tell
from pydantic import BaseModel


class City(BaseModel):
    name: str


litellm.suppress_debug_info = True
GIVEN: Any = {"api_base": f"{URL}/v1", "api_key": TOKEN, "timeout": 30}
FIND: Any = {"type": "function", "function": {"name": "find", "parameters": {"type": "object", "properties": {}}}}


def ask(**more: Any) -> Any:
    return litellm.completion(**{"model": "openai/m", "messages": HELLO, **GIVEN, **more})


@check("completion() gives text, finish and usage")
def batch() -> None:
    tell({"text": "Hello, you."})
    answer = ask()
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("Hello, you.", "stop")
    assert answer.usage.total_tokens == 10


@check("a stream gives the same, at once and by acompletion()")
async def stream() -> None:
    tell(*[{"text": "Hello, you."}] * 2)
    chunks = list(ask(stream=True, stream_options={"include_usage": True}))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Hello, you."
    assert litellm.stream_chunk_builder(chunks).usage.total_tokens == 10
    chunks = [each async for each in await litellm.acompletion(model="openai/m", messages=HELLO, stream=True, **GIVEN)]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Hello, you."


@check("a function is called, and its whole message taken back")
def tools() -> None:
    tell({"calls": [ORDER]}, {"text": "It is paid."})
    message = ask(tools=[FIND]).choices[0].message
    (call,) = message.tool_calls
    assert (call.function.name, call.function.arguments) == ("find", '{"id":7}')
    result = {"role": "tool", "tool_call_id": call.id, "content": "paid"}
    answer = ask(messages=[*HELLO, message.model_dump(), result], tools=[FIND])
    assert answer.choices[0].message.content == "It is paid."


@check("a function is called in a stream")
def streamed_tools() -> None:
    tell({"calls": [ORDER]})
    (choice,) = litellm.stream_chunk_builder(list(ask(tools=[FIND], stream=True))).choices
    assert (choice.finish_reason, choice.message.tool_calls[0].function.name) == ("tool_calls", "find")


@check("the form of the answer is kept")
def structured() -> None:
    tell({"text": '{"name":"Kiel"}'})
    text = ask(response_format=City).choices[0].message.content
    assert City.model_validate_json(text) == City(name="Kiel")
    assert asked()[0]["response_format"]["type"] == "json_schema"


@check("what the model thought is given")
def reasoning() -> None:
    tell({"thought": "I greet.", "text": "Hello."})
    assert ask().choices[0].message.reasoning_content == "I greet."


@check("texts are embedded")
def embeddings() -> None:
    made = litellm.embedding(model="openai/builtin", input=["a cat", "a dog"], **GIVEN)
    assert [len(each["embedding"]) for each in made.data] == [512, 512]


@check("each refusal is the error that LiteLLM has for it, and a context that is too long is not repeated")
def errors() -> None:
    tell(refuse(400, message="This model's maximum context length is 100000 tokens."))
    raised(litellm.ContextWindowExceededError, lambda: ask(max_retries=2))
    assert len(asked()) == 1, asked()
    raised(litellm.AuthenticationError, lambda: ask(api_key="org_wrong"))
    raised(litellm.RateLimitError, lambda: ask(api_key=SPENT_TOKEN, max_retries=0))
