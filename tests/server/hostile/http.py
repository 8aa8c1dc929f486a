"""Hostile bytes of HTTP: what a broken, a sly or a malicious client sends before any JSON is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.server.served import TOKEN

HOST: Final = "Host: localhost\r\n"
WHO: Final = f"Authorization: Bearer {TOKEN}\r\n"
JSON: Final = "Content-Type: application/json\r\n"
POST: Final = f"POST /api/v1/inject HTTP/1.1\r\n{HOST}{WHO}{JSON}"
UPGRADE: Final = (
    f"{HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes, and the statuses of which one must come; none: the server hangs up without a word."""

    name: str
    sent: str
    statuses: tuple[int, ...]

    @property
    def bytes(self) -> bytes:
        """What goes over the wire."""
        return self.sent.encode("latin-1")


def _request(line: str, *headers: str) -> str:
    return "\r\n".join((line, HOST.strip(), WHO.strip(), *headers, "", ""))


LINES: Final = {
    "words": "HELLO",
    "only spaces": "   ",
    "TLS hello": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "SSH": "SSH-2.0-OpenSSH_9.2",
    "SOCKS": "\x05\x01\x00",
    "SMTP": "EHLO localhost",
    "RTSP": "OPTIONS rtsp://localhost/x RTSP/1.0",
    "HTTP/2 preface": "PRI * HTTP/2.0",
    "no version letters": "GET /healthz XTTP/1.1",
    "version 9.9": "GET /healthz HTTP/9.9",
    "version 3": "GET /healthz HTTP/3",
    "version of letters": "GET /healthz HTTP/a.b",
    "lower case method": "get /healthz HTTP/1.1",
    "unknown method": "FETCH /healthz HTTP/1.1",
    "method of 5000 letters": f"{'A' * 5000} /healthz HTTP/1.1",
    "method with NUL": "G\0ET /healthz HTTP/1.1",
    "CONNECT": "CONNECT localhost:80 HTTP/1.1",
    "no target": "GET  HTTP/1.1",
    "target without a slash": "GET healthz HTTP/1.1",
    "target with a NUL": "GET /\0 HTTP/1.1",
    "target with a byte above ASCII": "GET /\xe9 HTTP/1.1",
    "target with a space": "GET /a b HTTP/1.1",
    "target with a tab": "GET /a\tb HTTP/1.1",
    "target with ESC": "GET /\x1b[31m HTTP/1.1",
    "ftp target": "GET ftp://localhost/healthz HTTP/1.1",
    "file target": "GET file:///etc/passwd HTTP/1.1",
    "javascript target": "GET javascript:alert(1) HTTP/1.1",
    "unix target": "GET unix:/run/x HTTP/1.1",
    "target without a host": "GET http:///healthz HTTP/1.1",
}

FIELDS: Final = {
    "no colon": "nothing",
    "no name": ": x",
    "space before the colon": "X : x",
    "folded": "X: a\r\n b",
    "NUL in a value": "X: a\0b",
    "NUL in a name": "X\0: a",
    "bare CR": "X: a\rb",
    "control in a value": "X: a\x01b",
    "DEL in a value": "X: a\x7fb",
    "name of UTF-8": "\xc3\xa9: x",
    "name with brackets": "X[]: x",
    "name with a quote": 'X": x',
    "head without an end": f"X: {'x' * 70_000}",
    "a name without an end": f"{'x' * 70_000}: x",
    "ten thousand headers": "\r\n".join(f"X{at}: x" for at in range(10_000)),
}

LENGTHS: Final = {
    "length and chunked": "Content-Length: 4\r\nTransfer-Encoding: chunked",
    "chunked and length": "Transfer-Encoding: chunked\r\nContent-Length: 4",
    "two lengths": "Content-Length: 4\r\nContent-Length: 5",
    "one length twice": "Content-Length: 2\r\nContent-Length: 2",
    "two lengths in one": "Content-Length: 4, 5",
    "negative length": "Content-Length: -1",
    "signed length": "Content-Length: +2",
    "hexadecimal length": "Content-Length: 0x2",
    "length with a point": "Content-Length: 2.0",
    "length of words": "Content-Length: two",
    "no length": "Content-Length:",
    "length with a space inside": "Content-Length: 1 2",
    "length beyond 64 bits": "Content-Length: 99999999999999999999999999",
    "length of Arabic digits": "Content-Length: \xd9\xa2",
    "gzip": "Transfer-Encoding: gzip",
    "identity": "Transfer-Encoding: identity",
    "gzip, chunked": "Transfer-Encoding: gzip, chunked",
    "chunked, gzip": "Transfer-Encoding: chunked, gzip",
    "chunked twice": "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "chunked, chunked": "Transfer-Encoding: chunked, chunked",
    "xchunked": "Transfer-Encoding: xchunked",
    "quoted chunked": 'Transfer-Encoding: "chunked"',
    "chunked with a tab": "Transfer-Encoding: chunk\ted",
    "chunked with VT": "Transfer-Encoding: \x0bchunked",
    "chunked after a space": "Transfer-Encoding : chunked",
    "chunked folded": "Transfer-Encoding:\r\n chunked",
}

