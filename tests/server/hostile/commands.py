"""Hostile frames of a WebSocket: texts that are no command, and bytes that are no frame."""

from __future__ import annotations

import struct
from typing import Final

from tests.server.hostile.texts import BAD_JSON

BAD_COMMANDS: Final[tuple[str, ...]] = (
    "", "[]", "null", "3", '"ping"', "true", "{}", '{"cmd":null}', '{"cmd":3}', '{"cmd":[]}', '{"cmd":{}}',
    '{"cmd":""}', '{"cmd":"pong"}', '{"cmd":"PING"}', '{"cmd":"ping\\u0000"}', '{"cmd":"__init__"}',
    '{"cmd":"ping","colour":1}', '{"cmd":"subscribe","threads":"x"}', '{"cmd":"subscribe","threads":[1]}',
    '{"cmd":"subscribe","events":["nothing"]}', '{"cmd":"subscribe","since":-1}', '{"cmd":"subscribe","since":"1"}',
    '{"cmd":"subscribe","since":1e3}', '{"cmd":"subscribe","since":9223372036854775807}',
    '{"cmd":"subscribe","since":1,"log":"another"}', '{"cmd":"subscribe","batch":1}',
    '{"cmd":"subscribe","agents":[""]}', '{"cmd":"subscribe","filter":{}}',
    '{"cmd":"subscribe","threads":[' + ",".join('"x"' for _ in range(1001)) + "]}", '{"cmd":"inject"}',
    '{"cmd":"inject","to":"greeter"}', '{"cmd":"inject","to":3,"payload":{}}',
    '{"cmd":"inject","to":"nobody","payload":{}}', '{"cmd":"inject","to":"greeter","payload":3}',
    '{"cmd":"inject","to":"greeter","payload":{"name":3}}',
    '{"cmd":"inject","to":"greeter","payload":{"name":"\\u0000"}}',
    '{"cmd":"inject","to":"greeter","payload":{"name":"x"},"wait":1}', '{"cmd":"inject","to":"console","payload":{}}',
    '{"cmd":"inject","to":"greeter","payload":{"name":"x"},"idempotency_key":"a b"}',
    '{"cmd":"inject","to":"greeter","payload":{"name":"x"},"idempotency_key":""}',
    '{"cmd":"inject","to":"greeter","payload":{"name":"x"},"thread_id":"thr-0"}',
    '{"cmd":"inject","to":"greeter","to":"shouter","payload":{"name":"x"}}', '{"cmd":"kill"}',
    '{"cmd":"kill","thread_id":"thr-0"}', '{"cmd":"kill","thread_id":null}', '{"cmd":"kill","agent":"greeter"}',
    '{"cmd":"pause"}', '{"cmd":"pause","agent":"nobody"}', '{"cmd":"pause","agent":"greeter","thread_id":"thr-0"}',
    '{"cmd":"resume"}', '{"cmd":"resume","thread_id":"../x"}', '{"cmd":"resume","agent":["greeter"]}',
    '{"cmd":"resolve"}', '{"cmd":"resolve","approval":"x"}', '{"cmd":"resolve","approval":"x","decision":"perhaps"}',
    '{"cmd":"resolve","approval":"x","decision":"approve"}', '{"cmd":"auth"}', '{"cmd":"auth","token":""}',
    '{"cmd":"auth","token":"wrong"}', '{"cmd":"auth","token":"\\u0000"}', '{"cmd":"auth","token":{"$ne":1}}',
    '{"cmd":"reload"}', '{"cmd":"stop"}', '{"cmd":"ping","cmd":"kill"}', '{"id":"\\u0000","cmd":"x"}',
    '{"id":{"a":[1]},"cmd":"x"}',
)  # fmt: skip
"""Each gets an ``error``, and the connection lives."""

BAD_TEXTS: Final = tuple(body.decode() for body in BAD_JSON if body.isascii() and len(body) < 200_000)


def frame(first: int, payload: bytes, *, masked: bool = True, length: bytes = b"") -> bytes:
    """A client's frame, as wrong as one likes."""
    size = len(payload)
    short = bytes([size]) if size < 126 else struct.pack("!BH", 126, size & 0xFFFF)
    size_bytes = length or (short if size < 65_536 else struct.pack("!BQ", 127, size))
    head = bytes([first, size_bytes[0] | (0x80 if masked else 0)]) + size_bytes[1:]
    return head + (bytes(4) if masked else b"") + payload


PING: Final = b'{"cmd":"ping"}'
BAD_FRAMES: Final = {
    "not masked": frame(0x81, PING, masked=False),
    "first reserved bit": frame(0xC1, PING),
    "second reserved bit": frame(0xA1, PING),
    "third reserved bit": frame(0x91, PING),
    "opcode 3": frame(0x83, PING),
    "opcode 11": frame(0x8B, PING),
    "opcode 15": frame(0x8F, PING),
    "a part of nothing": frame(0x80, PING),
    "a message within a message": frame(0x01, b"{") + frame(0x81, PING),
    "a ping in parts": frame(0x09, b"x"),
    "a ping of 126 bytes": frame(0x89, b"x" * 126),
    "a close of one byte": frame(0x88, b"x"),
    "a close with a code of nobody": frame(0x88, struct.pack("!H", 999)),
    "a close with a reserved code": frame(0x88, struct.pack("!H", 1005)),
    "a close that is no UTF-8": frame(0x88, struct.pack("!H", 1000) + b"\xff"),
    "no UTF-8": frame(0x81, b'"\xff"'),
    "half a character": frame(0x81, b'"\xe2\x82"'),
    "no UTF-8, in parts": frame(0x01, b'"\xe2') + frame(0x80, b'x"'),
    "no UTF-8, many times": frame(0x81, b'"\xff"') * 50,
    "one byte too many": frame(0x81, b" " * (256 * 1024 + 1)),
    "too many in parts": frame(0x01, b" " * 200_000) + frame(0x80, b" " * 200_000),
    "2 to the 63rd bytes announced": frame(0x81, b"", length=b"\x7f" + b"\xff" * 8),
    "4 GiB announced": frame(0x81, b"", length=b"\x7f" + struct.pack("!Q", 1 << 32)),
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "deflated, though nobody agreed": frame(0xC1, b"\xaa\x56\x4a\xce\x4d\x51\xb2\x52\x2a\xc8\xcc\x4b\x57\xaa\x05\x00"),
}
"""After each the connection ends, by a close frame if one can be sent."""
