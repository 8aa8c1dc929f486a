"""Serves an application as uvicorn does in production, on a free port: uvloop, httptools, no access log."""

import json
import socket

import uvicorn

from bench.door import Request, say
from bench.steps import ASKED

PLACE = "127.0.0.1"


def serve_app(app: object, path: str = "/orders", **asked: str) -> None:
    """Serve until the process is terminated. ``asked`` are other fields of the ``Request`` than its defaults."""
    listening = socket.create_server((PLACE, 0), backlog=2048)
    say(
        Request(
            **{"url": f"http://{PLACE}:{listening.getsockname()[1]}", "path": path, "body": json.dumps(ASKED), **asked}
        )
    )
    uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run([listening])
