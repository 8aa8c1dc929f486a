"""Invoke over HTTP: what headers and body ask for, and the forms in which a run is told."""
