"""Ways to call an agent or a tool: invoke, the AI SDK, the Model Context Protocol, tools for models."""
