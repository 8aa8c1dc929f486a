"""The log: the only door to durable state. See ``log.py`` for the port and its numbered guarantees."""
