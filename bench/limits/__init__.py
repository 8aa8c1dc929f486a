"""What the machine itself can do: raw SQLite with the product's own library and settings, and a bare server.

These run in the product's own environment (same interpreter, same SQLite, same uvicorn) and import nothing of it.
"""
