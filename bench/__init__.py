"""Measures the product against its rivals and against the machine's own limits; start it with `scripts/bench`."""
