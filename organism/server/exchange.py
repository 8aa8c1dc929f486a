"""An exchange of uvicorn's whose answer leaves in one write.

uvicorn writes the head of an answer, and then its body: two system calls, two packets on the way, and two awakenings
of the client.
"""

from __future__ import annotations

from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

LENGTH: Final = b"content-length"
CONNECTION: Final = b"connection"
END_OF_LINE: Final = b"\r\n"
CLOSE: Final = b"connection: close\r\n"


class OneWrite(RequestResponseCycle):
    """The head of an answer whose length is known waits for the body, which follows at once."""

    waiting: Any = None

    async def send(self, message: Any) -> None:
        """Send for the app."""
        kind: str = message["type"]
        if kind == "http.response.start" and LENGTH in (names := dict(message["headers"])) and CONNECTION not in names:
            self.waiting = message
            return
        head, self.waiting = self.waiting, None
        if head is None:
            await super().send(message)
        elif message.get("more_body", False) or self.flow.write_paused or self.disconnected:
            await super().send(head)
            await super().send(message)
        else:
            self._write(head, message["body"])

    def _write(self, head: Any, body: bytes) -> None:
        lines = [b"%b: %b\r\n" % header for header in (*self.default_headers, *head["headers"])]
        if not self.keep_alive:
            lines.append(CLOSE)
        text = b"".join((STATUS_LINE[head["status"]], *lines, END_OF_LINE))
        if text.count(b"\n") != len(lines) + 2 or text.count(b"\r") != len(lines) + 2:
            raise ValueError("A header of an answer holds the end of a line.")
        self.response_started = self.response_complete = True
        self.waiting_for_100_continue = False
        self.transport.writelines((text, body) if body else (text,))
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()
