"""Addresses of services, as the configuration may name them."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

API_KEY_ENV: Final = "put it into a variable and name that by `api_key_env`"


def wrong_address(url: str, example: str, remedy: str = API_KEY_ENV) -> str | None:
    """What is wrong with an address; None if it is http or https, with a host and nothing that may be a credential.

    The address itself is not told again: whoever reads the fault need not know what it carries.
    """
    expected = f"expected an address such as `{example}`"
    if not url.isprintable() or any(sign in url for sign in ' <>"\\'):
        return f"{expected}, came one with characters that no address has"
    try:
        parts = urlsplit(url)
        is_whole = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return f"{expected}: http or https, a host, a path"
    if not is_whole:
        return f"{expected}: http or https, a host, a path"
    if "@" in parts.netloc or "?" in url or "#" in url:
        return f"{expected}, came one that may carry a credential; {remedy}"
    return None
