"""A turn of two calls of a model and two of a tool between them, by hand: what a crash is to leave as it is."""

from __future__ import annotations

from typing import Any, Final

LOOP: Final = """
async def agent(payload: Ask, metadata: HandlerMetadata):
    messages = [{"role": "user", "content": payload.text}]
    for number in (1, 2):
        said = await metadata.complete(messages, block=f"m{number}")
        await metadata.emit("usage", {"input": 10, "output": 20, "total": 30})
        for call in said.tool_calls:
            await metadata.emit("tool_call", {"id": call.id, "name": call.name, "input": call.input})
        for call in said.tool_calls:
            reply = await metadata.ask(call.name, Ask(call.input["text"]))
            await metadata.emit("tool_result", {"id": call.id, "output": reply.text, "isError": False})
        messages.append({"role": "user", "content": "~so the answer"})
    await metadata.emit("done", {"stopReason": "stop"})
    return HandlerResponse.respond(Told(said.text))

async def echo(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told(payload.text.upper()))
"""
LISTENERS: Final[dict[str, dict[str, Any]]] = {"agent": {"peers": ["echo"]}, "echo": {}}
ASKED: Final = "let us see ?echo ?echo"
FOLDED: Final = {
    "messages": [
        {"role": "assistant", "content": "letussee"},
        {"role": "tool", "content": "", "tool_call_id": "call-1", "tool_name": "echo", "input": {"text": "echo"}},
        {"role": "tool", "content": "", "tool_call_id": "call-2", "tool_name": "echo", "input": {"text": "echo"}},
        {"role": "tool", "content": "ECHO", "tool_call_id": "call-1", "is_error": False},
        {"role": "tool", "content": "ECHO", "tool_call_id": "call-2", "is_error": False},
        {"role": "assistant", "content": "theanswer"},
    ],
    "stop_reason": "stop",
    "pending_interaction": None,
}
"""What its run comes to."""
