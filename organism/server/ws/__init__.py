"""Live connections: WebSockets with their commands, and event streams."""