CHUNKS: Final = {
    "size of letters": "zz\r\n{}\r\n0\r\n\r\n",
    "negative size": "-1\r\n{}\r\n0\r\n\r\n",
    "size with 0x": "0x2\r\n{}\r\n0\r\n\r\n",
    "size beyond 64 bits": "fffffffffffffffff\r\n{}\r\n0\r\n\r\n",
    "size that is missing": "\r\n{}\r\n0\r\n\r\n",
    "size that is too small": "1\r\n{}\r\n0\r\n\r\n",
    "no end of a chunk": "2\r\n{}0\r\n\r\n",
    "only line feeds": "2\n{}\n0\n\n",
    "NUL for a size": "\0\r\n{}\r\n0\r\n\r\n",
    "an extension with a NUL": "2;\0=x\r\n{}\r\n0\r\n\r\n",
    "a trailer without a colon": "2\r\n{}\r\n0\r\ntrailer\r\n\r\n",
}

HOSTS: Final = (
    "evil.example", "localhost.evil.example", "localhost@evil.example", "evil.example@localhost", "127.0.0.1.nip.io",
    "localhost:99999", "localhost:x", "localhost:-1", "", " ", "localhost/x", "localhost?x", "localhost#x",
    "local host", "[::1", "::1", "[::ffff:7f00:1]", "0.0.0.1", "0x7f.1", "2130706433", "127.1", "localhost.", "*",
    "localhost,evil.example", "null", "\xff", "xn--lcalhost-54a", "<script>", "localhost%00", "%6cocalhost",
)  # fmt: skip

PATHS: Final = (
    "/nowhere", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc%2fpasswd", "/..%5c..%5cboot.ini",
    "/....//....//etc/passwd", "/%c0%ae%c0%ae/", "/%00", "/%", "/%zz", "/%u0041", "/%25%32%65", "//healthz",
    "/healthz/", "/healthz;x=1", "/HEALTHZ", "/api/v1//organism", "/api/v1/organism/", "/api/v1/./organism",
    "/api/v2/organism", "/api/v1/threads/%0d%0aX-Evil:%20x", "/api/v1/agents/%F0%9F%90%99", "/api/v1/agents/%FF",
    "/api/v1/agents/%1b%5b31m", "/api/v1/agents/%e2%80%a8", "/.git/config", "/.env", "/index.php",
    "/web/../organism.yaml", "/assets/%2e%2e%2f%2e%2e%2forganism.yaml", "/\\..\\organism.yaml", "/~root",
    "/server-status", "/cgi-bin/sh", "/" + "a" * 60_000, "/" + "a/" * 20_000, "/" + "%41" * 15_000,
    "/api/v1/messages/" + "'" * 500,
)  # fmt: skip

QUERIES: Final = (
    "token=x", "Token=x", "access_token=x", "api_key=x", "apikey=x", "authorization=x", "ticket=x", "key=x",
    "limit=%FF", "limit=%C3", "%FF=1", "%00=1", "limit=1&limit=2", "limit=1;limit=2", "=1", "limit[]=1", "limit=1%00",
    "limit=%31%0a", "limit=1_0", "limit=%D9%A1", "&".join(f"x{at}=1" for at in range(200)), "x" * 50_000, "limit=1e9",
    "limit=-0", "offset=9" + "9" * 400, "cursor=" + "A" * 4000, "__proto__=1", "limit=${7*7}", "limit='%20or%201=1",
)  # fmt: skip

