"""``current_datetime``. Reading the clock is a recorded step, so a repetition gives the same time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Annotated, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from pydantic import Field

from organism.config.settings import ShippedTool
from organism.model.handler import HandlerMetadata, HandlerResponse
from organism.model.tool import ToolError

_ZONE: Final = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+){0,2}")
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass
class CurrentDatetime:
    """Tells the current date and time in a time zone."""

    zone: Annotated[
        str, Field(min_length=1, max_length=64, description="An IANA zone such as Europe/Berlin; UTC if left out.")
    ] = "UTC"


@dataclass
class Now:
    """``now`` is ISO 8601 with the zone's offset; ``unix`` is in seconds since 1970."""

    now: str
    date: str
    time: str
    weekday: str
    zone: str
    utc_offset: str
    unix: int


TOOL: Final = ShippedTool(
    name="current_datetime",
    scope="tools:execute",
    payload_class=CurrentDatetime,
    replies=(Now,),
    effect="pure",
    timeout_s=10,
)


async def current_datetime(payload: CurrentDatetime, metadata: HandlerMetadata) -> HandlerResponse:
    zone = zone_of(payload.zone)
    if zone is None:
        return HandlerResponse.respond(ToolError("not_found", _unknown(payload.zone)))
    return HandlerResponse.respond(moment((await metadata.now()).astimezone(zone), payload.zone))


def moment(now: datetime, zone: str) -> Now:
    whole = now.replace(microsecond=0)
    return Now(
        now=whole.isoformat(),
        date=whole.date().isoformat(),
        time=whole.time().isoformat(),
        weekday=_DAYS[whole.weekday()],
        zone=zone,
        utc_offset=whole.isoformat()[19:],
        unix=int(whole.timestamp()),
    )


def zone_of(name: str) -> ZoneInfo | None:
    if not _ZONE.fullmatch(name):
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a folder of zones is no zone
        return None


def _unknown(name: str) -> str:
    near = get_close_matches(name, available_timezones(), n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "names are such as Europe/Berlin or UTC."
    return f"There is no time zone {name!r}; {hint}"
