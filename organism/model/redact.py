"""Redaction (S30): secrets are masked before anything is shown or stored.

Three things are secret: the live values of this installation (its tokens and keys, wherever they occur), the values of
fields whose names are those of secrets, and texts that look like a known kind of credential. Stored payloads lose only
the first kind; what is shown or logged loses all three.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from json import dumps
from typing import Any, Final, NamedTuple

import msgspec

from organism.model.linear import Found, Linear, linear, searchable

_INVISIBLE: Final = frozenset({"Cf", "Cc", "Co", "Cn", "Zl", "Zp"})
MASK: Final = "[redacted]"
_MASK: Final = MASK.encode()
SHORTEST: Final = 8
"""A shorter value is not treated as a secret: it would be found in half of all texts."""
_NAMES: Final = (
    "(?:pass(?:word|wd|phrase)?|secrets?|tokens?|credentials?|authorization|cookie|(?:api|access|private)[-_]?key)"
)
NAMED: Final = re.compile(f"(?i)(^|[-_.]){_NAMES}$")
_NAMED_FIELD: Final = linear(f'(?i:{_NAMES}":)')
_TOKEN: Final = linear(r"\b(?:org|page)_[\w.-]*?[0-9a-f]{64}\b")
"""A token of ours, whichever installation it opens; what begins like one may stand before it."""
_MAYBE_LIVE: Final = linear(r"(?:org|page)_[\w.-]*?[0-9a-f]{64}")
"""The same within other letters: whether it opens this installation is asked of each."""
_TOKEN_BEGINS: Final = linear(r"(?:org|page)_")
_LONGEST_TOKEN: Final = 5 + 200 + 64
_TOKEN_MARKS: Final = (b"org_", b"page_")
"""Each such token contains one of these."""
_GROWING: Final = re.compile(r"(?:o|or|org|p|pa|pag|page|(?:org|page)_[\w.-]{0,263})\Z")
_BEGUN: Final = re.compile(rf"(?:{_GROWING.pattern}|[\ud800-\udbff]\Z)")
"""The end of a text that may be the beginning of such a token, or is the first half of a character."""
_NO_WORD: Final = r"[A-Za-z._~+/-]*(?:[0-9=]|[a-z][A-Z][A-Za-z._~+/-]*[a-z][A-Z])[A-Za-z0-9._~+/=-]*"
"""Matches no ordinary word: prompts mention basic understanding, bearer certificates and basic JavaScript."""


class _Credential(NamedTuple):
    """A kind of credential. One of the ``traces``, in lower case, is in whatever looks like it.

    ``keep`` gives the length of the match's beginning that is no secret and stays visible; the secret has at least
    ``least`` bytes. ``after`` follows the secret and stays.
    """

    traces: tuple[bytes, ...]
    pattern: Linear
    keep: Callable[[bytes], int] = lambda _: 0
    after: bytes = b""
    least: int = 0

    def masked(self, found: Found[bytes]) -> bytes:
        """The mask, behind the beginning of the match that is no secret."""
        text = found[0]
        visible = self.keep(text)
        return text if len(text) - visible < self.least else text[:visible] + _MASK + self.after


_CREDENTIALS: Final = (
    _Credential(
        (b"-----begin ",),
        linear(r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\z)"),
    ),
    _Credential((b"eyj",), linear(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*")),
    _Credential(
        (b"bearer", b"basic"),
        linear(rf"(?i:\b(?:bearer|basic)\s+){_NO_WORD}"),
        keep=lambda text: len(text) - len(text.split()[-1]),
        least=8,
    ),
    _Credential(
        (b"token=", b"key=", b"ticket=", b"password=", b"secret="),
        linear(r"[?&](?i:token|access_token|api_?key|key|ticket|password|secret)=[^&\s\"'<>]+"),
        keep=lambda text: text.index(b"=") + 1,
    ),
    _Credential(
        (b"://",),
        linear(r"\b[a-z][a-z0-9+.-]*://[^/\s:@\"'<>]*:[^/\s@\"'<>]+@"),
        keep=lambda text: text.index(b"://") + 3,
        after=b"@",
    ),
    _Credential(_TOKEN_MARKS, _TOKEN),
    _Credential((b"sk-",), linear(r"\bsk-[A-Za-z0-9_-]{16,}")),
    _Credential((b"akia", b"asia"), linear(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    _Credential((b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_"), linear(r"\bgh[pousr]_[A-Za-z0-9]{36,}")),
    _Credential((b"xox",), linear(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}")),
)
"""No search reads beyond its match, so that all are linear; none has a group, which RE2's slowest engine would find."""
_TRACES: Final = linear("(?i:" + "|".join(trace.decode() for kind in _CREDENTIALS for trace in kind.traces) + ")")
"""Most texts have no trace of a credential, which one search tells."""


