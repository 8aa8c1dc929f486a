"""SQLite: connections, the thread that writes, reads, and the statements of the ``.sql`` files."""
