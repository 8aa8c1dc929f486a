"""The vocabulary of the log: one class an event, the unit in which events are written, and how older ones are read."""
