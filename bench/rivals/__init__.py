"""One file a rival, one file a limit: each is run as a module in an environment of its own and prints one JSON line.

Nothing here imports the product. Beside its own rival a file may use only the standard library and `bench.load`,
since the environment it runs in holds the rival and nothing else.
"""
