"""The forms in which a turn is written: lines, Server-Sent Events, the AI SDK's messages, OpenAI's completions."""
