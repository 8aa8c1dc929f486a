"""The pump: the only road between listeners. Start with ``pump.py``, which reads like the way of a message."""
