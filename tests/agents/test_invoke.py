"""Flags are resolved in the handler, and a batch is the fold of the stream."""

from __future__ import annotations

from itertools import product

import pytest

from organism.agents.invoke import Flags, Shape, resolved
from organism.config.check import InvokeMode
from organism.errors import ForceNotSupported, NotAcceptable

SAYS: tuple[bool | None, ...] = (None, False, True)
MODES: tuple[tuple[InvokeMode, ...], ...] = (("batch",), ("stream",), ("batch", "stream"), ("batch", "force"))


@pytest.mark.parametrize(("stream", "trim", "force"), list(product(SAYS, SAYS, SAYS)))
@pytest.mark.parametrize("modes", MODES, ids="+".join)
def test_every_combination_of_flags_is_delivered_or_refused(
    *, stream: bool | None, trim: bool | None, force: bool | None, modes: tuple[InvokeMode, ...]
) -> None:
    flags = Flags(stream, trim, force)
    if force and "force" not in modes:
        with pytest.raises(ForceNotSupported) as forced:
            resolved(flags, modes)
        assert (forced.value.requested, forced.value.supported) == ("force", modes)
    elif stream is None:
        assert resolved(flags, modes) == Shape(is_stream=modes == ("stream",), is_trimmed=bool(trim))
    elif (asked := "stream" if stream else "batch") not in modes:
        with pytest.raises(NotAcceptable) as refused:
            resolved(flags, modes)
        assert (refused.value.requested, refused.value.supported) == (asked, modes)
    else:
        assert resolved(flags, modes) == Shape(is_stream=stream, is_trimmed=bool(trim))
