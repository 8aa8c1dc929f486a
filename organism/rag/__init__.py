"""The library: documents in indices that are searched by meaning and by words. See docs/topics/library.md."""
