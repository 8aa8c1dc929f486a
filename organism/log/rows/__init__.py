"""The tables of read models: what a commit writes to them, and the pages that are read."""
