"""OpenAI's client for Python."""

from typing import Any

import openai
from checks import HELLO, ORDER, SPENT_TOKEN, TOKEN, URL, asked, check, raised, refuse, tell
from pydantic import BaseModel


class Find(BaseModel):
    """Finds an order."""

    id: int


class City(BaseModel):
    name: str


client = openai.OpenAI(base_url=f"{URL}/v1", api_key=TOKEN, timeout=30)
FIND: Any = {"type": "function", "function": {"name": "find", "parameters": Find.model_json_schema()}}
USAGE: Any = {"include_usage": True}
TOO_LONG = {"message": "This model's maximum context length is 100000 tokens.", "type": "invalid_request_error"}


def ask(**more: Any) -> Any:
    return client.chat.completions.create(**{"model": "m", "messages": HELLO, **more})


def refused(kind: type[openai.APIStatusError], **more: Any) -> Any:
    """The error of this kind that a request ends with."""
    return raised(kind, lambda: ask(**more))


@check("an answer has text, finish and usage")
def batch() -> None:
    tell({"text": "Hello, you."})
    answer = ask()
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("Hello, you.", "stop")
    assert answer.usage.total_tokens == 10


@check("a stream has the same, and nothing that is no chunk")
def stream() -> None:
    tell({"text": "Hello, you."})
    chunks = list(ask(stream=True, stream_options=USAGE))
    choices = [choice for chunk in chunks for choice in chunk.choices]
    assert "".join(choice.delta.content or "" for choice in choices) == "Hello, you."
    assert (choices[-1].finish_reason, chunks[-1].usage.total_tokens) == ("stop", 10)
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}


@check("a stream says its cost in its last chunks")
def stream_cost() -> None:
    tell({"text": "Hello, you.", "cost": 0.25})
    *_, before, last = ask(stream=True, stream_options=USAGE)
    assert "0.25" in before.to_json() + last.to_json(), last.to_json()


@check("the streaming helper gives the whole answer")
def stream_helper() -> None:
    tell({"text": "Hello, you."})
    with client.chat.completions.stream(model="m", messages=HELLO) as stream:
        kinds = [event.type for event in stream]
        assert stream.get_final_completion().choices[0].message.content == "Hello, you."
    assert "content.done" in kinds


@check("a function is called, and its result answered")
def tools() -> None:
    tell({"calls": [ORDER]}, {"text": "It is paid."})
    message = ask(tools=[FIND]).choices[0].message
    (call,) = message.tool_calls
    assert (call.function.name, call.function.arguments) == ("find", '{"id":7}')
    result = {"role": "tool", "tool_call_id": call.id, "content": "paid"}
    assert ask(messages=[*HELLO, message, result], tools=[FIND]).choices[0].message.content == "It is paid."
    assert asked()[-1]["messages"][-1]["content"] == "paid"


@check("a function is called in a stream")
def streamed_tools() -> None:
    tell({"calls": [ORDER]})
    with client.chat.completions.stream(model="m", messages=HELLO, tools=[FIND]) as stream:
        (choice,) = stream.get_final_completion().choices
    assert (choice.finish_reason, choice.message.tool_calls[0].function.name) == ("tool_calls", "find")


@check("parse() gives an object, and its message is taken back as it is")
def parsed() -> None:
    tell({"text": '{"name":"Kiel"}'}, {"text": "Yes."})
    message = client.chat.completions.parse(model="m", messages=HELLO, response_format=City).choices[0].message
    assert message.parsed == City(name="Kiel")
    assert asked()[-1]["response_format"]["json_schema"]["strict"] is True
    whole: Any = {**message.model_dump(), "refusal": None, "annotations": [], "audio": None}
    assert ask(messages=[*HELLO, whole, *HELLO]).choices[0].message.content == "Yes."


@check("a strict function is handed on as such, and its parsed call is taken back")
def parsed_arguments() -> None:
    tell({"calls": [{**ORDER, "name": "Find"}]}, {"text": "It is paid."})
    tool: Any = openai.pydantic_function_tool(Find)
    message = client.chat.completions.parse(model="m", messages=HELLO, tools=[tool]).choices[0].message
    (call,) = message.tool_calls or ()
    assert call.function.parsed_arguments == Find(id=7)
    assert asked()[-1]["tools"][0]["function"]["strict"] is True
    result = {"role": "tool", "tool_call_id": call.id, "content": "paid"}
    talk: Any = [*HELLO, message.model_dump(), result]
    assert ask(messages=talk, tools=[tool]).choices[0].message.content == "It is paid."


@check("what the model thought is given, at once and in a stream")
def reasoning() -> None:
    tell({"thought": "I greet.", "text": "Hello."}, {"thought": "I greet.", "text": "Hello."})
    assert ask().choices[0].message.reasoning_content == "I greet."
    deltas = [choice.delta for chunk in ask(stream=True) for choice in chunk.choices]
    assert "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas) == "I greet."


