"""Decisions: what follows from what, on the folded state. Nothing here waits, reads a clock or calls the log."""
