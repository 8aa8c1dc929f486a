"""The clock of the tools."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

import pytest

from organism.model.tool import ToolError
from organism.tools.current_datetime import CurrentDatetime, Now, current_datetime


class Clock:
    """A handler's metadata that knows one moment."""

    def __init__(self, *moment: int) -> None:
        self._moment = datetime(*moment, tzinfo=UTC)  # type: ignore[misc,arg-type]  # year, month, day and so on

    async def now(self) -> datetime:
        return self._moment


async def asked(zone: str | None, *moment: int) -> object:
    payload = CurrentDatetime() if zone is None else CurrentDatetime(zone)
    return (await current_datetime(payload, cast("Any", Clock(*moment)))).payload


async def test_it_tells_utc_if_no_zone_is_named() -> None:
    assert await asked(None, 2026, 1, 15, 10, 30, 5, 999_999) == Now(
        now="2026-01-15T10:30:05+00:00",
        date="2026-01-15",
        time="10:30:05",
        weekday="Thursday",
        zone="UTC",
        utc_offset="+00:00",
        unix=1768473005,
    )


@pytest.mark.parametrize(
    ("zone", "moment", "now", "offset"),
    [
        ("Europe/Berlin", (2026, 1, 15, 23, 30), "2026-01-16T00:30:00+01:00", "+01:00"),
        ("Europe/Berlin", (2026, 7, 15, 23, 30), "2026-07-16T01:30:00+02:00", "+02:00"),
        ("America/New_York", (2026, 3, 8, 7, 0), "2026-03-08T03:00:00-04:00", "-04:00"),
        ("Asia/Kathmandu", (2026, 1, 1), "2026-01-01T05:45:00+05:45", "+05:45"),
        ("America/Argentina/Buenos_Aires", (2026, 1, 1), "2025-12-31T21:00:00-03:00", "-03:00"),
        ("Etc/GMT+12", (2026, 1, 1), "2025-12-31T12:00:00-12:00", "-12:00"),
    ],
)
async def test_it_tells_the_time_of_a_zone_with_its_summer(
    zone: str, moment: tuple[int, ...], now: str, offset: str
) -> None:
    found = await asked(zone, *moment)
    assert isinstance(found, Now)
    assert (found.now, found.utc_offset, found.zone) == (now, offset, zone)


@pytest.mark.parametrize(
    ("zone", "hint"),
    [
        ("Europe/Berln", "did you mean Europe/Berlin"),
        ("europe/berlin!", "Europe/"),
        ("Mars/Olympus_Mons/Top/More", "names are such as Europe/Berlin or UTC."),
        ("Europe", ""),
        ("../../etc/passwd", ""),
        ("/etc/localtime", ""),
        ("..", ""),
        ("Europe/Berlin\n", ""),
        ("a" * 64, ""),
    ],
)
async def test_a_zone_that_is_none_is_reported_with_those_that_may_be_meant(zone: str, hint: str) -> None:
    found = await asked(zone, 2026, 1, 1)
    assert isinstance(found, ToolError)
    assert found.code == "not_found"
    assert found.message.startswith(f"There is no time zone {zone!r}; ")
    assert hint in found.message
