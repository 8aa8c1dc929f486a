"""What a message leaves behind in memory: nothing that only the collector of cycles could free."""

from __future__ import annotations

import gc
from pathlib import Path

from organism.testing import running

HELLO = Path(__file__).parents[2] / "organism.yaml"


async def test_a_message_leaves_nothing_to_the_collector_of_cycles(tmp_path: Path) -> None:
    async with running(HELLO, tmp_path) as o:
        await o.inject("greeter", {"name": "Ann"}, wait=True)
        gc.collect()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            await o.inject("greeter", {"name": "Dan"}, wait=True)
            gc.collect()
            left = [type(found) for found in gc.garbage]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
    assert [kind.__qualname__ for kind in left if kind.__module__.startswith("organism")] == []