UPGRADES: Final = {
    "no key": (UPGRADE.replace("-Key", "-Lock"), 400),
    "an empty key": (UPGRADE.replace("dGhlIHNhbXBsZSBub25jZQ==", ""), 400),
    "a key that is too short": (UPGRADE.replace("dGhlIHNhbXBsZSBub25jZQ==", "eA=="), 400),
    "a key that is no base64": (UPGRADE.replace("dGhlIHNhbXBsZSBub25jZQ==", "!" * 24), 400),
    "two keys": (UPGRADE + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", 400),
    "no version": (UPGRADE.replace("-Version", "-Volume"), 400),
    "an old version": (UPGRADE.replace("13", "8"), 400),
    "two versions": (UPGRADE + "Sec-WebSocket-Version: 8\r\n", 400),
    "two upgrades": (UPGRADE + "Upgrade: websocket\r\n", 400),
    "a body": (UPGRADE + "Content-Length: 5\r\n", 400),
    "a long header": (UPGRADE + f"X: {'x' * 9000}\r\n", 400),
    "many headers": (UPGRADE + "".join(f"X{at}: x\r\n" for at in range(500)), 400),
    "another Host": (UPGRADE.replace("localhost", "evil.example"), 403),
    "another Origin": (UPGRADE + "Origin: http://evil.example\r\n", 403),
    "the Origin null": (UPGRADE + "Origin: null\r\n", 403),
    "an Origin like ours": (UPGRADE + "Origin: http://localhost.evil.example\r\n", 403),
    "two Origins": (UPGRADE + "Origin: http://localhost\r\nOrigin: http://evil.example\r\n", 400),
    "two tokens": (UPGRADE + WHO + WHO, 400),
}

SOCKET_QUERIES: Final = {
    "token=x": 400, "colour=red": 400, "since=x": 400, "since=-1": 400, "since=" + "9" * 30: 400, "batch=maybe": 400,
    "events=nothing": 400, "since=1&since=2": 400, "%FF": 400, "since=%00": 400, "log=" + "x" * 300: 400,
    "x" * 9000: 400, "&".join(f"x{at}=1" for at in range(200)): 400, "agents=" + "a" * 300: 400,
}  # fmt: skip

OWED: Final = {
    "half a line": "GET /heal",
    "half a head": f"GET /healthz HTTP/1.1\r\n{HOST}",
    "a body that does not come": f"{POST}Content-Length: 10\r\n\r\n",
    "half a body": f'{POST}Content-Length: 1000\r\n\r\n{{"to":',
    "a chunk that does not come": f"{POST}Transfer-Encoding: chunked\r\n\r\na\r\n",
    "no last chunk": f"{POST}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n",
    "no word at all": "",
    "an empty line": "\r\n",
}

RAW: Final[tuple[Raw, ...]] = (
    *(Raw(f"line: {name}", _request(line), (400,)) for name, line in LINES.items()),
    *(Raw(f"field: {name}", _request("GET /healthz HTTP/1.1", field), (400,)) for name, field in FIELDS.items()),
    *(Raw(f"length: {name}", f"{POST}{length}\r\n\r\n0\r\n\r\n", (400,)) for name, length in LENGTHS.items()),
    *(
        Raw(f"chunk: {name}", f"{POST}Transfer-Encoding: chunked\r\n\r\n{chunk}", (400,))
        for name, chunk in CHUNKS.items()
    ),
    *(Raw(f"host: {host}", f"GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n", (403,)) for host in HOSTS),
    *(
        Raw(f"host of the target: {host}", _request(f"GET http://{host}/healthz HTTP/1.1"), (400, 403))
        for host in HOSTS[:8]
    ),
    *(Raw(f"path: {path[:40]}", _request(f"GET {path} HTTP/1.1"), (404,)) for path in PATHS),
    *(Raw(f"query: {query[:40]}", _request(f"GET /api/v1/messages?{query} HTTP/1.1"), (400,)) for query in QUERIES),
    *(
        Raw(f"upgrade: {name}", f"GET /ws HTTP/1.1\r\n{head}\r\n", (status,))
        for name, (head, status) in UPGRADES.items()
    ),
    *(
        Raw(f"upgrade: ?{query[:40]}", f"GET /ws?{query} HTTP/1.1\r\n{UPGRADE}\r\n", (status,))
        for query, status in SOCKET_QUERIES.items()
    ),
    Raw("two hosts", _request("GET /healthz HTTP/1.1", "Host: evil.example"), (400,)),
    Raw("no host", "GET /healthz HTTP/1.1\r\n\r\n", (403,)),
    Raw("HTTP/1.0 without a host", "GET /healthz HTTP/1.0\r\n\r\n", (403,)),
    Raw("HTTP/0.9", "GET /healthz\r\n\r\n", (403,)),
    Raw("line feeds alone", "GET /healthz HTTP/1.1\nHost: localhost\n\n", (400,)),
    Raw("two tokens", _request("GET /api/v1/organism HTTP/1.1", WHO.strip()), (400,)),
    Raw("another scheme of token", f"GET /api/v1/organism HTTP/1.1\r\n{HOST}Authorization: Basic eDp5\r\n\r\n", (401,)),
    Raw("a token above ASCII", f"GET /api/v1/organism HTTP/1.1\r\n{HOST}Authorization: Bearer \xe9\r\n\r\n", (401,)),
    Raw("an upgrade to h2c", _request("GET /nowhere HTTP/1.1", "Connection: Upgrade", "Upgrade: h2c"), (404,)),
    Raw("much is announced", f"{POST}Content-Length: 9999999999\r\n\r\n", (413,)),
    Raw("much comes in a chunk", f"{POST}Transfer-Encoding: chunked\r\n\r\n200000\r\n{' ' * 0x200000}", (413,)),
    Raw("an unknown Expect", f"{POST}Expect: 999\r\nContent-Length: 2\r\n\r\nxx", (400,)),
    Raw("a request in a body", f"{POST}Content-Length: 35\r\n\r\nGET /api/v1/log HTTP/1.1\r\nHost: x\r\n\r\n", (400,)),
    *(Raw(f"owed: {name}", sent, ()) for name, sent in OWED.items()),
)
"""Every hostile request there is."""
