"""Who called: what a request says of the run in which it was made (S5).

Of a depth the greater counts, the caller's or what the events of the chain come to. The id of the request above is kept
as it was said. What a request says of costs or threads in its headers is read by nobody.
"""

from __future__ import annotations

import re
from typing import Any, Final

from organism.errors import InvalidField
from organism.server.call import Call, refuse_secret
from organism.server.lists import whole_number

DEPTH: Final = "SPASS-Caller-Depth"
PARENT: Final = "SPASS-Parent-Request-Id"
CALLER: Final = (DEPTH, PARENT)
MOST_DEPTH: Final = 1_000_000
_ID: Final = re.compile(r"[\x21-\x7e]{1,255}")


def caller_fields(call: Call) -> dict[str, Any]:
    """Keywords for an ``Inject``. Raises ``InvalidField``."""
    keys = {name: name.lower().encode() for name in CALLER}
    said = {name: call.header(key) for name, key in keys.items() if key in call.headers}
    fields: dict[str, Any] = {}
    if DEPTH in said:
        fields["caller_depth"] = whole_number(said[DEPTH], f"headers.{DEPTH.lower()}", 0, MOST_DEPTH)
    if PARENT in said:
        place = f"headers.{PARENT.lower()}"
        if not _ID.fullmatch(said[PARENT]):
            raise InvalidField(f"{PARENT} is 1 to 255 visible ASCII characters.", param=place)
        refuse_secret(call.process.redactor, said[PARENT], place)
        fields["caller_request"] = said[PARENT]
    return fields