class Redactor:
    """Knows the live secrets. ``is_live`` says of a text of a token's form whether this installation takes it.

    One of the ``marks`` is in whatever ``holds`` a secret or ``holds_token``: who has many texts looks for these first.
    What ``value`` makes of a text is the same as long as the ``generation`` is.
    """

    def __init__(self, secrets: Iterable[str] = (), is_live: Callable[[str], bool] = lambda _: False) -> None:
        self._secrets: list[str] = []
        self._searched: list[str] = []
        self._all_forms: list[bytes] = []
        self._forms: list[bytes] = []
        self.generation = 0
        self.marks: tuple[bytes, ...] = _TOKEN_MARKS
        self._structure = ""
        self.is_live = is_live
        self.add(*secrets)

    def add(self, *secrets: str) -> None:
        """Mask these live secrets too; a longer one is searched for before one that is a part of it."""
        new = {secret for secret in secrets if len(secret) >= SHORTEST}.difference(self._secrets)
        if new:
            self._secrets = sorted({*self._secrets, *new}, key=len, reverse=True)
            self.spare(self._structure)

    def spare(self, structure: str) -> None:
        """Do not mask secrets that are a part of this text in what is stored: names by which messages are read."""
        self.generation += 1
        self._structure = structure
        self._all_forms = [form for secret in self._secrets for form in _forms(secret)]
        self._searched = [secret for secret in self._secrets if secret not in structure]
        self._forms = [form for secret in self._searched for form in _forms(secret)]
        self.marks = (*self._forms, *_TOKEN_MARKS)

    def holds(self, finished: bytes) -> bool:
        """Whether a secret that is known by its text is in finished JSON or XML."""
        return any(form in finished for form in self._forms)

    def holds_token(self, finished: bytes) -> bool:
        """Whether a token that is taken here is in it, though it is known by its digest alone."""
        if not any(mark in finished for mark in _TOKEN_MARKS):
            return False
        return any(self._live_at(found[0]) >= 0 for found in _MAYBE_LIVE.finditer(finished))

    def may_hold(self, finished: bytes) -> bool:
        """Whether a secret is in it, or a text of a token's form, which may be taken here later."""
        has_mark = any(mark in finished for mark in _TOKEN_MARKS)
        return self.holds(finished) or (has_mark and _MAYBE_LIVE.search(finished) is not None)

    def holds_live(self, text: str) -> bool:
        """Whether a live secret is in the text. No name may hold one: it is masked in the log, and named otherwise."""
        return self.holds(text.encode()) or self.holds_token(text.encode())

    def masked_bytes(self, finished: bytes) -> bytes:
        """Finished JSON or XML as it may be stored: without live secrets, else as it came."""
        for form in self._forms:
            finished = finished.replace(form, _MASK)
        return self._without_tokens(finished)

    def masked(self, text: str) -> str:
        """A text as it may be stored: without live secrets, else as it came."""
        for secret in self._searched:
            text = text.replace(secret, MASK)
        if "org_" not in text and "page_" not in text:
            return text
        return _decoded(self._without_tokens(searchable(text)))

    def _without_tokens(self, finished: bytes) -> bytes:
        def unless_live(found: Found[bytes]) -> bytes:
            at = self._live_at(found[0])
            return found[0] if at < 0 else found[0][:at] + _MASK

        return _MAYBE_LIVE.sub(unless_live, finished) if self.holds_token(finished) else finished

    def _live_at(self, text: bytes) -> int:
        """Where the live token begins that the text ends with; -1 if it ends with none."""
        before = max(0, len(text) - _LONGEST_TOKEN)
        begins = (before + begun.start() for begun in _TOKEN_BEGINS.finditer(text[before:]))
        return next((at for at in begins if self.is_live(text[at:].decode())), -1)

    def split(self, text: str) -> tuple[str, str]:
        """A text that goes on: what may be stored of it now, and the rest, which what follows may make a secret."""
        begun = _BEGUN.search(text, max(0, len(text) - _LONGEST_TOKEN))
        at = begun.start() if begun is not None else len(text)
        for secret in self._searched:
            at = min(at, _beginning(secret, text), _growing(secret, text))
        if at == len(text):
            return self.masked(text), ""
        while (cut := self._cut(text, at)) < at:
            at = cut
        return self.masked(text[:at]), text[at:]

    def _cut(self, text: str, at: int) -> int:
        """Where the first secret begins that goes across ``at``; there, if none does."""
        found = (text.find(secret, max(0, at - len(secret) + 1), at + len(secret) - 1) for secret in self._searched)
        return min((start for start in found if start >= 0), default=at)

    def text(self, text: str) -> str:
        """A text as it may be shown or logged."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return _decoded(_without_credentials(searchable(text)))

    def shown(self, finished: bytes) -> bytes:
        """Finished JSON as it may be shown."""
        return _without_credentials(self.masked_bytes(finished))

    def decoded(self, finished: bytes) -> Any:
        """Finished JSON decoded, as it may be shown or logged. That there is nothing to mask one search tells."""
        value = msgspec.json.decode(finished)
        return self.value(value) if self.may_mask(finished) else value

    def may_mask(self, finished: bytes) -> bool:
        """Whether ``value`` may mask something in finished JSON."""
        if any(form in finished for form in self._all_forms):
            return True
        return _TRACES.search(finished) is not None or _NAMED_FIELD.search(finished) is not None

    def value(self, value: Any, name: str = "") -> Any:
        """JSON as it may be shown or logged, with what stands under the names of secrets gone too."""
        if isinstance(value, str):
            return MASK if value and NAMED.search(name) else self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.value(inner, str(key)) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(inner, name) for inner in value]
        return value


def _forms(secret: str) -> Iterable[bytes]:
    """The secret as it is written into JSON and into XML."""
    in_json = dumps(secret, ensure_ascii=False)[1:-1]
    in_xml = secret.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return dict.fromkeys(form.encode("utf-8", "replace") for form in (secret, in_json, in_xml))


def _beginning(secret: str, text: str) -> int:
    """Where the text's end begins that is the beginning of the secret; the text's length if there is none."""
    at = text.find(secret[0], max(0, len(text) - len(secret) + 1))
    while at >= 0 and not secret.startswith(text[at:]):
        at = text.find(secret[0], at + 1)
    return at if at >= 0 else len(text)


def _growing(secret: str, text: str) -> int:
    """Where a token may begin right behind the secret, which parts them once it is masked; else the text's length."""
    end = text.rfind(secret) + len(secret)
    return end if end >= len(secret) and _GROWING.match(text, end) else len(text)


def _without_credentials(finished: bytes) -> bytes:
    """The text without what looks like a credential."""
    if _TRACES.search(finished) is None:
        return finished
    lowered = finished.lower()
    for kind in _CREDENTIALS:
        if any(trace in lowered for trace in kind.traces):
            finished = kind.pattern.sub(kind.masked, finished)
    return finished


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogatepass")


def visible(value: object) -> object:
    """JSON with each invisible or direction-changing character written out as its number."""
    if isinstance(value, str):
        return "".join(_seen(char) for char in value)
    if isinstance(value, Mapping):
        return {visible(str(key)): visible(each) for key, each in value.items()}
    return [visible(each) for each in value] if isinstance(value, list) else value


def _seen(char: str) -> str:
    is_plain = char in "\n\t" or unicodedata.category(char) not in _INVISIBLE
    return char if is_plain else f"⟨U+{ord(char):04X}⟩"