@check("harmless parameters are taken, and named in a header")
def harmless() -> None:
    tell({"text": "Hello."})
    cached = [{"type": "text", "text": "Hello!", "cache_control": {"type": "ephemeral"}}]
    raw = client.chat.completions.with_raw_response.create(
        model="m",
        messages=[{"role": "user", "content": cached}],  # type: ignore[list-item,misc]  # a part of another vendor's
        store=True,
        service_tier="flex",
        top_logprobs=None,
        stream=True,
        stream_options={"include_obfuscation": False},
    )
    assert any("store" in value and "service_tier" in value for value in raw.headers.values()), dict(raw.headers)


@check("of two limits of tokens the smaller holds")
def smaller() -> None:
    tell({"text": "Hello."}, {"text": "Hello."})
    ask(max_tokens=9, max_completion_tokens=5)
    ask(max_tokens=4, max_completion_tokens=8)
    assert [each["max_tokens"] for each in asked()] == [5, 4]


@check("a request beyond a thread's tokens but within the model's window is served")
def large() -> None:
    tell({"text": "Hello."})
    assert ask(messages=[{"role": "user", "content": "word " * 20_000}]).choices[0].message.content == "Hello."


@check("models are listed and retrieved, an unknown one is a NotFoundError")
def models() -> None:
    assert "m" in [model.id for model in client.models.list()]
    assert client.models.retrieve("m").id == "m"
    assert raised(openai.NotFoundError, lambda: client.models.retrieve("nobody")).code


@check("embeddings come as numbers; token ids are refused with what to send")
def embeddings() -> None:
    made = client.embeddings.create(model="builtin", input=["a cat", "a dog"])
    assert [len(each.embedding) for each in made.data] == [512, 512]
    ids = [[1, 2, 3]]
    error = raised(openai.BadRequestError, lambda: client.embeddings.create(model="builtin", input=ids))
    assert "text" in error.message, error


@check("a wrong token is an AuthenticationError")
def wrong_token() -> None:
    wrong = client.with_options(api_key="org_wrong")
    assert raised(openai.AuthenticationError, wrong.models.list).status_code == 401


@check("a context that is too long is a BadRequestError with its code, and not repeated")
def too_long() -> None:
    for refusal in ({**TOO_LONG, "code": "context_length_exceeded"}, TOO_LONG):
        tell(refuse(400, **refusal))
        assert refused(openai.BadRequestError).code == "context_length_exceeded"
    assert refused(openai.BadRequestError, stream=True).code == "context_length_exceeded"
    assert len(asked()) == 3


@check("what the provider refuses is a BadRequestError with its words, and not repeated")
def provider_refuses() -> None:
    tell(refuse(422, message="The penguin is not available.", type="invalid_request_error"))
    assert "penguin" in refused(openai.BadRequestError).message
    assert len(asked()) == 1


@check("a provider's 429 is a RateLimitError with Retry-After")
def limited() -> None:
    tell(refuse(429, message="Slow down.", type="rate_limit_error"))
    hasty = client.with_options(max_retries=0).chat.completions
    error = raised(openai.RateLimitError, lambda: hasty.create(model="m", messages=HELLO))
    assert error.response.headers["retry-after"] == "7", dict(error.response.headers)


@check("a spent budget is a RateLimitError, and not repeated")
def spent() -> None:
    sent: list[object] = []
    http = openai.DefaultHttpxClient(event_hooks={"request": [sent.append]})
    poor = openai.OpenAI(base_url=f"{URL}/v1", api_key=SPENT_TOKEN, http_client=http)
    error = raised(openai.RateLimitError, lambda: poor.chat.completions.create(model="m", messages=HELLO))
    assert error.code == "budget_exhausted", error
    assert len(sent) == 1, error.response.headers.get("x-should-retry")


@check("a filtered answer has its finish and the text so far, at once and in a stream")
def filtered() -> None:
    tell(*[{"text": "So far", "finish": "content_filter"}] * 2)
    choice = ask().choices[0]
    assert (choice.message.content, choice.finish_reason) == ("So far", "content_filter")
    *_, last = [choice for chunk in ask(stream=True) for choice in chunk.choices]
    assert last.finish_reason == "content_filter"


@check("a call that max_tokens cuts is `length`, at once and in a stream")
def cut() -> None:
    tell(*[{"calls": [{**ORDER, "arguments": '{"id": '}], "finish": "length"}] * 2)
    assert ask(tools=[FIND], max_tokens=5).choices[0].finish_reason == "length"
    *_, last = [choice for chunk in ask(tools=[FIND], max_tokens=5, stream=True) for choice in chunk.choices]
    assert last.finish_reason == "length"


@check("`param` is a JSON pointer")
def pointer() -> None:
    for content in (7, [{"type": "text"}], [{"type": "sound"}]):
        param = refused(openai.BadRequestError, messages=[{"role": "user", "content": content}]).param
        assert param.startswith("/messages/0/content"), param
        assert not any(name in param for name in ("str", "list", "Part", "[", "function-")), param


@check("a function that is not offered is refused before the model is called")
def not_offered() -> None:
    choice = {"type": "function", "function": {"name": "lose"}}
    for tools in ({"tools": [FIND]}, {}):
        assert refused(openai.BadRequestError, tool_choice=choice, **tools).param.startswith("/tool_choice")
    assert asked() == []
