"""What all tests share: how hypothesis looks for its examples, a server of models to ask, and that Ctrl-C is heard."""

from __future__ import annotations

import signal

from hypothesis import settings

from tests.agents.peer.fixture import peer, peer_place

__all__ = ["peer", "peer_place"]

# No deadline: a busy machine is no fault of the code. A failing example is printed so that it can be run again.
settings.register_profile("push", deadline=None, print_blob=True)
settings.register_profile("soak", deadline=None, print_blob=True, max_examples=10_000)
settings.load_profile("push")  # another: ./scripts/test --hypothesis-profile soak

# A shell that begins the tests in the background has them ignore it, and whatever they begin as well.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
