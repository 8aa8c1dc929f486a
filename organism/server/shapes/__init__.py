"""The shapes of the wire: what is answered and pushed, as records.

OpenAPI, AsyncAPI and ``web/src/wire.ts`` are made of these, and the tests hold every answer and frame to them. Nothing
is built by them: rows leave the log as finished JSON. A field that may be missing is ``NotRequired``; one that may be
empty says ``None``.
"""
