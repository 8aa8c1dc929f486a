"""The agentserver: REST, WebSocket and the page, over the log and the pump of each tenant. ``app.py`` is the front."""
