"""The log: the only way to durable state. See ``log.py`` for the port and its numbered guarantees."""
