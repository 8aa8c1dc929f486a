"""Pydantic AI with its model for chat completions."""

from typing import Any

from checks import ORDER, TOKEN, URL, asked, check, raised, refuse, tell
from pydantic import BaseModel
from pydantic_ai import Agent, ModelHTTPError, NativeOutput
from pydantic_ai.embeddings import Embedder
from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


class City(BaseModel):
    name: str


def find(id: int) -> str:  # noqa: A002 - the argument's name
    """Find an order."""
    return f"{id} is paid"


def provider(key: str = TOKEN) -> OpenAIProvider:
    return OpenAIProvider(base_url=f"{URL}/v1", api_key=key)


def agent(**more: Any) -> Agent[None, Any]:
    return Agent(OpenAIChatModel("m", provider=provider()), **more)


@check("an agent answers, and tells its usage")
async def batch() -> None:
    tell({"text": "Hello, you."})
    ran = await agent(instructions="Be brief.").run("Hello!")
    assert ran.output == "Hello, you."
    assert ran.usage.total_tokens == 10


@check("its stream says the same")
async def stream() -> None:
    tell({"text": "Hello, you."})
    async with agent().run_stream("Hello!") as ran:
        assert [text async for text in ran.stream_text()][-1] == "Hello, you."


@check("its tool is called, and it goes on")
async def tools() -> None:
    tell({"text": "I look.", "calls": [ORDER]}, {"text": "It is paid."})
    ran = await agent(tools=[find]).run("Is 7 paid?")
    assert ran.output == "It is paid."
    assert asked()[-1]["messages"][-1]["content"] == "7 is paid"


@check("its tool is called in a stream, and it goes on")
async def streamed_tools() -> None:
    tell({"calls": [ORDER]}, {"text": "It is paid."})
    async with agent(tools=[find]).run_stream("Is 7 paid?") as ran:
        assert await ran.get_output() == "It is paid."


@check("its output is an object, by a function and by a schema")
async def structured() -> None:
    tell(
        {"calls": [{"name": "final_result", "arguments": {"name": "Kiel"}, "id": "call_a"}]},
        {"text": '{"name":"Kiel"}'},
    )
    for output in (City, NativeOutput(City)):
        assert (await agent(output_type=output).run("Where?")).output == City(name="Kiel")


@check("a conversation goes on with what was said")
async def history() -> None:
    tell({"thought": "I greet.", "text": "Hello."}, {"text": "Yes."})
    first = await agent().run("Hello!")
    assert (await agent().run("Still there?", message_history=first.all_messages())).output == "Yes."
    assert len([each for each in asked()[-1]["messages"] if each["role"] != "system"]) == 3


@check("texts are embedded")
async def embeddings() -> None:
    made = await Embedder(OpenAIEmbeddingModel("builtin", provider=provider())).embed_documents(["a cat", "a dog"])
    assert [len(each) for each in made.embeddings] == [512, 512]


@check("refusals are ModelHTTPErrors with their status, and not repeated")
def errors() -> None:
    tell(refuse(400, message="This model's maximum context length is 100000 tokens."))
    wrong = Agent(OpenAIChatModel("m", provider=provider("org_wrong")))
    assert raised(ModelHTTPError, lambda: wrong.run_sync("Hello!")).status_code == 401
    assert raised(ModelHTTPError, lambda: agent().run_sync("Hello!")).status_code == 400
    assert len(asked()) == 1
