"""The one redactor (S30): what is secret is replaced before it is shown, told or kept.

Three things are secret: the live values of this installation (its tokens and keys, wherever they stand), the values of
fields that are named as secrets are, and texts that look like a credential of a known kind. Payloads are kept as they
came but for the first kind; what is shown or logged loses all three.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from json import dumps
from typing import Any, Final

MASK: Final = "[redacted]"
SHORTEST: Final = 8
"""A shorter value is no secret worth the name, and would be found in half of all texts."""
NAMED: Final = re.compile(
    r"(?i)(^|[-_.])(pass(word|wd|phrase)?|secrets?|tokens?|credentials?|authorization|cookie|(api|access|private)[-_]?key)$"
)
TOKEN: Final = re.compile(r"\b(?:org|page)_[\w.-]{0,200}?[0-9a-f]{64}\b")
"""A token of ours, whichever installation it opens."""
_TOKEN_MARKS: Final = (b"org_", b"page_")
"""One of these is in whatever holds such a token."""
_GROWING: Final = re.compile(r"(?:o|or|org|p|pa|pag|page|(?:org|page)_[\w.-]{0,264})\Z")
_BEGUN: Final = re.compile(rf"(?:\b{_GROWING.pattern}|[\ud800-\udbff]\Z)")
"""The end of a text that may be the beginning of such a token, or is the first half of a character."""
_NO_WORD: Final = r"[A-Za-z._~+/-]*(?:[0-9=]|[a-z][A-Z][A-Za-z._~+/-]*[a-z][A-Z])"
"""What words are not made of: prompts speak of basic understanding, of bearer certificates and basic JavaScript."""
_LOOKS: Final = re.compile(
    "|".join(
        (
            TOKEN.pattern,
            rf"(?P<scheme>\b(?ai:bearer|basic)\s+)(?={_NO_WORD})[A-Za-z0-9._~+/=-]{{8,}}",
            r"(?P<query>(?ai:[?&](?:token|access_token|api_?key|key|ticket|password|secret)=))[^&\s\"'<>]+",
            r"(?P<site>\b[a-z][a-z0-9+.-]*://)[^/\s:@\"'<>]*:[^/\s@\"'<>]+(?=@)",
            r"\bsk-[A-Za-z0-9_-]{16,}",
            r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
            r"\bgh[pousr]_[A-Za-z0-9]{36,}",
            r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
            r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*",
            r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)",
        )
    )
)
_KEPT: Final = ("scheme", "query", "site")
_TRACES: Final = (
    *("org_", "page_", "bearer", "basic", "token=", "key=", "ticket=", "password=", "secret=", "://", "sk-"),
    *("akia", "asia", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "xox", "eyj", "-----begin "),
)
"""In lower case, one of these is in whatever looks like a credential; to look for them costs a tenth of the pattern."""


class Redactor:
    """Knows the live secrets. ``is_live`` says of a text of a token's form whether this installation takes it.

    One of the ``marks`` is in whatever ``holds`` a secret or ``holds_token``: who has many texts looks for these first.
    """

    def __init__(self, secrets: Iterable[str] = (), is_live: Callable[[str], bool] = lambda _: False) -> None:
        self._secrets: list[str] = []
        self._searched: list[str] = []
        self._forms: list[bytes] = []
        self.marks: tuple[bytes, ...] = _TOKEN_MARKS
        self._structure = ""
        self.is_live = is_live
        self.learn(*secrets)

    def learn(self, *secrets: str) -> None:
        """These are live secrets too; a longer one is looked for before one that is a part of it."""
        new = {secret for secret in secrets if len(secret) >= SHORTEST}.difference(self._secrets)
        if new:
            self._secrets = sorted({*self._secrets, *new}, key=len, reverse=True)
            self.spare(self._structure)

    def spare(self, structure: str) -> None:
        """What is kept is not searched for secrets that are a part of this text: names that messages are read by."""
        self._structure = structure
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
        return any(map(self.is_live, TOKEN.findall(finished.decode("utf-8", "replace"))))

    def kept(self, finished: bytes) -> bytes:
        """Finished JSON or XML as it may be kept: without live secrets, else as it came."""
        for form in self._forms:
            finished = finished.replace(form, MASK.encode())
        if not self.holds_token(finished):
            return finished
        return TOKEN.sub(lambda found: MASK if self.is_live(found[0]) else found[0], finished.decode()).encode()

    def masked(self, text: str) -> str:
        """A text as it may be kept: without live secrets, else as it came."""
        for secret in self._searched:
            text = text.replace(secret, MASK)
        if "org_" not in text and "page_" not in text:
            return text
        return TOKEN.sub(lambda found: MASK if self.is_live(found[0]) else found[0], text)

    def parted(self, text: str) -> tuple[str, str]:
        """A text that goes on: what may be kept of it now, and the rest, which what follows may make a secret."""
        begun = _BEGUN.search(text)
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
        return _without_looks(text)

    def shown(self, finished: bytes) -> bytes:
        """Finished JSON as it may be shown."""
        return _without_looks(self.kept(finished).decode("utf-8", "replace")).encode()

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


def _without_looks(text: str) -> str:
    """The text without what looks like a credential."""
    lowered = text.lower()
    for trace in _TRACES:
        if trace in lowered:
            return _LOOKS.sub(_masked, text)
    return text


def _masked(found: re.Match[str]) -> str:
    """The mask, behind what of the finding is no secret and says what it was."""
    return "".join(found[name] or "" for name in _KEPT) + MASK
