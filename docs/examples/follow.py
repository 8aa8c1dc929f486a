"""Follow an organism and miss nothing.

    ORGANISM_TOKEN=… python follow.py ws://127.0.0.1:8080/ws PLACE_FILE [threads=…] [agents=…] [events=…]

Each event is printed as a line of JSON. PLACE_FILE remembers how far it came, so it goes on there after a lost
connection, after a kill of the server, and after its own.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from urllib.parse import urlencode

from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

NOT_AUTHENTICATED, DELAY_SECONDS = 4401, 0.5
OF_THE_CONNECTION = {"connected", "caught_up", "checkpoint", "fell_behind"}


def take(frame: dict, place: dict) -> None:
    """Show an event, then remember its position: a crash between the two shows it again and loses none."""
    event = frame["event"]
    if frame.get("code") == "bad_position":  # the log was restored: what was seen is of another
        place.clear()
    elif event == "connected":
        place["log"] = frame["log"]
    elif event not in OF_THE_CONNECTION and "position" in frame:  # a text of a run comes again, gathered
        print(json.dumps(frame), flush=True)
    if "position" in frame:
        place["since"] = frame["position"]


async def follow_once(url: str, token: str, wanted: dict, file: Path) -> int | None:
    """One connection, from its first frame to its end; gives the code that it was closed with."""
    place, bearer = json.loads(file.read_text()) if file.exists() else {}, {"Authorization": f"Bearer {token}"}
    async with connect(f"{url}?{urlencode(wanted | place)}", additional_headers=bearer, max_size=None) as socket:
        async for text in socket:
            take(json.loads(text), place)
            file.with_suffix(".new").write_text(json.dumps(place))
            file.with_suffix(".new").replace(file)
    return socket.close_code


async def follow(url: str, file: str, *filters: str) -> None:
    """Connect again whenever the connection is lost; end only if the token is not taken."""
    wanted, token, code = dict(part.split("=", 1) for part in filters), os.environ["ORGANISM_TOKEN"], None
    while code != NOT_AUTHENTICATED:
        try:
            code = await follow_once(url, token, wanted, Path(file))
        except (OSError, EOFError, WebSocketException) as error:
            print(f"{error}; trying again", file=sys.stderr)
        await asyncio.sleep(DELAY_SECONDS)


if __name__ == "__main__":
    asyncio.run(follow(*sys.argv[1:]))
