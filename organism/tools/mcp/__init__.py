"""Tools of MCP servers, as listeners. It takes the extra ``mcp``, and is imported where a server is configured."""
